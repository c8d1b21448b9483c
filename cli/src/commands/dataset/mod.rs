//! `meetpoint dataset`: operations on datasets, one file each.

mod cat;
mod diff;
mod draw;
mod extents;
mod merge;
mod repair;
mod select;
mod split;
mod stats;

use crate::surface::failure::Interrupted;
use crate::surface::progress::Progress;
use crate::surface::{Output, Stop, units};
use clap::Subcommand;
use meetpoint_datasets::Error;
use meetpoint_datasets::operations::{self, CopyOptions, CopySummary};
use meetpoint_diagnose::shown;

/// Shuffle, split, merge, sample and select datasets; show, count, compare, repair and map them.
///
/// The result is an independent dataset that appears complete or not at all. Stored rows are copied
/// with every column and checked. Memory is bounded for datasets of any size.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Shuffle(draw::ShuffleArguments),
    Split(split::Arguments),
    Merge(merge::Arguments),
    Sample(draw::SampleArguments),
    Select(select::Arguments),
    Head(cat::HeadArguments),
    Cat(cat::Arguments),
    Stats(stats::Arguments),
    Diff(diff::Arguments),
    Repair(repair::Arguments),
    Extents(extents::Arguments),
}

/// Runs the operation that was typed.
pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    match &arguments.command {
        Command::Shuffle(arguments) => draw::shuffle(arguments, output),
        Command::Split(arguments) => split::run(arguments, output),
        Command::Merge(arguments) => merge::run(arguments, output),
        Command::Sample(arguments) => draw::sample(arguments, output),
        Command::Select(arguments) => select::run(arguments, output),
        Command::Head(arguments) => cat::head(arguments, output),
        Command::Cat(arguments) => cat::run(arguments, output),
        Command::Stats(arguments) => stats::run(arguments, output),
        Command::Diff(arguments) => diff::run(arguments, output),
        Command::Repair(arguments) => repair::run(arguments, output),
        Command::Extents(arguments) => extents::run(arguments, output),
    }
}

/// How to write the result of an operation.
#[derive(Debug, clap::Args)]
struct WriteArguments {
    /// Replace an existing dataset.
    #[arg(long)]
    force: bool,
    /// Resume the same command if it was killed or stopped; it must have had this option too.
    #[arg(long)]
    resume: bool,
    /// Size after which a new part begins. With several devices, each holds whole parts.
    #[arg(long, default_value = "256MiB", value_name = "SIZE", value_parser = units::parse_bytes)]
    part_size: u64,
    /// Memory for rows. More memory is faster if the new order differs much from the stored order.
    #[arg(long, default_value = "256MiB", value_name = "SIZE", value_parser = units::parse_bytes)]
    memory: u64,
    /// Threads that read; 0 for one per core.
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
}

impl WriteArguments {
    fn options(&self, stop: &Stop) -> CopyOptions {
        CopyOptions {
            force: self.force,
            part_bytes_target: self.part_size,
            memory_bytes: self.memory,
            threads: self.threads,
            resume: self.resume,
            stop: stop.flag(),
        }
    }
}

/// Runs an operation under a bar; a signal is reported as such.
fn with_bar<T>(
    title: &'static str,
    operation: impl FnOnce(&mut dyn FnMut(operations::Progress)) -> Result<T, Error>,
) -> anyhow::Result<T> {
    let mut bar = Progress::new(title, "samples", 0);
    let done = operation(&mut |step| bar.set(step.samples_done, step.samples));
    drop(bar);
    done.map_err(as_signal)
}

/// The error that the program reports.
fn as_signal(error: Error) -> anyhow::Error {
    match error {
        Error::Interrupted => Interrupted.into(),
        error => error.into(),
    }
}

/// Describes a dataset that was written.
fn written(summary: &CopySummary) -> String {
    let mut text = format!(
        "{}: {}, {} in {}, {}\n",
        shown(&summary.destination),
        units::count(summary.samples, "sample"),
        units::bytes(summary.file_bytes),
        units::count(summary.parts, "part"),
        units::count(summary.labels, "label")
    );
    if summary.parts_resumed > 0 {
        let parts = units::count(summary.parts_resumed, "part");
        text.push_str(&format!("{parts} retained from the interrupted run\n"));
    }
    for note in &summary.notes {
        text.push_str(&format!("{note}\n"));
    }
    for path in &summary.cleaned {
        text.push_str(&format!("removed {}, left by a process that was killed\n", shown(path)));
    }
    text
}
