//! `meetpoint reproduce`: compares our figures with the published figures of the paper.

use super::bench::EmulatedBench;
use crate::surface::Output;
use crate::surface::fault::Fault;
use crate::surface::output::table_style;
use crate::surface::progress::Progress;
use crate::surface::report_files::check_folder;
use anyhow::Context;
use meetpoint_diagnose::{Remedy, shown};
use meetpoint_lab::reproduce::document::{Document, LeftOut, page, text};
use meetpoint_lab::reproduce::{energy, experiments, measured};
use meetpoint_report::write::place;
use std::path::{Path, PathBuf};

/// The option that enables measurements.
const WHAT_MEASURES: &str = "--measure";

/// Compare our figures with the published figures of DDLP.
///
/// Simulates the paper's experiments with the times that the published gains imply, and models
/// their energy. With --measure, also runs them on this machine with an emulated device (some
/// minutes). The report contains the published gains, the machines that would yield them, how the
/// emulated machine compares with these, the results that would refute the analysis, and the
/// unknown rows of the paper. Every row is marked as published, simulated, measured or modelled.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint reproduce
  meetpoint reproduce --measure
  meetpoint reproduce --measure --quick --report out")]
pub(crate) struct Arguments {
    /// Also run the experiments on this machine, with an emulated device.
    #[arg(long)]
    measure: bool,
    /// Measure the first setting only.
    #[arg(long, requires = "measure")]
    quick: bool,
    /// Number of batches in each measured epoch of photographs.
    #[arg(long, value_name = "N", default_value_t = 60, requires = "measure",
          value_parser = clap::value_parser!(u32).range(8..=10_000))]
    batches: u32,
    /// Folder for reproduction.json and reproduction.html.
    #[arg(long, default_value = "meetpoint-reproduction", value_name = "FOLDER")]
    report: PathBuf,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    check_folder(&arguments.report)?;
    let mut bar = Progress::new("simulating", "recipes", 0);
    let (simulated, refused) = experiments::rows(&mut |done, total| bar.set(done, total))?;
    drop(bar);
    let modelled = energy::rows(&experiments::settings())?;
    let measured = arguments.measure.then(|| measure(arguments, output)).transpose()?;
    let left_out = LeftOut {
        simulated: refused,
        measured: match measured {
            Some(_) => left_out(arguments.quick),
            None => Vec::new(),
        },
    };
    let document = Document::new(simulated, modelled, measured, left_out);
    let written = write(&document, &arguments.report);
    let printed = output.result(&document, || {
        let text = text(&document, table_style(), WHAT_MEASURES);
        match &written {
            Ok((json, html)) => format!("{text}report: {} and {}", shown(html), shown(json)),
            Err(_) => text,
        }
    });
    written?;
    printed
}

fn measure(arguments: &Arguments, output: Output) -> anyhow::Result<measured::Outcome> {
    let size = measured::Size { batches: arguments.batches, quick: arguments.quick };
    let bench = EmulatedBench::new()?;
    let photographs = measured::photographs(&bench, size)?;
    output.line(&measured::describe(&photographs));
    let mut bar = Progress::new("measuring", "settings", 0);
    measured::run(&bench, &photographs, size, &mut |done, total| bar.set(done, total))
}

/// Describes what is not measured, and why.
fn left_out(quick: bool) -> Vec<String> {
    let all = "all but the ImageNet-like recipe with w = 0 and the exact host path: --quick";
    let of_quick = quick.then(|| all.to_owned());
    measured::left_out().into_iter().chain(of_quick).collect()
}

fn write(document: &Document, folder: &Path) -> anyhow::Result<(PathBuf, PathBuf)> {
    let both = || -> anyhow::Result<(PathBuf, PathBuf)> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("failed to create folder {}", shown(folder)))?;
        let mut json = serde_json::to_string_pretty(document)?;
        json.push('\n');
        let json = place(folder, "reproduction.json", json.as_bytes())?;
        let page = page(document, WHAT_MEASURES);
        Ok((json, place(folder, "reproduction.html", page.as_bytes())?))
    };
    both().with_context(|| {
        let message = format!("the report could not be written to {}", shown(folder));
        let remedy = Remedy::advice("free space").or("name another folder with --report");
        Fault::new("report_not_written", message, remedy)
    })
}
