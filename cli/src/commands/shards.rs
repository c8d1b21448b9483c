//! `meetpoint shards`: a command divided among processes or hosts.

use super::{convert, pack, prepare, verify};
use crate::surface::failure::Reported;
use crate::surface::progress::Progress;
use crate::surface::{Output, Stop, output, units};
use clap::Subcommand;
use meetpoint_datasets::VerifyOptions;
use meetpoint_datasets::pack::sharded::{commit_pack, run_pack};
use meetpoint_datasets::shards::{PlanFolder, ShardCommand, ShardOptions, ShardSummary};
use meetpoint_datasets::unpack::sharded::{commit_convert, run_convert};
use meetpoint_datasets::verify::sharded::{commit_verify, run_verify};
use meetpoint_diagnose::shown;
use meetpoint_planner::materialize::sharded::{commit_prepare, run_prepare};
use serde::Serialize;
use std::path::PathBuf;

/// Divide pack, convert, prepare or verify among processes or hosts.
///
/// `plan` lists the source and writes a plan to the folder DESTINATION.shards, which all hosts must
/// see. `run` works on one shard, on any host; it can be repeated after a crash, and the same shard
/// can run twice at once. `commit` checks all results and creates the destination. The result is
/// byte-identical for any number of shards, and to that of the command itself with the same
/// --part-samples or --part-source-bytes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint shards plan pack photos photos.set --shards 8 --part-samples 1000
  meetpoint shards run photos.set.shards --shard 3
  meetpoint shards status photos.set.shards
  meetpoint shards commit photos.set.shards
In a Slurm array: --shard $SLURM_ARRAY_TASK_ID; in a Kubernetes indexed job:
--shard $JOB_COMPLETION_INDEX")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: ShardsCommand,
}

#[derive(Debug, Subcommand)]
enum ShardsCommand {
    Plan(PlanArguments),
    Run(RunArguments),
    Status(StatusArguments),
    Commit(CommitArguments),
}

/// List the source of a command, cut the listing into parts, and write the plan.
#[derive(Debug, clap::Args)]
struct PlanArguments {
    #[command(subcommand)]
    command: PlannedCommand,
}

#[derive(Debug, Subcommand)]
enum PlannedCommand {
    Pack(Box<PlanPack>),
    Convert(Box<PlanConvert>),
    Prepare(PlanPrepare),
    Verify(PlanVerify),
}

/// Number of shards.
#[derive(Debug, clap::Args)]
struct Count {
    /// Number of shards. With more shards than parts, some have nothing to do.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    shards: u64,
}

/// Refuses options that a plan does not use: they conflict with `--shards`, which it requires.
fn without_effect(argument: clap::Arg) -> clap::Arg {
    match argument.get_id().as_str() {
        "part_size" | "resume" | "threads" => argument.conflicts_with("shards").hide(true),
        _ => argument,
    }
}

/// Plan to pack a source in shards.
///
/// Options are those of `meetpoint pack`. Without --part-samples and --part-source-bytes, a part
/// has at most 256 MiB of the source.
#[derive(Debug, clap::Args)]
#[command(mut_args(without_effect))]
struct PlanPack {
    #[command(flatten)]
    count: Count,
    #[command(flatten)]
    arguments: pack::Arguments,
}

/// Plan to convert a source in shards.
///
/// Options are those of `meetpoint convert`. The format must be one that is written as several
/// files.
#[derive(Debug, clap::Args)]
#[command(mut_args(without_effect))]
struct PlanConvert {
    #[command(flatten)]
    count: Count,
    #[command(flatten)]
    arguments: convert::Arguments,
}

/// Plan to prepare a dataset in shards.
///
/// Options are those of `meetpoint prepare`.
#[derive(Debug, clap::Args)]
#[command(mut_args(without_effect))]
struct PlanPrepare {
    #[command(flatten)]
    count: Count,
    #[command(flatten)]
    arguments: prepare::Arguments,
}

/// Plan to verify a dataset in shards. The parts of the plan are those of the dataset.
#[derive(Debug, clap::Args)]
struct PlanVerify {
    #[command(flatten)]
    count: Count,
    /// Folder of the dataset.
    dataset: PathBuf,
}

/// Run the unfinished parts of one shard.
///
/// Prints the record of each finished part as a line of JSON. A shard may run several times, even
/// at the same time: all attempts write the same bytes, to separate temporary files.
#[derive(Debug, clap::Args)]
struct RunArguments {
    /// Folder of the plan.
    folder: PathBuf,
    /// Index of the shard, from 0.
    #[arg(long, value_name = "I")]
    shard: u64,
    /// Threads; 0 for one per core.
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
}

/// List the shards that are not finished.
///
/// The exit code is 0 whether or not all are finished; `--json` lists them under `missing`.
#[derive(Debug, clap::Args)]
struct StatusArguments {
    /// Folder of the plan.
    folder: PathBuf,
}

/// Check the results of all shards, create the destination, and remove the plan.
///
/// Every byte of the parts is compared with its record, and the source with the plan. The
/// destination appears complete or not at all. A commit that was killed before the destination
/// appeared can be run again. The destination is a folder of a file system: packing into object
/// stores is not supported.
#[derive(Debug, clap::Args)]
struct CommitArguments {
    /// Folder of the plan.
    folder: PathBuf,
}

/// Summary of a plan.
#[derive(Debug, Serialize)]
struct Planned {
    folder: PathBuf,
    sha256: String,
    command: ShardCommand,
    destination: PathBuf,
    shards: u64,
    parts: u64,
    samples: u64,
    source_bytes: u64,
    /// Shards without a part.
    idle_shards: u64,
}

impl Planned {
    fn of(folder: &PlanFolder) -> Self {
        let plan = folder.plan();
        Self {
            folder: folder.path().to_path_buf(),
            sha256: folder.sha256().to_owned(),
            command: plan.command,
            destination: plan.destination.clone(),
            shards: plan.shards,
            parts: plan.parts.len() as u64,
            samples: plan.samples,
            source_bytes: plan.source_bytes,
            idle_shards: plan.idle_shards(),
        }
    }

    /// A warning if some shards have no part.
    fn warning(&self) -> Option<String> {
        let Self { parts, shards, idle_shards, command, .. } = self;
        if *idle_shards == 0 {
            return None;
        }
        let smaller = match command {
            ShardCommand::Verify => "",
            ShardCommand::Pack | ShardCommand::Convert | ShardCommand::Prepare => {
                ", or smaller parts with --part-samples or --part-source-bytes"
            }
        };
        Some(format!(
            "{} for {}: {} nothing to do; plan at most {}{smaller}",
            units::count(*parts, "part"),
            units::count(*shards, "shard"),
            match idle_shards {
                1 => "one has".to_owned(),
                idle => format!("{idle} have"),
            },
            units::count((*parts).max(1), "shard"),
        ))
    }

    fn text(&self) -> String {
        format!(
            "{}: {} {} in {}, {} of {}\nrun each shard with `meetpoint shards run {} --shard I`, \
             I from 0 to {}\nwhen all are finished, create {} with `meetpoint shards commit {}`\n",
            shown(&self.folder),
            self.command.name(),
            units::count(self.samples, "sample"),
            units::count(self.shards, "shard"),
            units::count(self.parts, "part"),
            units::bytes(self.source_bytes),
            shown(&self.folder),
            self.shards.saturating_sub(1),
            match self.command {
                ShardCommand::Verify => "the report".to_owned(),
                ShardCommand::Pack | ShardCommand::Convert | ShardCommand::Prepare => {
                    shown(&self.destination).to_string()
                }
            },
            shown(&self.folder)
        )
    }
}

/// Progress of the shards of a plan.
#[derive(Debug, Serialize)]
struct Status {
    #[serde(flatten)]
    planned: Planned,
    parts_done: u64,
    /// Shards with parts that are not finished.
    missing: Vec<u64>,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    match &arguments.command {
        ShardsCommand::Plan(arguments) => plan(&arguments.command, output),
        ShardsCommand::Run(arguments) => run_shard(arguments, output),
        ShardsCommand::Status(arguments) => status(arguments, output),
        ShardsCommand::Commit(arguments) => commit(arguments, output),
    }
}

fn plan(command: &PlannedCommand, output: Output) -> anyhow::Result<()> {
    let folder = match command {
        PlannedCommand::Pack(it) => pack::plan(&it.arguments, it.count.shards)?,
        PlannedCommand::Convert(it) => convert::plan(&it.arguments, it.count.shards)?,
        PlannedCommand::Prepare(it) => prepare::plan(&it.arguments, it.count.shards)?,
        PlannedCommand::Verify(it) => verify::plan(&it.dataset, it.count.shards)?,
    };
    let planned = Planned::of(&folder);
    planned.warning().iter().for_each(|warning| output::notice(warning));
    output.result(&planned, || planned.text())
}

fn run_shard(arguments: &RunArguments, output: Output) -> anyhow::Result<()> {
    let stop = Stop::install()?;
    let folder = PlanFolder::open(&arguments.folder)?;
    let mut bar = Progress::new("shard", "samples", 0);
    // If the output has no reader, the records are still in the folder.
    let mut line = |text: &str| output.line(text);
    let mut options =
        ShardOptions { threads: arguments.threads, stop: stop.flag(), line: &mut line };
    let (shard, with) = (arguments.shard, &mut options);
    let ran: anyhow::Result<ShardSummary> = match folder.plan().command {
        ShardCommand::Pack => run_pack(&folder, shard, with, &mut |progress| {
            bar.set(progress.samples_done, progress.samples.unwrap_or(0));
        })
        .map_err(pack::as_signal),
        ShardCommand::Convert => run_convert(&folder, shard, with, &mut |progress| {
            bar.set(progress.samples_done, progress.size.samples.unwrap_or(0));
        })
        .map_err(pack::as_signal),
        ShardCommand::Prepare => run_prepare(&folder, shard, with, &mut |progress| {
            bar.set(progress.done, progress.samples);
        })
        .map_err(prepare::failure),
        ShardCommand::Verify => {
            let mut read = 0;
            let all = folder.plan().source_bytes;
            run_verify(&folder, shard, with, &mut |bytes| {
                read += bytes;
                bar.set(read, all);
            })
            .map_err(pack::as_signal)
        }
    };
    drop(bar);
    let summary = ran?;
    match output.is_json() {
        true => output.result(&summary, String::new),
        false => {
            eprintln!(
                "shard {} of {}: {}, {} finished before",
                summary.shard,
                summary.shards,
                units::count(summary.parts, "part"),
                summary.parts_before
            );
            Ok(())
        }
    }
}

fn status(arguments: &StatusArguments, output: Output) -> anyhow::Result<()> {
    let folder = PlanFolder::open(&arguments.folder)?;
    let plan = folder.plan();
    let (mut parts_done, mut missing) = (0, Vec::new());
    for shard in 0..plan.shard_count() {
        let parts = plan.parts_of(shard);
        let all = parts.end - parts.start;
        let mut done = 0;
        for part in parts {
            done += u64::from(folder.done::<serde_json::Value>(part)?.is_some());
        }
        parts_done += done;
        if done < all {
            missing.push(shard);
        }
    }
    let status = Status { planned: Planned::of(&folder), parts_done, missing };
    output.result(&status, || {
        let planned = &status.planned;
        let mut text = format!("{} of {} parts are finished\n", parts_done, planned.parts);
        for shard in &status.missing {
            text.push_str(&format!("shard {shard} is not finished\n"));
        }
        text
    })
}

fn commit(arguments: &CommitArguments, output: Output) -> anyhow::Result<()> {
    let stop = Stop::install()?;
    let folder = PlanFolder::open(&arguments.folder)?;
    let _lock = folder.lock()?;
    match folder.plan().command {
        ShardCommand::Pack => {
            let summary = commit_pack(folder).map_err(pack::as_signal)?;
            output.result(&summary, || pack::text(&summary))
        }
        ShardCommand::Convert => {
            let summary = commit_convert(folder).map_err(pack::as_signal)?;
            output.result(&summary, || convert::text(&summary))
        }
        ShardCommand::Prepare => {
            let summary = commit_prepare(folder).map_err(prepare::failure)?;
            output.result(&summary, || prepare::text(&summary))
        }
        ShardCommand::Verify => {
            let dataset = folder.plan().destination.clone();
            let options = VerifyOptions { stop: stop.flag(), ..VerifyOptions::default() };
            let report = commit_verify(folder, &options).map_err(pack::as_signal)?;
            output.result(&report, || verify::text(&report, &dataset))?;
            if report.is_sound() { Ok(()) } else { Err(Reported.into()) }
        }
    }
}
