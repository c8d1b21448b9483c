//! `meetpoint plan`: what to prepare once, and who runs the rest, as a job file.

use super::profile::{CodecName, confidence, limit, load, measured};
use crate::surface::failure::Fault;
use crate::surface::units::parse_positive_duration;
use crate::surface::{Output, chart_files, cores_allowed};
use anyhow::Context;
use clap::ValueEnum;
use meetpoint_diagnose::shown;
use meetpoint_format::recipe::Recipe;
use meetpoint_format::units::{parse_bandwidth, parse_duration};
use meetpoint_host::GpuIndex;
use meetpoint_planner::plan::{
    Aim, DeviceModel, Origin, Pins, PlanChoice, PlanError, Request, check_batch_size, choose,
    form_of, sentences, write,
};
use meetpoint_planner::profile::{Options, Samples};
use meetpoint_planner::{Goal, Measured, Settings, materialization_points};
use meetpoint_prepare::Dataset;
use meetpoint_storage::MemoryLimit;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Maximum total bytes of the slots in the default spool.
const SPOOL_BYTES: u64 = 256 << 20;

/// Plan what to prepare once and how to run the rest: device, GPU, workers, cache.
///
/// Measures the forms in which the dataset can be stored, unless --profile names the results of an
/// earlier `meetpoint profile`, and simulates epochs with each of them. Writes a job file with each
/// value and its reason, which `meetpoint run --plan` and the Python loader apply.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint plan train.toml photos.set --epochs 90 -o plan.toml
  meetpoint plan train.toml photos.set --profile results.csv --storage-limit 200GB -o plan.toml
  meetpoint plan train.toml photos.set --device emulated,cpu_ratio=0.5 --step 20ms -o plan.toml
  meetpoint plan train.toml photos.set --gpu-decode cuda:0 --batch-size 256 --step 50ms
  meetpoint plan train.toml photos.set --pin workers=2 --pin cache=0 -o plan.toml
  meetpoint run --plan plan.toml")]
pub(crate) struct Arguments {
    /// Recipe in TOML, or the name of a shipped one.
    #[arg(value_name = "FILE|NAME")]
    recipe: PathBuf,
    /// Folder of the dataset.
    dataset: PathBuf,
    /// File for the plan; without it, the plan is only explained.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace an existing file.
    #[arg(long, requires = "output")]
    force: bool,
    /// Use the results of `meetpoint profile`, saved with --csv or printed with --json, instead of
    /// measuring.
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Number of epochs to plan for.
    #[arg(long, default_value_t = 10, value_name = "E",
          value_parser = clap::value_parser!(u32).range(1..))]
    epochs: u32,
    /// Samples in a batch.
    #[arg(long, default_value_t = 32, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..))]
    batch_size: u32,
    /// Seed of order and augmentation.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Read the samples in the order of the dataset.
    #[arg(long)]
    no_shuffle: bool,
    /// Device that may prepare batches: `emulated`, with cpu_ratio, read_bandwidth,
    /// write_bandwidth and latency as in a job.
    #[arg(long, value_name = "KIND,KEY=VALUE,…", value_parser = device)]
    device: Option<Device>,
    /// GPU that may prepare a share of each batch of the host, such as cuda:0. A profile of an
    /// earlier run must have been measured with it.
    #[arg(long, value_name = "GPU")]
    gpu_decode: Option<GpuIndex>,
    /// Duration of a training step; without it, the accelerator never waits.
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration)]
    step: Option<Duration>,
    /// GPU of the training steps. By default, it is the one that prepares samples, and preparing
    /// delays the steps.
    #[arg(long, value_name = "GPU", requires = "step")]
    step_gpu: Option<GpuIndex>,
    /// Quantity to minimise; energy is modelled.
    #[arg(long, value_enum, default_value_t = AimName::Time)]
    goal: AimName,
    /// Power model for modelled energy: the name of a preset, or a TOML file.
    #[arg(long, value_name = "PRESET|FILE")]
    power: Option<String>,
    /// Maximum number of bytes to store in addition to the dataset.
    #[arg(long, value_name = "SIZE", value_parser = limit)]
    storage_limit: Option<u64>,
    /// Maximum memory for batches and cache; by default the memory that this process can still
    /// allocate.
    #[arg(long, value_name = "SIZE", value_parser = limit)]
    memory_limit: Option<u64>,
    /// Fix a value: stored, codec, cache, workers, prefetch, strategy or gpu (none, or for example
    /// cuda:0). May be given repeatedly.
    #[arg(long, value_name = "KEY=VALUE")]
    pin: Vec<String>,
    /// Confidence that is required to call the choice certain.
    #[arg(long, default_value_t = 0.95, value_name = "SHARE", value_parser = confidence)]
    confidence: f64,
    /// Allow lossy forms, in which pictures are encoded as JPEG again.
    #[arg(long)]
    allow_loss: bool,
    /// Runs of each measurement.
    #[arg(long, default_value_t = 3, value_name = "N", conflicts_with = "profile",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Samples to measure; by default increased until the best stored form is certain.
    #[arg(long, value_name = "N", conflicts_with = "profile",
          value_parser = clap::value_parser!(u64).range(2..))]
    samples: Option<u64>,
    /// Codecs of stored samples to measure.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "none,lz4,zstd",
        value_enum,
        value_name = "CODEC,…",
        conflicts_with = "profile"
    )]
    codecs: Vec<CodecName>,
    /// Folder for temporary files; by default the folder that contains the dataset.
    #[arg(long, value_name = "FOLDER", conflicts_with = "profile")]
    temporary: Option<PathBuf>,
}

/// The name of an aim on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum AimName {
    /// Seconds until the last epoch ends.
    Time,
    /// Joules until then, by the power model.
    Energy,
}

impl From<AimName> for Aim {
    fn from(name: AimName) -> Self {
        match name {
            AimName::Time => Self::Time,
            AimName::Energy => Self::Energy,
        }
    }
}

/// A device as text, and as a job describes it.
#[derive(Debug, Clone, PartialEq)]
struct Device {
    model: DeviceModel,
    table: String,
}

/// Keys of a device, as in a job.
const DEVICE_KEYS: &[&str] = &["cpu_ratio", "read_bandwidth", "write_bandwidth", "latency"];

fn device(text: &str) -> Result<Device, String> {
    let mut words = text.split(',').map(str::trim);
    if words.next() != Some("emulated") {
        return Err("the kind is \"emulated\"; a GPU is named with --gpu-decode".to_owned());
    }
    let mut model = DeviceModel {
        cpu_ratio: 1.0,
        read_bytes_per_second: None,
        write_bytes_per_second: None,
        latency_ns: 0,
        shares_cores: true,
        spool_slots: 1,
    };
    let mut table = "[device]\nkind = \"emulated\"\n".to_owned();
    for word in words {
        let (key, value) = word.split_once('=').ok_or("write KEY=VALUE after the kind")?;
        let wrong = |takes: &str| format!("{key} is {value:?}, which is not {takes}");
        let bandwidth = || {
            let takes = "bytes a second with a unit, such as 500MB/s";
            parse_bandwidth(value).filter(|it| *it > 0).ok_or_else(|| wrong(takes))
        };
        let written = match key {
            "cpu_ratio" => {
                let ratio = value.parse().ok().filter(|it| (0.001..=1.0).contains(it));
                model.cpu_ratio = ratio.ok_or_else(|| wrong("a number from 0.001 to 1"))?;
                value.to_owned()
            }
            "read_bandwidth" => {
                model.read_bytes_per_second = Some(bandwidth()?);
                format!("\"{value}\"")
            }
            "write_bandwidth" => {
                model.write_bytes_per_second = Some(bandwidth()?);
                format!("\"{value}\"")
            }
            "latency" => {
                let time = parse_duration(value);
                let time = time.ok_or_else(|| wrong("a time with a unit, such as 100us"))?;
                model.latency_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
                format!("\"{value}\"")
            }
            _ => return Err(meetpoint_diagnose::known(key, DEVICE_KEYS)),
        };
        table.push_str(&format!("{key} = {written}\n"));
    }
    Ok(Device { model, table })
}

/// The output with `--json`.
#[derive(Debug, Serialize)]
struct Document<'a> {
    /// The text of the plan.
    plan: &'a str,
    /// File of the plan; `None` if it was only explained.
    file: Option<&'a Path>,
    /// The choice and the alternatives.
    #[serde(flatten)]
    chosen: &'a PlanChoice,
    /// The explanation.
    sentences: &'a [String],
    /// The measurements.
    results: &'a [Measured],
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let mut pins = Pins::default();
    for pin in &arguments.pin {
        pins.set(pin).map_err(|error| anyhow::Error::from(Fault::usage_of(&error)))?;
    }
    // The GPUs of a profile are those of its rows.
    if arguments.profile.is_none() || arguments.gpu_decode.is_some() {
        let checked = pins.check_gpu(arguments.gpu_decode);
        checked.map_err(|error| anyhow::Error::from(Fault::usage_of(&error)))?;
    }
    if let Some(path) = arguments.output.as_deref().filter(|it| !arguments.force && it.exists()) {
        let message = format!("{} exists", shown(path));
        return Err(Fault::new("exists", message, "replace it with --force").into());
    }
    let power = crate::power::model(arguments.power.as_deref())?;
    let recipe = super::recipe::read(&arguments.recipe, &[])?;
    let dataset = Arc::new(Dataset::open(&arguments.dataset)?);
    check_batch_size(arguments.batch_size, dataset.manifest().samples)?;
    let stored_as = form_of(&dataset).ok_or_else(|| PlanError::Prepared {
        operations: dataset.manifest().prepared().map_or(0, |it| it.operations),
    })?;
    let results = match &arguments.profile {
        Some(path) => from_file(path, &recipe, &dataset, arguments.gpu_decode)?,
        None => measure(arguments, &recipe, &dataset)?,
    };
    let spec = meetpoint_prepare::fixed_shape(&recipe)?;
    let batch_bytes = spec.bytes() as u64 * u64::from(arguments.batch_size);
    let available = || match arguments.profile {
        // The plan may be for another machine, whose memory is not known.
        Some(_) => None,
        None => Some(MemoryLimit::of_this_process().available_bytes),
    };
    let slots = u32::try_from(SPOOL_BYTES / (batch_bytes + 4096)).unwrap_or(u32::MAX);
    let device = arguments.device.as_ref();
    let request = Request {
        epochs: arguments.epochs,
        aim: arguments.goal.into(),
        storage_limit: arguments.storage_limit,
        memory_limit: arguments.memory_limit.or_else(available),
        confidence: arguments.confidence,
        allows_loss: arguments.allow_loss,
        batch_size: arguments.batch_size,
        batch_bytes,
        shuffle: !arguments.no_shuffle,
        step_ns: arguments.step.map_or(0, |it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX)),
        step_gpu: arguments.step_gpu,
        device: device.map(|it| DeviceModel { spool_slots: slots.max(2), ..it.model }),
        cores: u32::try_from(cores_allowed()).unwrap_or(u32::MAX),
        stored_as,
        pins,
        power,
    };
    let chosen = choose(&results, &request)?;
    let path = std::path::absolute(&arguments.dataset)?;
    let recipe_name = name_of(&arguments.recipe)?;
    let table = device.map_or("", |it| it.table.as_str());
    let origin = Origin {
        dataset: &dataset,
        path: &path,
        recipe: &recipe,
        recipe_name: &recipe_name,
        seed: arguments.seed,
        device: table,
    };
    let text = write(&request, &chosen, &origin);
    if let Some(path) = &arguments.output {
        chart_files::file(path, &text)?;
    }
    let said = sentences(&request, &chosen);
    let document = Document {
        plan: &text,
        file: arguments.output.as_deref(),
        chosen: &chosen,
        sentences: &said,
        results: &results,
    };
    output.result(&document, || {
        let mut lines = said.join("\n");
        if let Some(command) = meetpoint_planner::plan::write::command(&origin, &chosen) {
            lines.push_str(&format!("\nFirst run: {command}"));
        }
        if let Some(path) = &arguments.output {
            lines.push_str(&format!("\nplan: {}", shown(path)));
        }
        lines
    })
}

/// A recipe file as an absolute path, or the name of a shipped recipe as it is.
fn name_of(recipe: &Path) -> anyhow::Result<String> {
    let named = if recipe.is_file() { std::path::absolute(recipe)? } else { recipe.to_path_buf() };
    let text = named.to_str().map(str::to_owned);
    text.with_context(|| format!("{} is not UTF-8, as a plan must be", shown(&named)))
}

/// The results of an earlier profile of this recipe and dataset.
fn from_file(
    path: &Path,
    recipe: &Recipe,
    dataset: &Dataset,
    gpu: Option<GpuIndex>,
) -> anyhow::Result<Vec<Measured>> {
    let mut results = load(path)?;
    let manifest = dataset.manifest();
    if let Some(first) = results.first()
        && first.dataset_samples != manifest.samples
    {
        return Err(PlanError::OtherDataset {
            profiled: first.dataset_samples,
            profiled_bytes: first.dataset_bytes,
            samples: manifest.samples,
            bytes: manifest.image_bytes,
        }
        .into());
    }
    let points = materialization_points(recipe, true).legal;
    if let Some(other) = results.iter().find(|it| !points.contains(&it.point())) {
        return Err(PlanError::OtherRecipe { point: other.point().to_string() }.into());
    }
    if let Some(gpu) = gpu {
        results.retain(|it| it.gpu.is_none_or(|it| it == gpu));
        if results.iter().all(|it| it.gpu.is_none()) {
            let what = "any form".to_owned();
            return Err(PlanError::GpuNotMeasured { gpu, what }.into());
        }
    }
    Ok(results)
}

/// Measures with one thread, and with one for each core.
fn measure(
    arguments: &Arguments,
    recipe: &Recipe,
    dataset: &Arc<Dataset>,
) -> anyhow::Result<Vec<Measured>> {
    let cores = cores_allowed();
    let mut threads: Vec<usize> =
        (0..).map(|power| 1 << power).take_while(|it| *it < cores).collect();
    threads.push(cores);
    let mut codecs: Vec<_> = arguments.codecs.iter().map(|&it| it.into()).collect();
    codecs.sort_unstable();
    codecs.dedup();
    let options = Options {
        settings: Settings { codecs, threads },
        runs: arguments.runs,
        samples: arguments.samples.map_or(Samples::Widening, Samples::Exactly),
        seed: arguments.seed,
        gpu: None,
        folder: super::profile::folder(arguments.temporary.as_deref(), &arguments.dataset),
        goal: Goal {
            epochs: arguments.epochs,
            storage_limit: None,
            memory_limit: None,
            confidence: arguments.confidence,
            allows_loss: arguments.allow_loss,
        },
    };
    let gpu = arguments.gpu_decode.map(|gpu| (gpu, arguments.batch_size));
    measured(dataset, recipe, options, gpu).map(|found| found.results)
}

#[cfg(test)]
mod tests {
    use super::device;

    #[test]
    fn a_device_is_written_on_the_command_line_as_in_a_job() {
        let found = device("emulated,cpu_ratio=0.5,read_bandwidth=100MB/s,latency=1ms").unwrap();
        assert_eq!(found.model.cpu_ratio, 0.5);
        assert_eq!(found.model.read_bytes_per_second, Some(100_000_000));
        assert_eq!(found.model.latency_ns, 1_000_000);
        let table = "[device]\nkind = \"emulated\"\ncpu_ratio = 0.5\nread_bandwidth = \
                     \"100MB/s\"\nlatency = \"1ms\"\n";
        assert_eq!(found.table, table);
        for wrong in ["gpu", "emulated,cpu_ratio=2", "emulated,cpu=1", "emulated,latency=3", ""] {
            assert!(device(wrong).is_err(), "{wrong}");
        }
    }
}
