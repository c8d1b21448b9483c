//! `meetpoint dataset diff`: the differences between two datasets.

use super::with_bar;
use crate::surface::failure::Reported;
use crate::surface::{Output, Stop, units};
use meetpoint_datasets::operations::{self, DiffOptions, Difference, Keys};
use meetpoint_diagnose::shown;
use std::path::PathBuf;

/// Compare two datasets sample by sample, by their keys.
///
/// Reports samples that only one dataset has, and differences in contents, labels (by name),
/// columns and order. A file and its coefficient form are equal. Exit code 0: no difference; 1:
/// they differ.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: meetpoint dataset diff old.set new.set")]
pub(super) struct Arguments {
    /// Folder of the first dataset.
    left: PathBuf,
    /// Folder of the second dataset.
    right: PathBuf,
    /// Maximum number of samples listed for each kind of difference; all are counted.
    #[arg(long, default_value_t = 100, value_name = "N")]
    list: usize,
    /// Do not read contents whose lengths and checksums are equal.
    #[arg(long)]
    trust_checksums: bool,
    /// Threads that read; 0 for one per core.
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let stop = Stop::install()?;
    let flag = stop.flag();
    let options = DiffOptions {
        named_max: arguments.list,
        trust_checksums: arguments.trust_checksums,
        threads: arguments.threads,
    };
    let found = with_bar("comparing", |progress| {
        operations::diff(&arguments.left, &arguments.right, &options, &flag, progress)
    })?;
    output.result(&found, || text(&found))?;
    if found.is_empty() { Ok(()) } else { Err(Reported.into()) }
}

fn text(found: &Difference) -> String {
    let mut text = String::new();
    for (mark, path, keys) in
        [("-", &found.left, &found.only_left), ("+", &found.right, &found.only_right)]
    {
        text.push_str(&only(mark, &shown(path).to_string(), keys));
    }
    if found.changed > 0 {
        text.push_str(&format!("{}:\n", units::count(found.changed, "changed sample")));
    }
    for changed in &found.changed_named {
        text.push_str(&format!("  {}: {}\n", changed.key, changed.what.join(", ")));
    }
    text.push_str(&more(found.changed, found.changed_named.len()));
    if let Some(columns) = &found.columns {
        text.push_str(&format!("columns differ: {columns}\n"));
    }
    if found.label_names {
        text.push_str("names or order of labels differ\n");
    }
    if let Some(moved) = &found.order {
        text.push_str(&format!(
            "the order differs, first at {} (sample {} and {})\n",
            moved.key, moved.left, moved.right
        ));
    }
    let verdict = if found.is_empty() { "no difference" } else { "they differ" };
    text.push_str(&format!("{verdict}; {} the same", units::count(found.same, "sample")));
    if found.other_form > 0 {
        text.push_str(&format!(", {} of them in another form", found.other_form));
    }
    text + "\n"
}

fn only(mark: &str, path: &str, keys: &Keys) -> String {
    if keys.samples == 0 {
        return String::new();
    }
    let mut text = format!("{} only in {path}:\n", units::count(keys.samples, "sample"));
    for key in &keys.named {
        text.push_str(&format!("  {mark} {key}\n"));
    }
    text + &more(keys.samples, keys.named.len())
}

fn more(all: u64, named: usize) -> String {
    match all - named as u64 {
        0 => String::new(),
        more => format!("  and {more} more; --list N names more\n"),
    }
}
