//! `meetpoint index`: a source becomes a dataset where it lies; keys are found without a scan.

use super::pack::{CheckName, OnErrorName, Spacing, spacing, text};
use super::source_arguments::SourceArguments;
use crate::surface::failure::Interrupted;
use crate::surface::progress::Progress;
use crate::surface::{Output, Stop, units};
use anyhow::Context;
use meetpoint_datasets::index::{index, index_keys};
use meetpoint_datasets::writer::utc_time;
use meetpoint_datasets::{Check, Error, JpegOptions, OnError, PackOptions};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Index a source where it lies: a dataset of keys, labels, checksums, entry points and further
/// columns, whose content stays in the files of the source.
///
/// It is used like a packed dataset: by run, a loader, a device (started with --root for the source
/// too), verify and unpack. Sources are those of `meetpoint pack` whose samples lie in files as
/// they are: folders, tar and ZIP files without compression, and others. The source must stay where
/// it is and as it is: a file that changed since (length, time, checksum) is refused with what
/// changed. With --keys, a dataset that has none gets an index of its keys.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint index photos photos.idx
  meetpoint index --keys photos.set")]
pub(crate) struct Arguments {
    /// Folder or file with the samples; with --keys, a dataset.
    source: PathBuf,
    /// Folder of the dataset to make.
    #[arg(required_unless_present = "keys")]
    destination: Option<PathBuf>,
    /// Make the index of the keys of a dataset, keys.idx, anew: what finds a sample by its key
    /// without looking through all of them. Takes 16 bytes of memory for each key.
    #[arg(long, conflicts_with_all = ["destination", "force", "resume", "from"])]
    keys: bool,
    /// Replace a dataset that is there.
    #[arg(long)]
    force: bool,
    /// Go on with what an index of the same source and options left when it was killed.
    #[arg(long)]
    resume: bool,
    /// What to do about samples that do not read: fail and list them, or skip and list them.
    #[arg(long, value_enum, default_value = "fail", value_name = "WHAT")]
    on_error: OnErrorName,
    /// Where decoding can start in the middle of a JPEG file: at each row of MCUs, every N MCUs,
    /// or nowhere.
    #[arg(long, default_value = "row", value_name = "row|N|none", value_parser = spacing)]
    entry_points: Spacing,
    /// What makes a picture unreadable: it does not decode, or its header does not read (faster).
    #[arg(long, value_enum, default_value = "decode", value_name = "HOW")]
    check: CheckName,
    /// Bytes of content after which the next part begins; each of several devices holds whole
    /// parts.
    #[arg(long, default_value = "256MiB", value_name = "SIZE", value_parser = units::parse_bytes)]
    part_size: u64,
    /// Threads that read and check; 0 takes as many as there are cores.
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
    #[command(flatten)]
    of_source: SourceArguments,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let stop = Stop::install()?;
    if arguments.keys {
        return keys(&arguments.source, &stop, output);
    }
    let destination = arguments.destination.as_ref().context("no destination")?;
    let options = PackOptions {
        force: arguments.force,
        from: arguments.of_source.from.clone(),
        source: arguments.of_source.options(&stop),
        resume: arguments.resume,
        time: Some(utc_time(SystemTime::now())),
        on_error: OnError::from(arguments.on_error),
        check: Check::from(arguments.check),
        jpeg: JpegOptions { entry_points: arguments.entry_points.0, ..JpegOptions::default() },
        part_bytes_target: arguments.part_size,
        threads: arguments.threads,
        stop: stop.flag(),
        ..PackOptions::default()
    };
    let mut bar = Progress::new("indexing", "samples", 0);
    let summary =
        index(&arguments.source, destination, &options, &mut |progress| match progress.samples {
            Some(samples) => bar.set(progress.samples_done, samples),
            None => bar.set_open(progress.samples_done),
        });
    let summary = summary.map_err(told)?;
    let content = units::bytes(summary.image_bytes);
    output.result(&summary, || {
        format!("{}{content} of content stay in {}\n", text(&summary), arguments.source.display())
    })
}

fn keys(dataset: &Path, stop: &Stop, output: Output) -> anyhow::Result<()> {
    let mut bar = Progress::new("indexing keys", "samples", 0);
    let made = index_keys(dataset, &stop.flag(), &mut |progress| {
        bar.set(progress.samples_done, progress.samples);
    });
    let summary = made.map_err(told)?;
    output.result(&summary, || {
        let (path, bytes) = (summary.path.display(), units::bytes(summary.bytes));
        format!("{path}: {} keys, {bytes}\n", summary.keys)
    })
}

/// A signal is told as such.
fn told(error: Error) -> anyhow::Error {
    match error {
        Error::Interrupted => Interrupted.into(),
        error => error.into(),
    }
}
