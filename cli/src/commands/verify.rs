//! `meetpoint verify`: checks that no bit of a dataset has changed since it was packed.

use crate::surface::failure::{Interrupted, Reported};
use crate::surface::progress::Progress;
use crate::surface::{Output, Stop, StoreArguments, units};
use meetpoint_datasets::shards::PlanFolder;
use meetpoint_datasets::verify::sharded::plan_verify;
use meetpoint_datasets::{Error, Problem, VerifyOptions, VerifyReport, verify_deep, verify_with};
use meetpoint_diagnose::{Command, Remedy, Surface, shown};
use meetpoint_format::dataset::MANIFEST_NAME;
use meetpoint_format::key_index::KEY_INDEX_NAME;
use meetpoint_host::StoreSettings;
use std::path::{Path, PathBuf};

/// Check every bit of a dataset, and name part, row and key of damaged samples.
///
/// Each part is compared with its SHA-256 and with its entry in dataset.json. Exit code 0:
/// undamaged; 1: damaged.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint verify photos.set
  meetpoint verify photos.set --deep
  meetpoint verify s3://bucket/photos.set")]
pub(crate) struct Arguments {
    /// Folder of the dataset, or its URL.
    dataset: PathBuf,
    /// If the dataset is undamaged, also decode every sample, restore files from the coefficient
    /// form, compute the entry points again, and compare the results.
    #[arg(long)]
    deep: bool,
    /// Threads for --deep, and for the content of a dataset made by index; 0 for one per core.
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
    #[command(flatten)]
    store: StoreArguments,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let stop = Stop::install()?;
    let mut bar = Progress::new("verifying", "bytes", 0);
    let remote = arguments.store.options(&StoreSettings::default(), &stop);
    let options = VerifyOptions { threads: arguments.threads, stop: stop.flag(), remote };
    let looked = verify_with(&arguments.dataset, &options, &mut |progress| {
        bar.set(progress.bytes_done, progress.bytes);
    });
    drop(bar);
    let mut report = looked.map_err(as_signal)?;
    if arguments.deep && report.is_sound() {
        look_deeper(arguments, &stop, &mut report)?;
    }
    output.result(&report, || text(&report, &arguments.dataset))?;
    if report.is_sound() { Ok(()) } else { Err(Reported.into()) }
}

/// Plans to verify a dataset in shards.
pub(super) fn plan(dataset: &Path, shards: u64) -> anyhow::Result<PlanFolder> {
    plan_verify(dataset, shards).map_err(as_signal)
}

fn look_deeper(
    arguments: &Arguments,
    stop: &Stop,
    report: &mut VerifyReport,
) -> anyhow::Result<()> {
    let mut bar = Progress::new("decoding", "bytes", 0);
    let (path, flag) = (&arguments.dataset, stop.flag());
    let looked = verify_deep(path, arguments.threads, &flag, report, &mut |progress| {
        bar.set(progress.bytes_done, progress.bytes);
    });
    looked.map_err(as_signal)
}

/// Reports a signal as an interruption.
fn as_signal(error: Error) -> anyhow::Error {
    match error {
        Error::Interrupted => Interrupted.into(),
        error => error.into(),
    }
}

pub(super) fn text(report: &VerifyReport, dataset: &Path) -> String {
    let mut text = String::new();
    for problem in &report.problems {
        text.push_str(&format!("{problem}\n"));
        if let Some(remedy) = remedy(problem) {
            text.push_str(&format!("  remedy: {}\n", remedy.spelled(Surface::CommandLine)));
        }
    }
    let verdict = match report.problems.len() {
        0 => "sound".to_owned(),
        1 => "DAMAGED in 1 place".to_owned(),
        count => format!("DAMAGED in {count} places"),
    };
    text.push_str(&format!(
        "{}: {verdict} ({} samples in {} {}, {} checked)\n",
        shown(dataset),
        report.samples,
        report.parts,
        if report.parts == 1 { "part" } else { "parts" },
        units::bytes(report.bytes)
    ));
    if let Some(deep) = &report.deep {
        text.push_str(&format!(
            "{} samples decode, {} of them from the coefficient form; {} have the entry points of \
             their file\n",
            deep.decoded, deep.converted, deep.entry_points
        ));
    }
    for note in &report.notes {
        text.push_str(&format!("{note}\n"));
    }
    text
}

/// The remedy for a damaged file that is not a part.
fn remedy(problem: &Problem) -> Option<Remedy> {
    match problem.file.as_str() {
        KEY_INDEX_NAME => Some(Remedy::run(Command::IndexKeys)),
        MANIFEST_NAME => Some(Remedy::run(Command::Repair)),
        _ => None,
    }
}
