//! `meetpoint pack`: a folder of pictures becomes a dataset.

use crate::surface::failure::Interrupted;
use crate::surface::progress::Progress;
use crate::surface::{Output, Stop, units};
use meetpoint_datasets::{Check, Error, LeftOut, OnError, PackOptions, PackSummary, pack};
use std::path::{Path, PathBuf};

/// Pack a folder of pictures into a dataset: Arrow IPC files and dataset.json.
///
/// Pictures are JPEG, PNG, WebP, BMP, GIF (first frame) or TIFF and are stored byte for byte as
/// they are. Sub-folders of the first level are classes; a folder without sub-folders has no
/// labels. Keys are relative paths, in natural order (file2 before file10). The dataset appears
/// whole or not at all.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint pack photos photos.set
  meetpoint pack photos photos.set --force --on-error skip")]
pub(crate) struct Arguments {
    /// Folder of pictures.
    source: PathBuf,
    /// Folder of the dataset to make.
    destination: PathBuf,
    /// Replace a dataset that is there.
    #[arg(long)]
    force: bool,
    /// What to do about files that do not read: fail and list them, or skip and list them.
    #[arg(long, value_enum, default_value = "fail", value_name = "WHAT")]
    on_error: OnErrorName,
    /// What makes a file unreadable: it does not decode, or its header does not read (faster).
    #[arg(long, value_enum, default_value = "decode", value_name = "HOW")]
    check: CheckName,
    /// Threads that read and check; 0 takes as many as there are cores.
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum OnErrorName {
    Fail,
    Skip,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum CheckName {
    Decode,
    Header,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let stop = Stop::install()?;
    let options = PackOptions {
        force: arguments.force,
        on_error: match arguments.on_error {
            OnErrorName::Fail => OnError::Fail,
            OnErrorName::Skip => OnError::Skip,
        },
        check: match arguments.check {
            CheckName::Decode => Check::Decode,
            CheckName::Header => Check::Header,
        },
        threads: arguments.threads,
        stop: stop.flag(),
        ..PackOptions::default()
    };
    let summary = pack_with_bar(&arguments.source, &arguments.destination, &options)?;
    output.result(&summary, || text(&summary))
}

/// Packs under a progress bar; a signal is told as such.
pub(crate) fn pack_with_bar(
    source: &Path,
    destination: &Path,
    options: &PackOptions,
) -> anyhow::Result<PackSummary> {
    let mut bar = Progress::new("packing", "files", 0);
    let packed = pack(source, destination, options, &mut |progress| {
        bar.set(progress.files_done, progress.files);
    });
    packed.map_err(|error| match error {
        Error::Interrupted => Interrupted.into(),
        error => error.into(),
    })
}

fn text(summary: &PackSummary) -> String {
    let mut text = format!(
        "{}: {} samples, {} in {} {}",
        summary.destination.display(),
        summary.samples,
        units::bytes(summary.file_bytes),
        summary.parts,
        if summary.parts == 1 { "part" } else { "parts" }
    );
    match summary.labels.len() {
        0 => text.push_str(", no labels\n"),
        1 => text.push_str(", 1 label\n"),
        labels => text.push_str(&format!(", {labels} labels\n")),
    }
    let mut list = |title: &str, files: &[LeftOut]| {
        if !files.is_empty() {
            text.push_str(&format!("{} {title}:\n", files.len()));
        }
        for file in files {
            text.push_str(&format!("  {}: {}\n", file.path, file.reason));
        }
    };
    list("unreadable, left out", &summary.unreadable);
    list("not pictures, left out", &summary.not_images);
    if summary.ignored > 0 {
        text.push_str(&format!("{} hidden or side files ignored\n", summary.ignored));
    }
    for path in &summary.cleaned {
        text.push_str(&format!("removed {}, left by a pack that was killed\n", path.display()));
    }
    text
}
