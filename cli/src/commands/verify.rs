//! `meetpoint verify`: whether every bit of a dataset is as it was packed.

use crate::surface::failure::Reported;
use crate::surface::progress::Progress;
use crate::surface::{Output, units};
use meetpoint_datasets::VerifyReport;
use std::path::{Path, PathBuf};

/// Check every bit of a dataset, and name part, row and key of what is damaged.
///
/// Exit code 0: sound; 1: damaged.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: meetpoint verify photos.set")]
pub(crate) struct Arguments {
    /// Folder of the dataset.
    dataset: PathBuf,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let mut bar = Progress::new("verifying", "bytes", 0);
    let report = meetpoint_datasets::verify(&arguments.dataset, &mut |progress| {
        bar.set(progress.bytes_done, progress.bytes);
    })?;
    drop(bar);
    output.result(&report, || text(&report, &arguments.dataset))?;
    if report.is_sound() { Ok(()) } else { Err(Reported.into()) }
}

fn text(report: &VerifyReport, dataset: &Path) -> String {
    let mut text = String::new();
    for problem in &report.problems {
        text.push_str(&format!("{problem}\n"));
    }
    let verdict = match report.problems.len() {
        0 => "sound".to_owned(),
        1 => "DAMAGED in 1 place".to_owned(),
        count => format!("DAMAGED in {count} places"),
    };
    text.push_str(&format!(
        "{}: {verdict} ({} samples in {} {}, {} looked at)\n",
        dataset.display(),
        report.samples,
        report.parts,
        if report.parts == 1 { "part" } else { "parts" },
        units::bytes(report.bytes)
    ));
    text
}
