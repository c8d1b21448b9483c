//! `meetpoint dataset head` and `cat`: the rows of a dataset, one per line.

use super::as_signal;
use super::select::SelectionArguments;
use crate::surface::{Output, units};
use meetpoint_datasets::operations::{self, Selection, ShownRow};
use meetpoint_diagnose::printable;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Characters of a value that a line of text shows.
const VALUE_CHARACTERS_MAX: usize = 40;

/// Show the first rows of a dataset: key, label, sizes, columns.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: meetpoint dataset head photos.set -n 3")]
pub(super) struct HeadArguments {
    /// Folder of the dataset.
    dataset: PathBuf,
    /// Number of rows to show.
    #[arg(short, long, default_value_t = 10)]
    n: u64,
    #[command(flatten)]
    columns: ColumnArguments,
}

/// Show all or selected rows of a dataset: key, label, sizes, columns.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint dataset cat photos.set --label cat
  meetpoint dataset cat photos.set --columns caption --json | jq .columns.caption")]
pub(super) struct Arguments {
    /// Folder of the dataset.
    dataset: PathBuf,
    /// Maximum number of rows to show.
    #[arg(short, long)]
    n: Option<u64>,
    #[command(flatten)]
    selection: SelectionArguments,
    #[command(flatten)]
    columns: ColumnArguments,
}

/// Which columns are shown. With --json, each row is one line with a JSON document that has full
/// values.
#[derive(Debug, clap::Args)]
struct ColumnArguments {
    /// Show only these columns besides the key, separated by commas; "" for none.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    columns: Option<Vec<String>>,
}

pub(super) fn head(arguments: &HeadArguments, output: Output) -> anyhow::Result<()> {
    show(&arguments.dataset, &Selection::default(), arguments.n, &arguments.columns, output)
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let selection = arguments.selection.selection();
    let most = arguments.n.unwrap_or(u64::MAX);
    show(&arguments.dataset, &selection, most, &arguments.columns, output)
}

fn show(
    dataset: &Path,
    selection: &Selection,
    most: u64,
    columns: &ColumnArguments,
    output: Output,
) -> anyhow::Result<()> {
    let mut only = columns.columns.clone();
    if let Some(names) = &mut only {
        names.retain(|name| !name.is_empty());
    }
    let mut failed = None;
    operations::rows(dataset, selection, most, only.as_deref(), &mut |row| {
        let shown = output.stream(&row, || line(&row));
        Ok(shown.map_err(|error| failed = Some(error)).is_ok())
    })
    .map_err(as_signal)?;
    failed.map_or(Ok(()), Err)
}

/// A row as a line of text.
fn line(row: &ShownRow) -> String {
    let label = printable(row.label.as_deref().unwrap_or("-"));
    let mut line =
        format!("{}  {}  {label}  {}", row.sample, printable(&row.key), units::bytes(row.bytes));
    for (name, value) in &row.columns {
        let value = match value {
            Value::String(text) => printable(text),
            value => value.to_string(),
        };
        let mut shown: String = value.chars().take(VALUE_CHARACTERS_MAX).collect();
        if shown.len() < value.len() {
            shown.push('…');
        }
        line.push_str(&format!("  {name}={shown}"));
    }
    line
}
