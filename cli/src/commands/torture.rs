//! `meetpoint torture`: random jobs with random faults, and a check of their invariants.

use crate::surface::fault::Fault;
use crate::surface::{Output, Stop, units};
use crate::torture::{self, Campaign, ENDURANCE_EPOCHS, consumer};
use anyhow::Context;
use meetpoint_diagnose::shown;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a campaign lasts if neither a duration nor a number of jobs is given.
const DURATION: Duration = Duration::from_secs(60);

/// Run random jobs with random faults, and check that no batch is lost, wrong or repeated.
///
/// Datasets, jobs and faults follow from the seed. Each job runs as processes of this program:
/// strategy, workers, ranks, batch size, recipe, sampler, cache, spool and transport are random.
/// Its fault is one of: a device that is killed, stopped, restarted or late, a connection that is
/// cut or silent, a full or tiny spool, little memory, a part that is damaged, truncated, replaced
/// or removed, a host that is killed (and resumed), stopped or interrupted, or a fault that a
/// device injects itself. Afterwards every batch must have been consumed once, with the bytes that
/// the host alone prepares, or the run must have ended with an error that the fault permits; no
/// process, socket, spool or temporary file may remain. Every twelfth job has many epochs in one
/// process, whose memory, descriptors, sockets, threads and spool must not grow.
///
/// A job that violates this prints the command that runs it again, and its folder is retained.
/// Ctrl-C ends the campaign with its summary.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint torture
  meetpoint torture --seed 7 --duration 1000s --folder soak
  meetpoint torture --seed 7 --job 341          only job 341 of seed 7
  meetpoint torture --seed 7 --jobs 100 --json")]
pub(crate) struct Arguments {
    /// Seed of datasets, jobs and faults.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Start no further job after this time, such as 60s; by default 60s, or no limit with --jobs.
    #[arg(long, value_name = "TIME", value_parser = units::parse_positive_duration)]
    duration: Option<Duration>,
    /// Number of jobs to run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    jobs: Option<u64>,
    /// Run only the job with this number.
    #[arg(long, value_name = "K", conflicts_with_all = ["jobs", "duration"])]
    job: Option<u64>,
    /// Epochs of every twelfth job.
    #[arg(long, default_value_t = ENDURANCE_EPOCHS, value_name = "N",
          value_parser = clap::value_parser!(u32).range(15..=1_000_000))]
    epochs: u32,
    /// Write datasets, jobs, ledgers and the output of all processes to this folder, which must be
    /// new or empty. By default only those of failed jobs are retained, in a temporary folder.
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Consume a job's batches, and resume from its ledger.
#[derive(Debug, clap::Args)]
pub(crate) struct ConsumeArguments {
    /// The job, a TOML file with one rank.
    job: PathBuf,
    /// Batches in this file are not consumed again, and others are added to it.
    #[arg(long, value_name = "FILE")]
    ledger: PathBuf,
    /// After each epoch, wait until another process has appended to this file.
    #[arg(long, value_name = "FILE")]
    gate: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let stop = Stop::install()?;
    if let Some(folder) = &arguments.folder {
        make_empty(folder)?;
    }
    let has_limit = arguments.jobs.is_some() || arguments.job.is_some();
    let campaign = Campaign {
        seed: arguments.seed,
        duration: arguments.duration.or((!has_limit).then_some(DURATION)),
        jobs: arguments.jobs,
        only: arguments.job,
        endurance_epochs: arguments.epochs,
        folder: arguments.folder.clone(),
    };
    torture::run(&campaign, &stop, output)
}

pub(super) fn consume(arguments: &ConsumeArguments, output: Output) -> anyhow::Result<()> {
    let stop = Stop::install()?;
    let ConsumeArguments { job, ledger, gate } = arguments;
    consumer::consume(job, ledger, gate.as_deref(), &stop, output)
}

/// Creates the folder; an existing one must be empty.
fn make_empty(folder: &Path) -> anyhow::Result<()> {
    let failed = || {
        let message = format!("failed to create folder {}", shown(folder));
        Fault::new("folder_not_created", message, "name another with --folder")
    };
    std::fs::create_dir_all(folder).with_context(failed)?;
    if std::fs::read_dir(folder).with_context(failed)?.next().is_some() {
        let message = format!("{} is not empty", shown(folder));
        return Err(Fault::new("folder_not_empty", message, "name a new one with --folder").into());
    }
    Ok(())
}
