//! `meetpoint pack`: a source of samples becomes a dataset.

use super::part_rule::PartRuleArguments;
use super::source_arguments::SourceArguments;
use crate::surface::choice::choice;
use crate::surface::failure::{Fault, Interrupted};
use crate::surface::progress::Progress;
use crate::surface::transfer::Transfer;
use crate::surface::{Output, Stop, units};
use meetpoint_datasets::options::{parse_entry_points, parse_restart_interval};
use meetpoint_datasets::pack::sharded::plan_pack;
use meetpoint_datasets::shards::PlanFolder;
use meetpoint_datasets::source::{ContentKind, PixelStore};
use meetpoint_datasets::writer::provenance_time;
use meetpoint_datasets::{
    Check, Error, JpegOptions, LeftOut, OnError, PackOptions, PackSummary, Progressive,
    RestartMarkers, pack,
};
use meetpoint_diagnose::shown;
use meetpoint_format::dataset::{EntryPointSpacing, Form, RestartMarkersStored};
use std::path::{Path, PathBuf};

/// Pack a source of samples into a dataset: Arrow IPC files and dataset.json.
///
/// A source is a folder of pictures, or one of the kinds that --from lists; the kind is detected.
/// Content, keys, labels and any further columns are packed. Pictures are JPEG, PNG, WebP, BMP, GIF
/// (first frame), TIFF or binary PGM and PPM. They are stored byte for byte, except progressive
/// JPEGs, which are converted to baseline (file bytes change, pixels do not) unless --progressive
/// keep is given. In
/// a folder, sub-folders of the first level are classes; a folder without sub-folders has no
/// labels. Keys are relative paths, in natural order (file2 before file10). A URL (s3://, gs://,
/// az://, http://, https://) is read like a local source. The dataset appears complete or not at
/// all; `meetpoint unpack` restores the files.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint pack photos photos.set
  meetpoint pack photos photos.set --force --on-error skip
  meetpoint pack photos photos.set --form compact
  meetpoint pack photos photos.set --progressive keep --entry-points 8
  meetpoint pack photos photos.set --resume      resume a pack that was killed
  meetpoint pack s3://bucket/photos photos.set   credentials from AWS_ACCESS_KEY_ID and the like")]
pub(crate) struct Arguments {
    /// Folder or file with the samples, or its URL.
    source: PathBuf,
    /// Folder of the dataset to create.
    destination: PathBuf,
    /// Form in which JPEGs are stored: as files, or as coefficients, which decode faster and from
    /// which the same files are restored (compact: about as small as the file; fast: larger, the
    /// fastest). Other pictures are always stored as files.
    #[arg(long, default_value = "jpeg", value_name = "FORM",
          value_parser = choice::<Form>())]
    form: Form,
    /// How to store progressive JPEGs, which are slow to decode and cannot be decoded in part:
    /// transcode them to baseline without loss (file bytes change, pixels do not), or keep them.
    #[arg(long, default_value = "transcode", value_name = "WHAT",
          value_parser = choice::<Progressive>())]
    progressive: Progressive,
    /// Rewrite JPEGs with a restart marker every N MCUs, or after each row of MCUs, or with none
    /// (file bytes change, pixels do not). By default restart markers are not changed.
    #[arg(long, value_name = "N|row|none", value_parser = parse_restart_interval)]
    restart_interval: Option<RestartMarkers>,
    /// Rewrite each JPEG with optimised Huffman tables (file bytes change, pixels do not).
    #[arg(long)]
    optimize_huffman: bool,
    /// How to store the pixels of a source that has no picture files, such as CIFAR and IDX. Every
    /// choice keeps all pixels; by default auto.
    #[arg(long, value_name = "HOW", value_parser = choice::<PixelStore>(),
          help_heading = "Options about the source")]
    store: Option<PixelStore>,
    /// Follow symbolic links that lead out of the source; by default they are unreadable samples.
    #[arg(long, help_heading = "Options about the source")]
    follow_links: bool,
    #[command(flatten)]
    pack: PackArguments,
}

/// How to make a dataset of a source, whether its content is copied or not.
#[derive(Debug, clap::Args)]
pub(super) struct PackArguments {
    /// Replace an existing dataset.
    #[arg(long)]
    force: bool,
    /// Resume the same command, with the same source and options, if it was killed. If this run is
    /// stopped, keep its work so that the next can resume. Without this option, the work of killed
    /// runs is removed.
    #[arg(long)]
    resume: bool,
    /// How to handle unreadable samples: list them and fail, or list and skip them.
    #[arg(long, default_value = "fail", value_name = "WHAT",
          value_parser = choice::<OnError>())]
    on_error: OnError,
    /// Entry points, at which decoding can start in the middle of a JPEG file, so that crops decode
    /// faster: at each row of MCUs, every N MCUs, or none. For rows they take about 0.2 % of the
    /// file.
    #[arg(long, default_value = "row", value_name = "row|N|none", value_parser = spacing)]
    entry_points: Spacing,
    /// How to check pictures: decode them, or only read their headers (faster, but rewritten and
    /// converted pictures are not compared with the file).
    #[arg(long, default_value = "decode", value_name = "HOW",
          value_parser = choice::<Check>())]
    check: Check,
    /// Bytes of content after which a new part begins. With several devices, each device holds
    /// whole parts.
    #[arg(long, default_value = "256MiB", value_name = "SIZE", value_parser = units::parse_bytes,
          conflicts_with_all = ["part_samples", "part_source_bytes"])]
    part_size: u64,
    #[command(flatten)]
    rule: PartRuleArguments,
    /// Threads that read and check; 0 for one per core.
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
    #[command(flatten)]
    of_source: SourceArguments,
}

impl PackArguments {
    /// The options of the library; JPEGs are not changed.
    pub(super) fn options(&self, stop: &Stop) -> anyhow::Result<PackOptions> {
        Ok(PackOptions {
            force: self.force,
            from: self.of_source.from.clone(),
            source: self.of_source.options(stop),
            resume: self.resume,
            time: Some(provenance_time()?),
            on_error: self.on_error,
            check: self.check,
            jpeg: JpegOptions { entry_points: self.entry_points.0, ..JpegOptions::default() },
            part_bytes_target: self.part_size,
            part_rule: self.rule.rule(),
            threads: self.threads,
            stop: stop.flag(),
            ..PackOptions::default()
        })
    }
}

/// Spacing of entry points, or none.
#[derive(Debug, Clone, Copy)]
struct Spacing(Option<EntryPointSpacing>);

fn spacing(text: &str) -> Result<Spacing, String> {
    parse_entry_points(text).map(Spacing)
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let options = options(arguments, &Stop::install()?)?;
    let summary = pack_with_bar(&arguments.source, &arguments.destination, &options)?;
    output.result(&summary, || text(&summary))
}

/// Plans this command in shards.
pub(super) fn plan(arguments: &Arguments, shards: u64) -> anyhow::Result<PlanFolder> {
    let options = options(arguments, &Stop::install()?)?;
    plan_pack(&arguments.source, &arguments.destination, &options, shards).map_err(as_signal)
}

fn options(arguments: &Arguments, stop: &Stop) -> anyhow::Result<PackOptions> {
    let mut options = arguments.pack.options(stop)?;
    options.source.follow_links = arguments.follow_links;
    options.source.store = arguments.store;
    options.jpeg = JpegOptions {
        form: arguments.form,
        progressive: arguments.progressive,
        restarts: arguments.restart_interval.unwrap_or_default(),
        optimise_huffman: arguments.optimize_huffman,
        ..options.jpeg
    };
    Ok(options)
}

/// Packs under a progress bar; a signal is reported as such.
pub(crate) fn pack_with_bar(
    source: &Path,
    destination: &Path,
    options: &PackOptions,
) -> anyhow::Result<PackSummary> {
    let mut bar = Progress::new("packing", "samples", 0);
    let mut transfer = Transfer::of(source, &options.source.remote.watch);
    let packed = pack(source, destination, options, &mut |progress| {
        if progress.samples_done > 0 {
            transfer.end();
        }
        match progress.samples {
            Some(samples) => bar.set(progress.samples_done, samples),
            None => bar.set_open(progress.samples_done),
        }
    });
    packed.map_err(as_signal)
}

/// Reports a signal as an interruption, and an invalid option as wrong usage.
pub(super) fn as_signal(error: Error) -> anyhow::Error {
    match error {
        Error::Interrupted => Interrupted.into(),
        Error::SampleLimit { .. } => Fault::usage_of(&error).into(),
        error => error.into(),
    }
}

/// How many pictures were converted.
fn conversion(summary: &PackSummary) -> String {
    let stored = &summary.stored;
    if summary.kind != ContentKind::Image {
        return format!("{}, stored as they are\n", units::bytes(summary.image_bytes));
    }
    let mut text = format!(
        "{} in, {} out ({:.3} times), form {}\n",
        units::bytes(stored.source_bytes),
        units::bytes(summary.image_bytes + stored.entry_points.bytes),
        summary.ratio,
        stored.form.name()
    );
    if stored.form != Form::Jpeg {
        text.push_str(&format!("{} converted\n", stored.converted));
    }
    if stored.transcoded > 0 {
        text.push_str(&format!(
            "{} progressive JPEGs transcoded to baseline: other bytes, the same pixels\n",
            stored.transcoded
        ));
    }
    if stored.rewritten > stored.transcoded {
        let others = stored.rewritten - stored.transcoded;
        text.push_str(&format!("{others} re-written: other bytes, the same pixels\n"));
    }
    if let Some(restarts) = &stored.restart_markers {
        text.push_str(&restart_markers(restarts));
    }
    for (reason, count) in &stored.kept {
        text.push_str(&format!("{count} kept as they were: {}\n", reason.words()));
    }
    text.push_str(&entry_points(summary));
    text
}

/// Describes the restart markers that were inserted, replaced or removed.
fn restart_markers(restarts: &RestartMarkersStored) -> String {
    let RestartMarkersStored { inserted, had_before, .. } = restarts;
    let mut text = String::new();
    if *inserted > 0 {
        text.push_str(&format!(
            "restart markers in {}: {} bytes more than without them ({:.2} %)\n",
            units::count(*inserted, "file"),
            restarts.growth_bytes(),
            restarts.growth_percent()
        ));
    }
    if *had_before > 0 {
        let done = if *inserted > 0 { "replaced" } else { "removed" };
        let files = units::count(*had_before, "file");
        text.push_str(&format!("{files} had restart markers before, which were {done}\n"));
    }
    text
}

/// Describes the entry points.
pub(super) fn entry_points(summary: &PackSummary) -> String {
    let entry_points = &summary.stored.entry_points;
    if entry_points.spacing.is_none() {
        return String::new();
    }
    format!(
        "entry points for {} of {}: {}, {:.2} % of the files\n",
        entry_points.samples,
        summary.samples,
        units::bytes(entry_points.bytes),
        100.0 * entry_points.bytes as f64 / summary.stored.source_bytes.max(1) as f64
    )
}

pub(super) fn text(summary: &PackSummary) -> String {
    format!("{}{}{}", head(summary), conversion(summary), tail(summary))
}

/// Describes the dataset that was written.
pub(super) fn head(summary: &PackSummary) -> String {
    let mut text = format!(
        "{}: {}, {} in {}",
        shown(&summary.destination),
        units::count(summary.samples, "sample"),
        units::bytes(summary.file_bytes),
        units::count(summary.parts, "part")
    );
    match summary.labels.len() {
        0 => text.push_str(", no labels\n"),
        1 => text.push_str(", 1 label\n"),
        labels => text.push_str(&format!(", {labels} labels\n")),
    }
    match summary.columns.len() {
        0 => (),
        1 => text.push_str(&format!("1 further column: {}\n", summary.columns[0])),
        count => {
            let names = summary.columns.join(", ");
            text.push_str(&format!("{count} further columns: {names}\n"));
        }
    }
    for label in &summary.unused_labels {
        text.push_str(&format!("{label}\n"));
    }
    text
}

/// Describes what was left out, and what happened to files that existed before.
pub(super) fn tail(summary: &PackSummary) -> String {
    let mut text = String::new();
    if summary.parts_resumed > 0 {
        text.push_str(&format!("{} of the parts already existed\n", summary.parts_resumed));
    }
    let mut list = |one: &str, many: &str, files: &[LeftOut]| {
        match files.len() {
            0 => (),
            1 => text.push_str(&format!("1 {one}, left out:\n")),
            count => text.push_str(&format!("{count} {many}, left out:\n")),
        }
        for file in files {
            text.push_str(&format!("  {file}\n"));
        }
    };
    list("unreadable sample", "unreadable samples", &summary.unreadable);
    list("file that is not a sample", "files that are not samples", &summary.not_samples);
    match summary.ignored {
        0 => (),
        1 => text.push_str("1 hidden or side file ignored\n"),
        files => text.push_str(&format!("{files} hidden or side files ignored\n")),
    }
    for note in &summary.notes {
        text.push_str(&format!("{note}\n"));
    }
    for path in &summary.cleaned {
        text.push_str(&format!("removed {}, left by a pack that was killed\n", shown(path)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{RestartMarkersStored, restart_markers};

    #[test]
    fn restart_markers_are_described_with_their_growth_and_the_markers_of_before() {
        let inserted =
            RestartMarkersStored { inserted: 2, had_before: 1, bytes: 1030, bytes_without: 1000 };
        assert_eq!(
            restart_markers(&inserted),
            "restart markers in 2 files: 30 bytes more than without them (3.00 %)\n\
             1 file had restart markers before, which were replaced\n"
        );
        let removed = RestartMarkersStored { had_before: 3, ..RestartMarkersStored::default() };
        assert_eq!(
            restart_markers(&removed),
            "3 files had restart markers before, which were removed\n"
        );
        assert_eq!(restart_markers(&RestartMarkersStored::default()), "");
    }
}
