//! TOML to a job: every word, type and value is checked where it stands.

use super::marks::Marks;
use super::table::{Source, Table};
use super::{AcceleratorJob, DeviceJob, EmulatedDevice, JobError, JobFile, recipe};
use crate::config::{SpoolConfig, SpoolKind};
use crate::units::{parse_bandwidth, parse_bytes, parse_duration};
use meetpoint_scheduler::{Split, Strategy, Tail};
use meetpoint_storage::EngineKind;
use std::path::Path;
use std::time::Duration;
use toml::de::{DeTable, DeValue};

/// Most samples in a batch.
const BATCH_SIZE_MAX: u32 = 1 << 24;

/// Keys of the file itself.
const KEYS: [&str; 22] = [
    "dataset",
    "recipe",
    "batch_size",
    "epochs",
    "seed",
    "shuffle",
    "drop_last",
    "strategy",
    "mte",
    "workers",
    "prefetch",
    "memory_budget",
    "engine",
    "read_depth",
    "stall_timeout",
    "profile_batches",
    "host_cores",
    "verify",
    "device",
    "spool",
    "accelerator",
    "description",
];

const BYTES: &str = "bytes with a unit, such as \"512MiB\"";
const BANDWIDTH: &str = "bytes a second with a unit, such as \"500MB/s\"";
const TIME: &str = "a time with a unit, such as \"100us\", \"20ms\" or \"2s\"";

/// Reads the job in `text`, which stands in the file at `path`.
pub(super) fn read(text: &str, path: &Path) -> Result<JobFile, JobError> {
    let source = Source { file: path, text };
    let document = DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        let problem = format!("the job is not TOML: {}", error.message().replace('\n', ", "));
        source.fault(offset, problem, "correct the text; https://toml.io has the grammar")
    })?;
    let table = Table::of_file(source, document.get_ref());
    table.allow(&KEYS)?;
    table.text("description", "a text; it is for readers only")?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let dataset = required(&table, "dataset", "the path of a packed dataset")?;
    let batch_size = table.whole("batch_size", 1..=u64::from(BATCH_SIZE_MAX))?;
    let missing = || table.missing("batch_size", "it takes the number of samples in a batch");
    let batch_size = batch_size.ok_or_else(missing)?;
    let (mte_split, mte_tail) = mte(&table)?;
    let device = device(&table, folder)?;
    Ok(JobFile {
        path: path.to_path_buf(),
        dataset: folder.join(dataset),
        recipe: recipe::read(&table, folder)?,
        batch_size: u32::try_from(batch_size).expect("at most BATCH_SIZE_MAX"),
        epochs: table.small("epochs", 1..=u32::MAX, 1)?,
        seed: table.whole("seed", 0..=u64::MAX)?.unwrap_or(0),
        shuffle: table.flag("shuffle", true)?,
        drop_last: table.flag("drop_last", false)?,
        strategy: strategy(&table, mte_split, mte_tail, &device)?,
        mte_split,
        mte_tail,
        workers: table.small("workers", 0..=1024, 0)?,
        prefetch: table.small("prefetch", 1..=1024, 2)?,
        memory_budget_bytes: table
            .quantity("memory_budget", parse_bytes, BYTES)?
            .unwrap_or(512 << 20),
        engine: table
            .word(
                "engine",
                &[
                    ("auto", EngineKind::Auto),
                    ("io_uring", EngineKind::Uring),
                    ("threads", EngineKind::Threads),
                ],
            )?
            .unwrap_or(EngineKind::Auto),
        read_depth: table.small("read_depth", 1..=1024, 32)? as usize,
        stall_timeout: positive_time(&table, "stall_timeout")?.unwrap_or(Duration::from_secs(2)),
        profile_batches: table.small("profile_batches", 1..=1 << 20, 3)?,
        host_cores: host_cores(&table)?,
        verify: table.flag("verify", true)?,
        device,
        spool: spool(&table, folder)?,
        accelerator: accelerator(&table)?,
        marks: Marks::of(source, document.get_ref()),
    })
}

fn required<'t>(table: &Table<'t>, key: &str, what: &str) -> Result<&'t str, JobError> {
    let text = table.text(key, what)?;
    let text = text.ok_or_else(|| table.missing(key, format!("it takes {what}")))?;
    if text.is_empty() { Err(table.wrong_at(key, what)) } else { Ok(text) }
}

fn positive_time(table: &Table<'_>, key: &str) -> Result<Option<Duration>, JobError> {
    match table.quantity(key, parse_duration, TIME)? {
        Some(Duration::ZERO) => Err(table.wrong_at(key, "a time longer than nothing")),
        time => Ok(time),
    }
}

fn host_cores(table: &Table<'_>) -> Result<Option<Vec<usize>>, JobError> {
    let remedy = "a list of core numbers, such as [0, 1]";
    match table.wholes("host_cores", remedy)? {
        Some(cores) if cores.is_empty() => Err(table.wrong_at("host_cores", remedy)),
        cores => Ok(cores),
    }
}

fn strategy(
    table: &Table<'_>,
    split: Split,
    tail: Tail,
    device: &DeviceJob,
) -> Result<Strategy, JobError> {
    let words = [
        ("host-only", Strategy::HostOnly),
        ("device-only", Strategy::DeviceOnly),
        ("mte", Strategy::Mte { split, tail }),
        ("wrr", Strategy::Wrr),
    ];
    let has_device = *device != DeviceJob::None;
    match table.word("strategy", &words)? {
        None if has_device => Ok(Strategy::Wrr),
        None | Some(Strategy::HostOnly) => Ok(Strategy::HostOnly),
        Some(strategy) if has_device => Ok(strategy),
        Some(strategy) => {
            let offset = table.value("strategy").map_or(0, |value| value.span().start);
            let problem = format!("strategy \"{}\" needs a device", strategy.name());
            let remedy = "add [device] with kind = \"emulated\", or use \"host-only\"";
            Err(table.source.fault(offset, problem, remedy))
        }
    }
}

fn mte(table: &Table<'_>) -> Result<(Split, Tail), JobError> {
    let Some(mte) = table.table("mte")? else {
        return Ok((Split::EqualFinish, Tail::Descending));
    };
    mte.allow(&["split", "tail"])?;
    let tails = [("descending", Tail::Descending), ("ascending", Tail::Ascending)];
    let tail = mte.word("tail", &tails)?.unwrap_or(Tail::Descending);
    let split = match mte.value("split").map(|value| value.get_ref()) {
        None => Split::EqualFinish,
        Some(DeValue::String(text)) if text.as_ref() == "equal-finish" => Split::EqualFinish,
        Some(DeValue::Integer(_)) => Split::Fixed(mte.small("split", 0..=u32::MAX, 0)?),
        Some(_) => {
            return Err(mte.wrong_at("split", "\"equal-finish\" or the device's batches"));
        }
    };
    Ok((split, tail))
}

/// What a `kind` key says.
#[derive(Clone, Copy, PartialEq)]
enum DeviceKind {
    None,
    Emulated,
    Connect,
}

fn device(table: &Table<'_>, folder: &Path) -> Result<DeviceJob, JobError> {
    let Some(device) = table.table("device")? else { return Ok(DeviceJob::None) };
    let kinds = [
        ("emulated", DeviceKind::Emulated),
        ("connect", DeviceKind::Connect),
        ("none", DeviceKind::None),
    ];
    match device.word("kind", &kinds)?.unwrap_or(DeviceKind::Emulated) {
        DeviceKind::None => {
            device.allow(&["kind"])?;
            Ok(DeviceJob::None)
        }
        DeviceKind::Connect => {
            device.allow(&["kind", "socket"])?;
            let what = "the path of a device's socket";
            Ok(DeviceJob::Connect { socket: folder.join(required(&device, "socket", what)?) })
        }
        DeviceKind::Emulated => {
            device.allow(&[
                "kind",
                "cpu_ratio",
                "read_bandwidth",
                "write_bandwidth",
                "latency",
                "core",
                "allow_shared",
                "faults",
            ])?;
            let core = device.whole("core", 0..=u64::from(u16::MAX))?;
            Ok(DeviceJob::Emulated(EmulatedDevice {
                cpu_ratio: device.share("cpu_ratio", 1.0)?,
                read_bytes_per_second: bandwidth(&device, "read_bandwidth")?,
                write_bytes_per_second: bandwidth(&device, "write_bandwidth")?,
                latency: device.quantity("latency", parse_duration, TIME)?,
                core: core.map(|core| usize::try_from(core).expect("16 bits")),
                allow_shared: device.flag("allow_shared", false)?,
                faults: device
                    .texts("faults", "a list of faults, such as [\"die@3\"]")?
                    .unwrap_or_default(),
            }))
        }
    }
}

fn bandwidth(table: &Table<'_>, key: &str) -> Result<Option<u64>, JobError> {
    match table.quantity(key, parse_bandwidth, BANDWIDTH)? {
        Some(0) => Err(table.wrong_at(key, BANDWIDTH)),
        bandwidth => Ok(bandwidth),
    }
}

fn spool(table: &Table<'_>, folder: &Path) -> Result<SpoolConfig, JobError> {
    let default = SpoolConfig::default();
    let Some(spool) = table.table("spool")? else { return Ok(default) };
    let is_file = spool.word("kind", &[("memory", false), ("file", true)])?.unwrap_or(false);
    let kind = if is_file {
        spool.allow(&["kind", "directory", "quota"])?;
        let what = "a directory on the device's storage";
        SpoolKind::File { directory: folder.join(required(&spool, "directory", what)?) }
    } else {
        spool.allow(&["kind", "quota"])?;
        SpoolKind::Memory
    };
    let quota = spool.quantity("quota", parse_bytes, BYTES)?;
    Ok(SpoolConfig { kind, quota_bytes: quota.unwrap_or(default.quota_bytes) })
}

fn accelerator(table: &Table<'_>) -> Result<AcceleratorJob, JobError> {
    let Some(accelerator) = table.table("accelerator")? else { return Ok(AcceleratorJob::Null) };
    let kinds = [("emulated", true), ("null", false)];
    if !accelerator.word("kind", &kinds)?.unwrap_or(true) {
        accelerator.allow(&["kind"])?;
        return Ok(AcceleratorJob::Null);
    }
    accelerator.allow(&["kind", "step"])?;
    let step = accelerator.quantity("step", parse_duration, TIME)?;
    let step = step.ok_or_else(|| accelerator.missing("step", format!("it takes {TIME}")))?;
    Ok(AcceleratorJob::Emulated { step })
}
