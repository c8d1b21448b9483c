//! `meetpoint dataset select`: the samples of a dataset that match.

use super::{WriteArguments, with_bar, written};
use crate::surface::{Output, Stop};
use meetpoint_datasets::operations::{self, Selection};
use meetpoint_datasets::options::parse_range;
use std::ops::Range;
use std::path::PathBuf;

/// Write the samples of a dataset with certain labels, keys or indices.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint dataset select photos.set pets.set --label cat --label dog
  meetpoint dataset select photos.set rest.set --key 'scans/**' --invert
  meetpoint dataset select photos.set first.set --range ..1000")]
pub(super) struct Arguments {
    /// Folder of the dataset.
    dataset: PathBuf,
    /// Folder of the dataset to create.
    destination: PathBuf,
    #[command(flatten)]
    selection: SelectionArguments,
    #[command(flatten)]
    write: WriteArguments,
}

/// Which samples match.
#[derive(Debug, clap::Args)]
pub(super) struct SelectionArguments {
    /// Samples with this label; give it several times for any of several labels.
    #[arg(long, value_name = "NAME")]
    label: Vec<String>,
    /// Samples whose key matches this pattern; give it several times for any of several patterns. *
    /// is any text without /, ** any folders, ? one character, [abc] one of these.
    #[arg(long, value_name = "PATTERN")]
    key: Vec<String>,
    /// Samples in this half-open range of indices: 100..200, ..200, 100..
    #[arg(long, value_name = "FROM..TO", value_parser = parse_range)]
    range: Option<Range<u64>>,
    /// Select the samples that do not match.
    #[arg(long)]
    invert: bool,
}

impl SelectionArguments {
    pub(super) fn selection(&self) -> Selection {
        Selection {
            labels: self.label.clone(),
            keys: self.key.clone(),
            range: self.range.clone(),
            invert: self.invert,
        }
    }
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let stop = Stop::install()?;
    let options = arguments.write.options(&stop);
    let (from, to) = (&arguments.dataset, &arguments.destination);
    let selection = arguments.selection.selection();
    let summary = with_bar("selecting", |progress| {
        operations::select(from, to, &selection, &options, progress)
    })?;
    output.result(&summary, || written(&summary))
}
