//! The devices of a job: one `[device]` table, or several `[[device]]` tables.

use super::JobError;
use super::table::Table;
use super::values::{TIME, bandwidth, required};
use meetpoint_format::units::parse_duration;
use meetpoint_link::{Emulation, Fault, FaultSyntax, ServeCommand, SettingError, Targets};
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::de::DeValue;

/// Most devices of a job.
pub const DEVICES_MAX: u32 = 64;
/// Highest number of a part.
const PART_MAX: u64 = u32::MAX as u64;

/// One device of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceJob {
    /// The table that it comes from, as messages name it: `device` or `device[1]`.
    pub table: String,
    /// Where it comes from.
    pub kind: DeviceKind,
    /// Parts of the dataset that it holds; `None`: they are dealt out, part p to device p mod D.
    pub parts: Option<Vec<u32>>,
}

/// Where a device of a job comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum DeviceKind {
    /// A separate process for each strategy.
    Emulated(ServeCommand),
    /// One that somebody started.
    Connect {
        /// Its socket.
        socket: PathBuf,
    },
}

/// What a `kind` key says.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    None,
    Emulated,
    Connect,
}

/// Reads the devices of a job file; relative paths start at `folder`.
pub(super) fn read(table: &Table<'_>, folder: &Path) -> Result<Vec<DeviceJob>, JobError> {
    let mut devices = Vec::new();
    match table.value("device").map(|value| value.get_ref()) {
        None => {}
        Some(DeValue::Array(_)) => {
            for device in table.tables("device")? {
                devices.extend(read_one(&device, folder)?);
                if devices.len() > DEVICES_MAX as usize {
                    let problem = format!("the job has more than {DEVICES_MAX} devices");
                    return Err(table.fault_at("device", problem, "leave some out"));
                }
            }
        }
        Some(_) => {
            let device = table.table("device")?.expect("the key is there");
            devices = read_one(&device, folder)?;
        }
    }
    check_parts(table, &devices)?;
    Ok(devices)
}

/// The devices of one table: as many as its `count` says.
fn read_one(device: &Table<'_>, folder: &Path) -> Result<Vec<DeviceJob>, JobError> {
    let kinds = [("emulated", Kind::Emulated), ("connect", Kind::Connect), ("none", Kind::None)];
    let count = device.small("count", 1..=DEVICES_MAX, 1)?;
    let kind = match device.word("kind", &kinds)?.unwrap_or(Kind::Emulated) {
        Kind::None => {
            device.allow(&["kind"])?;
            return Ok(Vec::new());
        }
        Kind::Connect => {
            device.allow(&["kind", "socket", "parts"])?;
            let what = "the path of a device's socket";
            DeviceKind::Connect { socket: folder.join(required(device, "socket", what)?) }
        }
        Kind::Emulated => DeviceKind::Emulated(emulated(device)?),
    };
    let remedy = "a list of numbers of parts, such as [0, 2] for part-00000.arrow and \
                  part-00002.arrow";
    let parts = device.wholes("parts", remedy)?;
    let parts = match parts {
        Some(parts) if parts.is_empty() => return Err(device.wrong_at("parts", remedy)),
        Some(parts) => {
            let number = |part: usize| {
                u32::try_from(part)
                    .map_err(|_| device.wrong_at("parts", format!("numbers from 0 to {PART_MAX}")))
            };
            Some(parts.into_iter().map(number).collect::<Result<Vec<u32>, _>>()?)
        }
        None => None,
    };
    if count > 1 {
        for (key, why) in [
            ("core", "devices on one core would be slower than their settings"),
            ("parts", "a part belongs to one device"),
        ] {
            if device.value(key).is_some() {
                let problem = format!("`{key}` applies to one device, but `count` is {count}");
                let remedy = format!("{why}; write a [[device]] table for each");
                return Err(device.fault_at(key, problem, remedy));
            }
        }
    }
    let table = device.name().to_owned();
    Ok(vec![DeviceJob { table, kind, parts }; count as usize])
}

fn emulated(device: &Table<'_>) -> Result<ServeCommand, JobError> {
    device.allow(&[
        "kind",
        "count",
        "parts",
        "cpu_ratio",
        "read_bandwidth",
        "write_bandwidth",
        "latency",
        "core",
        "allow_shared",
        "faults",
    ])?;
    let core = device.whole("core", 0..=u64::from(u16::MAX))?;
    let targets = Targets {
        cpu_ratio: device.share("cpu_ratio", 1.0)?,
        read_bytes_per_second: bandwidth(device, "read_bandwidth")?,
        write_bytes_per_second: bandwidth(device, "write_bandwidth")?,
        latency_ns: device.quantity("latency", parse_duration, TIME)?.map(nanoseconds),
        core: core.map(|core| u32::try_from(core).expect("16 bits")),
    };
    let allow_shared = device.flag("allow_shared", false)?;
    let emulation = Emulation { targets, allow_shared, memory_bytes_max: None };
    emulation.check().map_err(|SettingError { setting, value, remedy }| {
        let problem = format!("`{}.{setting}` is {value}", device.name());
        device.fault_at(setting.as_str(), problem, remedy)
    })?;
    Ok(ServeCommand { emulation, faults: faults(device)?, engine: None })
}

/// What the device does wrong on purpose.
fn faults(device: &Table<'_>) -> Result<Vec<Fault>, JobError> {
    let texts = device.texts("faults", "a list of faults, such as [\"die@3\"]")?;
    let texts = texts.unwrap_or_default().into_iter().enumerate();
    let fault = |(index, text): (usize, String)| {
        text.parse::<Fault>().map_err(|error| {
            let problem = format!("{text:?} is not a fault: {}", error.problem);
            device.fault_in("faults", index, problem, FaultSyntax::KNOWN)
        })
    };
    texts.map(fault).collect()
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Parts are named for all devices or for none, and each once.
fn check_parts(table: &Table<'_>, devices: &[DeviceJob]) -> Result<(), JobError> {
    let named = devices.iter().filter(|device| device.parts.is_some()).count();
    if named == 0 {
        return Ok(());
    }
    if named < devices.len() {
        let problem = format!("{named} of {} devices name their `parts`", devices.len());
        return Err(table.fault_at("device", problem, "give `parts` to every device or to none"));
    }
    let mut all: Vec<u32> =
        devices.iter().flat_map(|it| it.parts.iter().flatten()).copied().collect();
    all.sort_unstable();
    match all.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => {
            let problem = format!("part {} is named twice among the devices' `parts`", pair[0]);
            Err(table.fault_at("device", problem, "a part belongs to one device"))
        }
    }
}
