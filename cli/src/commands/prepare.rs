//! `meetpoint prepare`: a dataset of the results of the first operations of a recipe.

use super::part_rule::PartRuleArguments;
use crate::surface::choice::choice;
use crate::surface::failure::{Fault, Interrupted};
use crate::surface::progress::Progress;
use crate::surface::{Output, Stop, units};
use meetpoint_datasets::OnError;
use meetpoint_datasets::shards::PlanFolder;
use meetpoint_datasets::writer::provenance_time;
use meetpoint_diagnose::shown;
use meetpoint_format::recipe::Recipe;
use meetpoint_planner::materialize::sharded::plan_prepare;
use meetpoint_planner::{Codec, Error, PrepareOptions, PrepareSummary, find_cut, materialize};
use meetpoint_prepare::Dataset;
use std::path::PathBuf;

/// Default quality of pictures that are encoded as JPEG again.
const QUALITY: &str = "95";

/// Execute the first operations of a recipe once, and store the results for all epochs.
///
/// The result is a dataset for the same recipe: `run`, `show` and the Python loader recognise the
/// operations that were executed and apply only the rest, with the same bits. A recipe that begins
/// with other operations is refused. `meetpoint profile` measures which cut is the fastest. The
/// dataset appears complete or not at all.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint prepare train.toml photos.set prepared.set --cut resize
  meetpoint prepare train.toml photos.set prepared.set --cut 2 --codec zstd
  meetpoint prepare train.toml photos.set small.set --cut 2-resize --lossy-jpeg 90
  meetpoint prepare train.toml photos.set prepared.set --cut 2 --resume")]
pub(crate) struct Arguments {
    /// Recipe in TOML, or the name of one that comes with Meetpoint.
    recipe: PathBuf,
    /// Folder of the dataset.
    dataset: PathBuf,
    /// Folder of the dataset to create.
    destination: PathBuf,
    /// Last operation to execute in advance: its number, counted from 1, its name, or the name that
    /// `meetpoint profile` lists. No operation up to it may have random parameters.
    #[arg(long, value_name = "N|NAME")]
    cut: String,
    /// Compression of each sample: zstd is smallest, lz4 fast, none needs no time.
    #[arg(long, default_value = "none", value_name = "CODEC",
          value_parser = choice::<Codec>())]
    codec: Codec,
    /// Encode pictures as JPEG again, with this quality (1 to 100). Much smaller, but loses detail:
    /// batches differ from those of the source.
    #[arg(long, value_name = "QUALITY", num_args = 0..=1, default_missing_value = QUALITY,
          value_parser = clap::value_parser!(u8).range(1..=100), conflicts_with = "codec")]
    lossy_jpeg: Option<u8>,
    /// Replace an existing dataset.
    #[arg(long)]
    force: bool,
    /// Resume the same command, with the same source and options, if it was killed; if this one is
    /// stopped, retain its work for the next.
    #[arg(long)]
    resume: bool,
    /// How to handle samples that cannot be read or decoded: list them and fail, or list and skip
    /// them.
    #[arg(long, default_value = "fail", value_name = "WHAT",
          value_parser = choice::<OnError>())]
    on_error: OnError,
    /// Bytes of content after which a new part begins.
    #[arg(long, default_value = "256MiB", value_name = "SIZE", value_parser = units::parse_bytes,
          conflicts_with_all = ["part_samples", "part_source_bytes"])]
    part_size: u64,
    #[command(flatten)]
    rule: PartRuleArguments,
    /// Threads; 0 for one per core.
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let (recipe, dataset, options) = inputs(arguments, &Stop::install()?)?;
    let mut bar = Progress::new("preparing", "samples", 0);
    let prepared = materialize(&dataset, &recipe, &arguments.destination, &options, &mut |it| {
        bar.set(it.done, it.samples);
    });
    drop(bar);
    let summary = prepared.map_err(failure)?;
    output.result(&summary, || text(&summary))
}

/// Plans the same in shards.
pub(super) fn plan(arguments: &Arguments, shards: u64) -> anyhow::Result<PlanFolder> {
    let (recipe, dataset, options) = inputs(arguments, &Stop::install()?)?;
    let planned = plan_prepare(&dataset, &recipe, &arguments.destination, &options, shards);
    planned.map_err(failure)
}

fn inputs(arguments: &Arguments, stop: &Stop) -> anyhow::Result<(Recipe, Dataset, PrepareOptions)> {
    let recipe = super::recipe::read(&arguments.recipe, &[])?;
    let is_jpeg = arguments.lossy_jpeg.is_some();
    let point = find_cut(&recipe, &arguments.cut, is_jpeg)
        .map_err(|error| anyhow::Error::from(Fault::usage_of(&error)))?;
    let dataset = Dataset::open(&arguments.dataset)?;
    let mut options = PrepareOptions {
        force: arguments.force,
        resume: arguments.resume,
        on_error: arguments.on_error,
        part_bytes_target: arguments.part_size,
        part_rule: arguments.rule.rule(),
        time: Some(provenance_time()?),
        threads: arguments.threads,
        stop: stop.flag(),
        ..PrepareOptions::new(point, arguments.codec)
    };
    options.jpeg_quality = arguments.lossy_jpeg.unwrap_or(options.jpeg_quality);
    Ok((recipe, dataset, options))
}

/// The failure as the program reports it: a signal as an interruption, an invalid option as usage.
pub(super) fn failure(error: Error) -> anyhow::Error {
    match error {
        Error::Stopped => Interrupted.into(),
        Error::Datasets(error) | Error::Unreadable(error) => match *error {
            meetpoint_datasets::Error::Interrupted => Interrupted.into(),
            error => error.into(),
        },
        Error::Dataset(error) => error.into(),
        error @ Error::Number { .. } => Fault::usage_of(&error).into(),
        error => error.into(),
    }
}

pub(super) fn text(summary: &PrepareSummary) -> String {
    let mut text = format!(
        "{}: {}, {} in {}\n",
        shown(&summary.destination),
        units::count(summary.samples, "sample"),
        units::bytes(summary.file_bytes),
        units::count(summary.parts, "part"),
    );
    let times = summary.stored_bytes as f64 / summary.source_bytes.max(1) as f64;
    text.push_str(&format!(
        "cut {}: {} of samples for {} of the source ({times:.2} times)\n",
        summary.cut,
        units::bytes(summary.stored_bytes),
        units::bytes(summary.source_bytes),
    ));
    if let Some(quality) = summary.prepared.jpeg_quality {
        text.push_str(&format!(
            "pictures are JPEGs of quality {quality}: batches differ from those of the source\n"
        ));
    }
    if summary.parts_resumed > 0 {
        let parts = units::count(summary.parts_resumed, "part");
        text.push_str(&format!("{parts} retained from the interrupted run\n"));
    }
    if !summary.unreadable.is_empty() {
        let count = summary.unreadable.len() as u64;
        text.push_str(&format!("{}, left out:\n", units::count(count, "unreadable sample")));
    }
    for sample in &summary.unreadable {
        text.push_str(&format!("  {sample}\n"));
    }
    for note in &summary.notes {
        text.push_str(&format!("{note}\n"));
    }
    for path in &summary.cleaned {
        text.push_str(&format!("removed {}, left by a process that was killed\n", shown(path)));
    }
    text
}
