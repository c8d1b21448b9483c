//! `meetpoint index`: makes a dataset of a source without copying its content; creates key indices.

use super::pack::{PackArguments, as_signal, entry_points, head, tail};
use crate::surface::progress::Progress;
use crate::surface::{Output, Stop, units};
use anyhow::Context;
use meetpoint_datasets::index::{index, index_keys};
use meetpoint_diagnose::shown;
use std::path::{Path, PathBuf};

/// Index a source without copying its content: the dataset has keys, labels, checksums, entry
/// points and further columns, and its content stays in the files of the source.
///
/// Use the result like a packed dataset: with run, a loader, a device (started with --root for the
/// source too), verify and unpack. Sources are folders, tar and ZIP files without compression, and
/// other sources of `meetpoint pack` whose files contain the samples unchanged. Do not move or
/// change the source: if a file differs from the indexed one (length, time, checksum), reading it
/// is an error that names the difference.
///
/// With --keys, create the key index of an existing dataset.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint index photos photos.idx
  meetpoint index --keys photos.set")]
pub(crate) struct Arguments {
    /// Folder or file with the samples; with --keys, a dataset.
    source: PathBuf,
    /// Folder of the dataset to create.
    #[arg(required_unless_present = "keys")]
    destination: Option<PathBuf>,
    /// Create or replace keys.idx of a dataset, the index that finds a sample by its key without a
    /// scan. This takes 16 bytes of memory for each key.
    #[arg(long, conflicts_with_all = ["destination", "force", "resume", "from"])]
    keys: bool,
    #[command(flatten)]
    pack: PackArguments,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let stop = Stop::install()?;
    if arguments.keys {
        return keys(&arguments.source, &stop, output);
    }
    let destination = arguments.destination.as_ref().context("no destination")?;
    let options = arguments.pack.options(&stop)?;
    let mut bar = Progress::new("indexing", "samples", 0);
    let summary =
        index(&arguments.source, destination, &options, &mut |progress| match progress.samples {
            Some(samples) => bar.set(progress.samples_done, samples),
            None => bar.set_open(progress.samples_done),
        });
    let summary = summary.map_err(as_signal)?;
    let content = units::bytes(summary.image_bytes);
    output.result(&summary, || {
        let stays = format!("{content} of content stay in {}\n", shown(&arguments.source));
        format!("{}{stays}{}{}", head(&summary), entry_points(&summary), tail(&summary))
    })
}

fn keys(dataset: &Path, stop: &Stop, output: Output) -> anyhow::Result<()> {
    let mut bar = Progress::new("indexing keys", "samples", 0);
    let made = index_keys(dataset, &stop.flag(), &mut |progress| {
        bar.set(progress.samples_done, progress.samples);
    });
    let summary = made.map_err(as_signal)?;
    output.result(&summary, || {
        let (path, bytes) = (shown(&summary.path), units::bytes(summary.bytes));
        format!("{path}: {} keys, {bytes}\n", summary.keys)
    })
}
