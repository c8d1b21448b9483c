//! `meetpoint run`: a job from a file, with one strategy or all.

use crate::emulation;
use crate::runner::replay::Recorded;
use crate::runner::{self, RunPlan};
use crate::surface::fault::Fault;
use crate::surface::remote::RemoteArguments;
use crate::surface::report_files::ReportFiles;
use crate::surface::{Output, Stop, StoreArguments, output, units};
use anyhow::Context;
use clap::builder::PossibleValue;
use meetpoint_datasets::store::RemoteStores;
use meetpoint_diagnose::{Diagnose, Remedy, shown};
use meetpoint_format::column::Collate;
use meetpoint_format::recipe::Change;
use meetpoint_format::sampler::{self, Mixture, Sampler, SamplerError};
use meetpoint_host::{
    DeviceKind, Emulation, GpuDecode, GpuIndex, JobFile, Replacements, ServeCommand, StrategyName,
    Targets, Tune,
};
use meetpoint_prepare::cache::CacheSettings;
use meetpoint_prepare::gpu::{GpuMemory, ShareChoice};
use meetpoint_scheduler::Record;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Run a job from a TOML file and write a report.
///
/// The job specifies dataset, recipe, batch size, device and accelerator; docs/jobs.md lists every
/// key. Each strategy has its own loader and device process. Afterwards the host alone prepares
/// every sample again and compares it, unless --no-verify or the job disables this.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint run job.toml
  meetpoint run --plan plan.toml
  meetpoint run job.toml --cache 2GiB
  meetpoint run job.toml --tune
  meetpoint run job.toml --gpu-decode cuda:0 --gpu-share 0.5
  meetpoint run job.toml --strategy all --epochs 2 --report out
  meetpoint run job.toml --strategy host-only,auto
  meetpoint run job.toml --dataset cats.set --dataset dogs.set --weights 2,1
  meetpoint run job.toml --dataset s3://bucket/photos.set --cache-size 64GiB
  meetpoint run job.toml --recipe deit@1 --set num_classes=10
  meetpoint run job.toml --device tcp://csd.local:7000 --device-keys keys
  meetpoint run job.toml --device-profile a53
  meetpoint run job.toml --replay out/report.json --strategy mte-feedback")]
pub(crate) struct Arguments {
    /// The job, a TOML file.
    #[arg(required_unless_present = "plan", conflicts_with = "plan")]
    job: Option<PathBuf>,
    /// Plan to apply, as `meetpoint plan` wrote it. A plan for another recipe or dataset is an
    /// error.
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Memory for a cache of prepared samples, which later epochs use, such as 2GiB; 0 for none.
    #[arg(long, value_name = "SIZE", value_parser = cache)]
    cache: Option<u64>,
    /// Memory for the stored bytes of small samples, which are then read once, such as 64MiB; 0 for
    /// none. A part of the job's memory budget.
    #[arg(long, value_name = "SIZE", value_parser = cache)]
    small_samples: Option<u64>,
    /// Adapt the numbers of workers and of batches ahead while running, as `tune = "auto"` does.
    #[arg(long, overrides_with = "no_tune")]
    tune: bool,
    /// Keep the numbers of workers and of batches ahead as in the job, even if it has
    /// `tune = "auto"`.
    #[arg(long, overrides_with = "tune")]
    no_tune: bool,
    /// GPU that prepares a share of each batch of the host, such as cuda:0, to the same bits as the
    /// CPU, which prepares the samples that the GPU cannot.
    #[arg(long, value_name = "GPU")]
    gpu_decode: Option<GpuIndex>,
    /// Share of each batch for the GPU: a number from 0 to 1, or `auto`, so that the GPU and the
    /// thread of the CPU finish at the same time.
    #[arg(long, value_name = "SHARE")]
    gpu_share: Option<ShareChoice>,
    /// Maximum GPU memory for --gpu-decode, shared by all threads, such as 2GiB. One eighth of this
    /// size is also page-locked in the memory of the host. The CPU prepares what does not fit.
    #[arg(long, value_name = "SIZE", value_parser = gpu_memory)]
    gpu_memory: Option<u64>,
    /// Prepare everything on the CPU, even if the job has `gpu_decode`.
    #[arg(long, conflicts_with_all = ["gpu_decode", "gpu_share", "gpu_memory"])]
    no_gpu_decode: bool,
    /// Strategies to use instead of the job's, separated by commas. `all` compares all strategies,
    /// but skips device-only if it would take too long.
    #[arg(long, value_enum, value_name = "NAME", value_delimiter = ',')]
    strategy: Vec<Choice>,
    /// Replay recorded epochs. Takes a record such as mte:812, or the report.json of a run, whose
    /// epochs are replayed one by one.
    #[arg(long, value_name = "RECORD|REPORT")]
    replay: Option<String>,
    /// Power model for modelled energy: the name of a preset, or a TOML file.
    #[arg(long, value_name = "PRESET|FILE")]
    power: Option<String>,
    /// Columns of a batch instead of the job's, separated by commas and in this order: `image`,
    /// `label`, `key`, `sample`, or further columns of the dataset.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    columns: Vec<String>,
    /// How pictures of different sizes become one batch, instead of the job's `collate`: `stack`,
    /// `pad` or `list`, with the defaults of its options.
    #[arg(long, value_name = "MODE")]
    collate: Option<String>,
    /// Recipe instead of the job's: a TOML file, or the name of a shipped recipe.
    #[arg(long, value_name = "FILE|NAME")]
    recipe: Option<PathBuf>,
    /// Set a key of that recipe: KEY sets it in every operation that has it, OPERATION.KEY in one
    /// operation, VIEW.OPERATION.KEY in one view; VIEW.count is the number of pictures of a view.
    #[arg(long, value_name = "KEY=VALUE", requires = "recipe")]
    set: Vec<Change>,
    /// Epochs to run instead of the job's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    epochs: Option<u32>,
    /// Dataset to use instead of the job's, a folder or a URL; given several times, they are
    /// served as one.
    #[arg(long, value_name = "FOLDER")]
    dataset: Vec<PathBuf>,
    /// Mix the datasets in proportion to these weights, one for each and separated by commas, until
    /// the first of them is exhausted. Replaces the job's sampler.
    #[arg(long, value_name = "WEIGHT", value_delimiter = ',', conflicts_with = "sampler")]
    weights: Vec<f64>,
    /// Sampler to use instead of the job's, with its default options: sequential, shuffled,
    /// class_balanced, repeated or aspect_ratio. Set samplers that need options in the job.
    #[arg(long, value_name = "NAME")]
    sampler: Option<String>,
    /// Deliver each batch to an NVIDIA GPU before its step: cuda, or cuda:INDEX. Reports the bytes
    /// and times of the delivery, and how long the accelerator was idle.
    #[arg(long, value_name = "GPU")]
    device_out: Option<GpuIndex>,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    remote: RemoteArguments,
    /// Emulate a declared device: a profile (a53, a78, fpga) or a TOML file. Its speeds replace
    /// those of the job's emulated devices. A core of this machine is measured first.
    #[arg(long, value_name = "PROFILE")]
    device_profile: Option<String>,
    /// Do not prepare every sample again for comparison.
    #[arg(long)]
    no_verify: bool,
    /// Write a trace of batches, stages and waits to this file, for ui.perfetto.dev or Chrome.
    #[arg(long, value_name = "FILE")]
    trace_events: Option<PathBuf>,
    /// Append a line of JSON about each consumed batch to this file: strategy, rank, epoch, index,
    /// the end that prepared it, samples, and a checksum of each sample's values.
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    #[command(flatten)]
    report: ReportFiles,
}

/// How long a core is measured for `--device-profile`.
const PROFILE_MEASURED_FOR: Duration = Duration::from_millis(500);

/// A value of `--strategy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    All,
    One(StrategyName),
}

impl clap::ValueEnum for Choice {
    fn value_variants<'a>() -> &'a [Self] {
        const NAMES: [StrategyName; StrategyName::ALL.len()] = StrategyName::ALL;
        static VARIANTS: [Choice; NAMES.len() + 1] = {
            let mut variants = [Choice::All; NAMES.len() + 1];
            let mut index = 0;
            while index < NAMES.len() {
                variants[index + 1] = Choice::One(NAMES[index]);
                index += 1;
            }
            variants
        };
        &VARIANTS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::All => PossibleValue::new("all").help("all strategies, for comparison"),
            Self::One(name) => PossibleValue::new(name.as_str()).help(name.summary()),
        })
    }
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    arguments.report.check()?;
    let power = crate::power::model(arguments.power.as_deref())?;
    let stop = Stop::install()?;
    let mut job = load(arguments, arguments.remote.devices()?)?;
    job.epochs = arguments.epochs.unwrap_or(job.epochs);
    if !arguments.columns.is_empty() {
        let names = arguments.columns.iter().map(|name| name.trim().to_owned());
        job.replace_columns(names.collect::<Vec<_>>().into());
    }
    if let Some(mode) = &arguments.collate {
        job.replace_collate(Collate::read(mode, None, None, None)?);
    }
    job.verify = job.verify && !arguments.no_verify;
    if arguments.tune {
        job.tune = Tune::Auto;
    } else if arguments.no_tune {
        job.tune = Tune::Off;
    }
    set_gpu(&mut job, arguments)?;
    if let Some(name) = &arguments.device_profile {
        emulate(&mut job, name, &stop)?;
    }
    let stores = RemoteStores::new(arguments.store.options(&job.store, &stop));
    job.dataset = job.dataset.clone().opened_by(Arc::new(stores));
    if !arguments.weights.is_empty() {
        let (weights, stop) = (arguments.weights.clone().into(), sampler::Stop::FirstExhausted);
        job.replace_sampler(Mixture { weights, stop, shuffle: true }.into());
    }
    if let Some(name) = &arguments.sampler {
        job.replace_sampler(sampler(name)?);
    }
    let recorded = match &arguments.replay {
        Some(replay) => Some(set_replay(&mut job, replay, arguments)?),
        None => None,
    };
    let plan = plan(&job, &arguments.strategy)
        .traced(arguments.trace_events.clone())
        .delivered_to(arguments.device_out)
        .recorded(arguments.ledger.clone());
    if plan.needs_device() && job.devices.is_empty() {
        let message = format!("{} has no device for these strategies", shown(&job.path));
        let remedy = Remedy::advice("add [device] with kind = \"emulated\"")
            .or("run it with --strategy host-only");
        return Err(Fault::new("no_device", message, remedy).into());
    }
    let mut report = runner::run(&job, &plan, &power, &stop, output)?;
    // A replay that differs is an error after the report, which shows the difference.
    let compared = recorded.map_or(Ok(None), |recorded| recorded.compare(&report));
    if let Ok(Some(notice)) = &compared {
        report.notices.push(notice.clone());
        output.line(&notice.to_string());
    }
    runner::finish(&report, &arguments.report, output)?;
    compared.map(|_| ())
}

/// The job, or the plan, which is a job as well. `devices`, if any, replace those of the file.
fn load(arguments: &Arguments, devices: Vec<DeviceKind>) -> anyhow::Result<JobFile> {
    let path = arguments.plan.as_ref().or(arguments.job.as_ref()).context("the parser asks")?;
    let recipe = arguments.recipe.as_ref();
    let recipe = recipe.map(|name| super::recipe::read(name, &arguments.set)).transpose()?;
    let dataset = &arguments.dataset;
    let replacements = Replacements {
        devices,
        has_strategies: !arguments.strategy.is_empty(),
        recipe: recipe.map(Arc::new),
        dataset: (!dataset.is_empty()).then(|| dataset.clone().into()),
    };
    let mut job = JobFile::load_for(path, replacements)?;
    if arguments.plan.is_some() && job.plan.is_none() {
        let message = format!("{} has no table [plan]", shown(path));
        let remedy = "make a plan with `meetpoint plan`, or run the file as a job without --plan";
        return Err(Fault::new("no_plan", message, remedy).into());
    }
    if let Some(bytes) = arguments.cache {
        let operations = job.cache.as_ref().and_then(|cache| cache.operations);
        job.cache = (bytes > 0).then_some(CacheSettings { bytes, operations });
    }
    job.small_samples_bytes = arguments.small_samples.or(job.small_samples_bytes);
    Ok(job)
}

/// Gives every emulated device of the job the speeds of a profile.
fn emulate(job: &mut JobFile, name: &str, stop: &Stop) -> anyhow::Result<()> {
    let profile = emulation::profile(name)?;
    let mut devices: Vec<&mut ServeCommand> = job
        .devices
        .iter_mut()
        .filter_map(|device| match &mut device.kind {
            DeviceKind::Emulated(command) => Some(command),
            DeviceKind::Connect { .. } | DeviceKind::Remote(_) => None,
        })
        .collect();
    let Some(first) = devices.first() else {
        let message = format!("{} has no emulated device for --device-profile", shown(&job.path));
        let remedy = "add [device] with kind = \"emulated\"";
        return Err(Fault::new("no_emulated_device", message, remedy).into());
    };
    let given = first.emulation;
    let setting = emulation::Setting {
        duration: PROFILE_MEASURED_FOR,
        core: given.targets.core,
        allow_shared: given.allow_shared,
        has_neighbour: false,
    };
    let pictures = emulation::Pictures::generate(stop)?;
    let own = emulation::measure(&pictures, None, setting, stop)?;
    let emulated = profile.emulation(own.pixels_per_cpu_second)?;
    for device in &mut devices {
        let Emulation { targets: Targets { core, .. }, allow_shared, .. } = device.emulation;
        let targets = Targets { core, ..emulated.targets };
        device.emulation = Emulation { targets, allow_shared, ..emulated };
    }
    let notice = format!(
        "{name}: {:.4} of a core, which decodes {:.1} megapixels per second here and {:.1} in the \
         profile",
        emulated.targets.cpu_ratio.unwrap_or(1.0),
        own.pixels_per_cpu_second / 1e6,
        profile.pixels_per_second.value / 1e6
    );
    output::notice(&notice);
    if let Some(assumptions) = emulation::assumptions(&profile) {
        output::notice(&assumptions);
    }
    Ok(())
}

/// Puts `--gpu-decode`, `--gpu-share` and `--gpu-memory` into the job; each alone keeps the job's
/// others.
fn set_gpu(job: &mut JobFile, arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { gpu_decode, gpu_share, gpu_memory, no_gpu_decode, .. } = arguments;
    if *no_gpu_decode {
        job.replace_gpu_decode(None);
        return Ok(());
    }
    let options = [("--gpu-share", gpu_share.is_some()), ("--gpu-memory", gpu_memory.is_some())];
    let option = options.into_iter().find_map(|(name, is_given)| is_given.then_some(name));
    let mut decode = match (gpu_decode, job.gpu_decode, option) {
        (None, _, None) => return Ok(()),
        (Some(gpu), Some(of_job), _) => GpuDecode { gpu: *gpu, ..of_job },
        (Some(gpu), None, _) => GpuDecode::new(*gpu),
        (None, Some(of_job), Some(_)) => of_job,
        (None, None, Some(option)) => {
            let message = format!("{} names no GPU for {option}", shown(&job.path));
            let remedy = "name one with --gpu-decode, such as --gpu-decode cuda:0";
            return Err(Fault::new("no_gpu", message, remedy).into());
        }
    };
    decode.share = gpu_share.unwrap_or(decode.share);
    decode.memory_bytes = gpu_memory.or(decode.memory_bytes);
    job.replace_gpu_decode(Some(decode));
    Ok(())
}

/// Parses an amount of GPU memory, at least [`GpuMemory::BYTES_MIN`].
fn gpu_memory(text: &str) -> Result<u64, String> {
    let bytes = units::parse_bytes(text)?;
    match bytes < GpuMemory::BYTES_MIN {
        true => Err(format!("less than {}", units::bytes(GpuMemory::BYTES_MIN))),
        false => Ok(bytes),
    }
}

/// Parses a size, which may be 0.
fn cache(text: &str) -> Result<u64, String> {
    if text.trim() == "0" { Ok(0) } else { units::parse_bytes(text) }
}

/// The sampler of `--sampler`, which has no options.
fn sampler(name: &str) -> anyhow::Result<Sampler> {
    let read = Sampler::read(name, Vec::new());
    read.map_err(|error| match error {
        SamplerError::Missing { option, .. } => {
            let remedy = format!(
                "leave --sampler out, and write [sampler] into the job with name = {name:?} and \
                 {option} = …"
            );
            Fault::new(error.cause(), format!("--sampler {name}: {error}"), remedy).into()
        }
        error => anyhow::Error::from(error).context(format!("--sampler {name} is refused")),
    })
}

/// The strategies to run.
fn plan(job: &JobFile, asked: &[Choice]) -> RunPlan {
    if asked.contains(&Choice::All) {
        return RunPlan::all();
    }
    let names = asked.iter().filter_map(|choice| match choice {
        Choice::All => None,
        Choice::One(name) => Some(*name),
    });
    match names.collect::<Vec<_>>() {
        names if names.is_empty() => RunPlan::of_job(job),
        names => RunPlan::of(&names),
    }
}

/// Sets the job's records from `--replay`, and its number of epochs from a report.
fn set_replay(job: &mut JobFile, replay: &str, arguments: &Arguments) -> anyhow::Result<Recorded> {
    let wanted = match arguments.strategy[..] {
        [] => None,
        [Choice::One(name)] => Some(name),
        _ => {
            let remedy = "name one with --strategy, or leave --strategy out";
            return Err(
                Fault::new("replay_conflict", "--replay replays one strategy", remedy).into()
            );
        }
    };
    let found = runner::replay::records(replay, wanted)?;
    found.check(job)?;
    let records = found.records.clone();
    let recorded = records.first().map(Record::strategy).context("a report has an epoch")?;
    if let Some(wanted) = wanted.filter(|&wanted| wanted != recorded) {
        let message = format!("--replay is a record of {recorded}, and --strategy is {wanted}");
        return Err(Fault::new("replay_conflict", message, "leave --strategy out").into());
    }
    match (arguments.epochs, records.len()) {
        (Some(epochs), there) if there > 1 && epochs as usize > there => {
            let message = format!("{replay} has {there} epochs, and --epochs is {epochs}");
            return Err(Fault::new(
                "replay_conflict",
                message,
                format!("give --epochs {there} or less"),
            )
            .into());
        }
        (None, there) if there > 1 => job.epochs = u32::try_from(there)?,
        _ => {}
    }
    job.strategy = recorded;
    job.replay = records;
    if job.replay.len() > 1 {
        job.replay.truncate(job.epochs as usize);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::Choice;
    use clap::ValueEnum;
    use meetpoint_host::StrategyName;

    #[test]
    fn every_strategy_is_selected_by_its_name() {
        for name in StrategyName::ALL {
            assert_eq!(Choice::from_str(name.as_str(), false), Ok(Choice::One(name)));
        }
        assert_eq!(Choice::from_str("all", false), Ok(Choice::All));
        assert_eq!(Choice::value_variants().len(), StrategyName::ALL.len() + 1);
    }
}
