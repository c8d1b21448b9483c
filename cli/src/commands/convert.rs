//! `meetpoint convert`: a source becomes files that other loaders read, without a dataset between.

use super::part_rule::PartRuleArguments;
use super::source_arguments::SourceArguments;
use super::unpack::{SinkArguments, failure, left_out, removed, written};
use crate::surface::failure::Fault;
use crate::surface::progress::Progress;
use crate::surface::transfer::Transfer;
use crate::surface::{Output, Stop};
use meetpoint_datasets::shards::{PartRule, PlanFolder};
use meetpoint_datasets::source;
use meetpoint_datasets::unpack::sharded::{convert_by_rule, plan_convert};
use meetpoint_datasets::{ConvertProgress, ConvertSummary, convert};
use std::path::PathBuf;

/// Convert a source into another format: from any format that `pack` reads into any that `unpack`
/// writes.
///
/// The bytes of each sample are copied without decoding, with keys, labels and further columns.
/// Samples and columns that the format of --to cannot store are an error or listed. The folder
/// appears complete or not at all.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint convert photos shards --to webdataset
  meetpoint convert train.parquet photos --to folder
  meetpoint convert shards table --from tar --to parquet")]
pub(crate) struct Arguments {
    /// Source to read: a file, a folder or a URL.
    source: PathBuf,
    /// Folder to create; it may exist if it is empty.
    destination: PathBuf,
    /// Follow symbolic links that lead out of the source; by default they are unreadable samples.
    #[arg(long, help_heading = "Options about the source")]
    follow_links: bool,
    #[command(flatten)]
    of_source: SourceArguments,
    #[command(flatten)]
    sink: SinkArguments,
    #[command(flatten)]
    rule: PartRuleArguments,
}

/// Plans the same in shards.
pub(super) fn plan(arguments: &Arguments, shards: u64) -> anyhow::Result<PlanFolder> {
    let stop = Stop::install()?;
    let mut said = arguments.of_source.options(&stop);
    said.follow_links = arguments.follow_links;
    let (from, to) = (&arguments.source, &arguments.destination);
    let options = arguments.sink.options(&stop);
    let rule = rule(arguments)?.unwrap_or_default();
    let kind = arguments.of_source.from.as_deref();
    plan_convert(from, to, (kind, &said), &options, rule, shards).map_err(failure)
}

/// The rule by which files end, if one is given.
fn rule(arguments: &Arguments) -> anyhow::Result<Option<PartRule>> {
    let rule = arguments.rule.rule();
    if rule.is_some() && arguments.sink.has_limits() {
        let problem = "files end after parts or after shards, not both";
        return Err(Fault::usage(problem, "leave --shard-size and --shard-samples out").into());
    }
    Ok(rule)
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let stop = Stop::install()?;
    let options = arguments.sink.options(&stop);
    let mut said = arguments.of_source.options(&stop);
    said.follow_links = arguments.follow_links;
    let (from, to) = (&arguments.source, &arguments.destination);
    if let Some(rule) = rule(arguments)? {
        let mut bar = Progress::new("converting", "samples", 0);
        let kind = arguments.of_source.from.as_deref();
        let mut report = |progress: ConvertProgress| {
            bar.set(progress.samples_done, progress.size.samples.unwrap_or(0));
        };
        let converted = convert_by_rule(from, to, (kind, &said), &options, rule, &mut report);
        drop(bar);
        let summary = converted.map_err(failure)?;
        return output.result(&summary, || text(&summary));
    }
    let mut transfer = Transfer::of(from, &said.remote.watch);
    let opened = source::open(from, arguments.of_source.from.as_deref(), &said);
    let mut source = opened.map_err(failure)?;
    let mut bar = Progress::new("converting", "samples", 0);
    let converted = convert(source.as_mut(), from, to, &options, &mut |progress| {
        transfer.end();
        bar.set(progress.samples_done, progress.size.samples.unwrap_or(0));
    });
    drop(bar);
    let summary = converted.map_err(failure)?;
    output.result(&summary, || text(&summary))
}

pub(super) fn text(summary: &ConvertSummary) -> String {
    let counts = (summary.samples, summary.files, summary.bytes);
    let mut text = written(&summary.destination, summary.sink, counts);
    for label in &summary.unused_labels {
        text.push_str(&format!("{label}\n"));
    }
    text.push_str(&left_out(&summary.without, &summary.notes, &summary.damaged));
    if !summary.not_samples.is_empty() {
        text.push_str(&format!("{} files are not samples:\n", summary.not_samples.len()));
    }
    for other in &summary.not_samples {
        text.push_str(&format!("  {other}\n"));
    }
    if summary.ignored > 0 {
        text.push_str(&format!("{} hidden or side files\n", summary.ignored));
    }
    text.push_str(&removed(&summary.cleaned));
    text
}
