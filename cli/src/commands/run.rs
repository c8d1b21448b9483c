//! `meetpoint run`: a job from a file, under one strategy or all.

use crate::runner::{self, Plan, StrategyName};
use crate::surface::{Output, Stop};
use anyhow::bail;
use meetpoint_host::{DeviceJob, JobFile};
use std::path::PathBuf;

/// Run a job from a TOML file and report what it took.
///
/// The job names dataset, recipe, batch size, device and accelerator; docs/jobs.md lists every
/// key. Each strategy runs on a loader and a device process of its own. Afterwards every sample is
/// prepared again by the host alone and compared, unless the job or --no-verify says otherwise.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint run job.toml
  meetpoint run job.toml --strategy all --epochs 2 --report out")]
pub(crate) struct Arguments {
    /// The job, a TOML file.
    job: PathBuf,
    /// Strategy to use instead of the job's; `all` compares host-only, mte, wrr and, unless it
    /// would take absurdly long, device-only.
    #[arg(long, value_enum, value_name = "NAME")]
    strategy: Option<Choice>,
    /// Epochs to run instead of the job's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    epochs: Option<u32>,
    /// Do not prepare every sample again to compare it.
    #[arg(long)]
    no_verify: bool,
    /// Folder for report.json and report.html.
    #[arg(long, default_value = "meetpoint-report", value_name = "FOLDER")]
    report: PathBuf,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Choice {
    All,
    HostOnly,
    DeviceOnly,
    Mte,
    Wrr,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    crate::report::write::check_folder(&arguments.report)?;
    let stop = Stop::install()?;
    let mut job = JobFile::load(&arguments.job)?;
    job.epochs = arguments.epochs.unwrap_or(job.epochs);
    job.verify = job.verify && !arguments.no_verify;
    let plan = match arguments.strategy {
        None => Plan::of_job(&job),
        Some(Choice::All) => Plan::all(),
        Some(Choice::HostOnly) => Plan::of(&[StrategyName::HostOnly]),
        Some(Choice::DeviceOnly) => Plan::of(&[StrategyName::DeviceOnly]),
        Some(Choice::Mte) => Plan::of(&[StrategyName::Mte]),
        Some(Choice::Wrr) => Plan::of(&[StrategyName::Wrr]),
    };
    if matches!(arguments.strategy, Some(Choice::All)) && job.device == DeviceJob::None {
        bail!(
            "{} has no device, so there is nothing to compare; add [device] with kind = \
             \"emulated\", or run it without --strategy all",
            job.path.display()
        );
    }
    let report = runner::run(&job, &plan, &stop, output)?;
    runner::finish(&report, &arguments.report, output)
}
