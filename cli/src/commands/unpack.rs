//! `meetpoint unpack`: a dataset becomes the folder of pictures that it was packed from, or files
//! that other loaders read.

use crate::surface::choice::choice;
use crate::surface::failure::{Fault, Interrupted};
use crate::surface::progress::Progress;
use crate::surface::{Output, Stop, units};
use meetpoint_datasets::{
    Error, LeftOut, OnError, Shards, SinkKind, UnpackOptions, UnpackSummary, unpack,
};
use meetpoint_diagnose::shown;
use std::path::{Path, PathBuf};

/// Unpack a dataset into a folder of its original files, or into the format of another loader.
///
/// Every sample is written byte for byte as it was packed, whatever the form in which it is stored;
/// class sub-folders are part of the keys. Only files that pack rewrote (progressive JPEGs, unless
/// --progressive keep was given) have different bytes, with the same pixels; they are counted.
/// Samples and columns that the format of --to cannot store are an error or listed. The folder
/// appears complete or not at all.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint unpack photos.set photos
  meetpoint unpack photos.set photos --on-error skip
  meetpoint unpack photos.set shards --to webdataset --shard-size 256MiB
  meetpoint unpack photos.set table --to parquet --without boxes")]
pub(crate) struct Arguments {
    /// Folder of the dataset.
    dataset: PathBuf,
    /// Folder to create; it may exist if it is empty.
    destination: PathBuf,
    #[command(flatten)]
    sink: SinkArguments,
}

/// The format and its options, for every command that writes one.
#[derive(Debug, clap::Args)]
pub(super) struct SinkArguments {
    /// Format to write.
    #[arg(long, default_value = "folder", value_name = "KIND",
          value_parser = choice::<SinkKind>())]
    to: SinkKind,
    /// Size after which a new file begins. By default 1 GiB for webdataset, 512 MiB for parquet,
    /// 128 MiB for tfrecord, and 64 MiB for mds, which holds a file in memory.
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    shard_size: Option<u64>,
    /// Number of samples after which a new file begins.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    shard_samples: Option<u64>,
    /// Further columns to leave out.
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    without: Vec<String>,
    /// Replace an existing folder, if it contains only files with names that are written again.
    #[arg(long)]
    force: bool,
    /// How to handle samples that are damaged or that the format cannot store: list them and fail,
    /// or list and skip them.
    #[arg(long, default_value = "fail", value_name = "WHAT",
          value_parser = choice::<OnError>())]
    on_error: OnError,
    /// Threads that read and write; 0 for one per core.
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
}

impl SinkArguments {
    /// Whether a limit for the size of the files is given.
    pub(super) fn has_limits(&self) -> bool {
        self.shard_size.is_some() || self.shard_samples.is_some()
    }

    /// The options of the library.
    pub(super) fn options(&self, stop: &Stop) -> UnpackOptions {
        UnpackOptions {
            sink: self.to,
            shards: Shards::after(self.shard_size, self.shard_samples),
            without: self.without.clone(),
            force: self.force,
            on_error: self.on_error,
            threads: self.threads,
            stop: stop.flag(),
        }
    }
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let stop = Stop::install()?;
    let options = arguments.sink.options(&stop);
    let mut bar = Progress::new("unpacking", "samples", 0);
    let unpacked = unpack(&arguments.dataset, &arguments.destination, &options, &mut |progress| {
        bar.set(progress.samples_done, progress.samples);
    });
    drop(bar);
    let summary = unpacked.map_err(failure)?;
    output.result(&summary, || text(&summary))
}

/// The error that the program reports.
pub(super) fn failure(error: Error) -> anyhow::Error {
    match error {
        Error::Interrupted => anyhow::Error::from(Interrupted),
        Error::ShardsWithoutUse { .. } => Fault::usage(error.to_string(), "leave them out").into(),
        error => error.into(),
    }
}

fn text(summary: &UnpackSummary) -> String {
    let counts = (summary.samples, summary.files, summary.bytes);
    let mut text = written(&summary.destination, summary.sink, counts);
    if summary.converted > 0 {
        text.push_str(&format!("{} restored from the coefficient form\n", summary.converted));
    }
    if summary.rewritten > 0 {
        text.push_str(&format!(
            "{} were re-written when they were packed: the same pixels, other bytes\n",
            summary.rewritten
        ));
    }
    text.push_str(&left_out(&summary.without, &summary.notes, &summary.damaged));
    text.push_str(&removed(&summary.cleaned));
    text
}

/// Describes what was written: samples, files and bytes.
pub(super) fn written(to: &Path, sink: SinkKind, counts: (u64, u64, u64)) -> String {
    let (samples, files, bytes) = counts;
    let to = shown(to);
    match sink {
        SinkKind::Folder => format!("{to}: {files} files, {}\n", units::bytes(bytes)),
        sink => format!(
            "{to}: {} as {} in {}, {}\n",
            units::count(samples, "sample"),
            sink.words(),
            units::count(files, "file"),
            units::bytes(bytes)
        ),
    }
}

/// Describes what was left out or changed.
pub(super) fn left_out(without: &[String], notes: &[String], damaged: &[LeftOut]) -> String {
    let mut text = String::new();
    if !without.is_empty() {
        text.push_str(&format!("without {}\n", without.join(", ")));
    }
    notes.iter().for_each(|note| text.push_str(&format!("note: {note}\n")));
    if !damaged.is_empty() {
        text.push_str(&format!("{} damaged, left out:\n", damaged.len()));
    }
    for sample in damaged {
        text.push_str(&format!("  {sample}\n"));
    }
    text
}

/// Describes the removed files of killed processes.
pub(super) fn removed(cleaned: &[PathBuf]) -> String {
    let line =
        |path: &PathBuf| format!("removed {}, left by a process that was killed\n", shown(path));
    cleaned.iter().map(line).collect()
}
