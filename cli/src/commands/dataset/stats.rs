//! `meetpoint dataset stats`: statistics of the samples of a dataset.

use super::with_bar;
use crate::surface::{Output, Stop, units};
use meetpoint_datasets::operations::{self, Distribution, Statistics};
use meetpoint_diagnose::shown;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Labels that the text lists; `--json` has them all.
const LABELS_LISTED: usize = 20;

/// Print statistics of a dataset: sizes, pixels, coding, labels, duplicates.
///
/// Reads every sample. Quantiles are accurate to 0.1 %. Unreadable samples are counted and named.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: meetpoint dataset stats photos.set")]
pub(super) struct Arguments {
    /// Folder of the dataset.
    dataset: PathBuf,
    /// Threads that read; 0 for one per core.
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let stop = Stop::install()?;
    let flag = stop.flag();
    let statistics = with_bar("counting", |progress| {
        operations::stats(&arguments.dataset, arguments.threads, &flag, progress)
    })?;
    output.result(&statistics, || text(&statistics))
}

fn text(found: &Statistics) -> String {
    let head = ["", "min", "5 %", "25 %", "median", "75 %", "95 %", "99 %", "max", "mean"];
    let mut text = format!(
        "{}: {}, {}\n{:<10}",
        shown(&found.path),
        units::count(found.samples, "sample"),
        units::bytes(found.bytes.sum),
        head[0]
    );
    for name in &head[1..] {
        text.push_str(&format!("{name:>11}"));
    }
    text.push('\n');
    text.push_str(&quantiles("size", &found.bytes, &|value| units::bytes(value as u64)));
    let number = |value: f64| format!("{value:.0}");
    if found.pixels.count > 0 {
        text.push_str(&quantiles("width", &found.width, &number));
        text.push_str(&quantiles("height", &found.height, &number));
        let megapixels = |value: f64| format!("{} MP", units::significant(value / 1e6));
        text.push_str(&quantiles("pixels", &found.pixels, &megapixels));
    }
    if !found.formats.is_empty() {
        text.push_str(&format!("formats     {}\n", counts(&found.formats)));
    }
    if found.jpegs > 0 {
        let percent = 100.0 * found.progressive as f64 / found.jpegs as f64;
        text.push_str(&format!(
            "JPEGs       {}, {} progressive ({percent:.1} %); {}\n",
            found.jpegs,
            found.progressive,
            counts(&found.subsampling)
        ));
    }
    for column in &found.columns {
        let (name, nulls) = (&column.name, column.nulls);
        text.push_str(&format!("column      {name}: {}, {nulls} null\n", column.type_words));
    }
    text.push_str(&labels(found));
    let duplicates = &found.duplicates;
    text.push_str(&format!(
        "duplicates  {} of {}, {}\n",
        units::count(duplicates.samples, "sample"),
        units::count(duplicates.groups, "content"),
        units::bytes(duplicates.bytes)
    ));
    for group in &duplicates.named {
        text.push_str(&format!("  {}\n", group.join(" = ")));
    }
    if found.damaged > 0 {
        let samples = units::count(found.damaged, "sample");
        let remedy = match found.is_in_place {
            true => "restore their files, or index the source again",
            false => "`meetpoint dataset repair` saves the rest",
        };
        text.push_str(&format!("DAMAGED     {samples}; {remedy}\n"));
    }
    for damaged in &found.damaged_named {
        text.push_str(&format!("  {}: {}\n", damaged.path, damaged.reason));
    }
    text
}

fn quantiles(name: &str, of: &Distribution, words: &dyn Fn(f64) -> String) -> String {
    let values = [of.min, of.p5, of.p25, of.p50, of.p75, of.p95, of.p99, of.max];
    let mut line = format!("{name:<10}");
    for value in values.map(|value| value as f64).into_iter().chain([of.mean]) {
        line.push_str(&format!("{:>11}", words(value)));
    }
    line + "\n"
}

fn counts(of: &BTreeMap<String, u64>) -> String {
    let words: Vec<String> = of.iter().map(|(name, count)| format!("{count} {name}")).collect();
    words.join(", ")
}

fn labels(found: &Statistics) -> String {
    let most = found.labels.iter().map(|label| label.samples).max().unwrap_or(0);
    let mut text = format!("labels      {}\n", found.labels.len());
    for label in found.labels.iter().take(LABELS_LISTED) {
        let bar = "#".repeat((label.samples * 30).div_ceil(most.max(1)) as usize);
        text.push_str(&format!("  {:>8}  {}  {bar}\n", label.samples, label.name));
    }
    if found.labels.len() > LABELS_LISTED {
        let more = found.labels.len() - LABELS_LISTED;
        text.push_str(&format!("  and {more} more; --json lists all\n"));
    }
    if found.unlabelled > 0 {
        text.push_str(&format!("  {:>8}  without a label\n", found.unlabelled));
    }
    text
}
