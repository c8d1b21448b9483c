//! `meetpoint unpack`: a dataset becomes the folder of pictures that it was packed from.

use crate::surface::failure::Interrupted;
use crate::surface::progress::Progress;
use crate::surface::{Output, Stop, units};
use meetpoint_datasets::{Error, OnError, UnpackOptions, UnpackSummary, unpack};
use std::path::PathBuf;

/// Unpack a dataset into the folder of pictures that it was packed from.
///
/// Every sample becomes a file under its key, byte for byte what was packed, whatever form it is
/// stored in; class sub-folders come with the keys. Only files that were re-written when they were
/// packed (progressive ones, unless --progressive keep was given) come back with other bytes and
/// the same pixels; they are counted. The folder appears whole or not at all.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint unpack photos.set photos
  meetpoint unpack photos.set photos --on-error skip")]
pub(crate) struct Arguments {
    /// Folder of the dataset.
    dataset: PathBuf,
    /// Folder to make; it may be there when it is empty.
    destination: PathBuf,
    /// Replace a folder that holds nothing but files and folders of the dataset.
    #[arg(long)]
    force: bool,
    /// What to do about damaged samples: fail and list them, or skip and list them.
    #[arg(long, value_enum, default_value = "fail", value_name = "WHAT")]
    on_error: super::pack::OnErrorName,
    /// Threads that read and write; 0 takes as many as there are cores.
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let stop = Stop::install()?;
    let options = UnpackOptions {
        force: arguments.force,
        on_error: OnError::from(arguments.on_error),
        threads: arguments.threads,
        stop: stop.flag(),
    };
    let mut bar = Progress::new("unpacking", "files", 0);
    let unpacked = unpack(&arguments.dataset, &arguments.destination, &options, &mut |progress| {
        bar.set(progress.samples_done, progress.samples);
    });
    drop(bar);
    let summary = unpacked.map_err(|error| match error {
        Error::Interrupted => anyhow::Error::from(Interrupted),
        error => error.into(),
    })?;
    output.result(&summary, || text(&summary))
}

fn text(summary: &UnpackSummary) -> String {
    let mut text = format!(
        "{}: {} files, {}\n",
        summary.destination.display(),
        summary.files,
        units::bytes(summary.bytes)
    );
    if summary.converted > 0 {
        text.push_str(&format!("{} came back from the coefficient form\n", summary.converted));
    }
    if summary.rewritten > 0 {
        text.push_str(&format!(
            "{} were re-written when they were packed: the same pixels, other bytes\n",
            summary.rewritten
        ));
    }
    if !summary.damaged.is_empty() {
        text.push_str(&format!("{} damaged, left out:\n", summary.damaged.len()));
    }
    for sample in &summary.damaged {
        text.push_str(&format!("  {}: {}\n", sample.path, sample.reason));
    }
    for path in &summary.cleaned {
        text.push_str(&format!("removed {}, left by a process that was killed\n", path.display()));
    }
    text
}
