//! `meetpoint reproduce`: our figures beside those of the paper, as far as they are public.
//!
//! In reading order: [`paper`] (what is published, and what is not known), [`region`] (which
//! machines yield it), [`experiments`] (simulated), [`energy`] (modelled), [`measured`],
//! [`document`] (all of it, with its tables), [`pictures`], this file (the command).

mod document;
mod energy;
mod experiments;
mod measured;
mod paper;
mod pictures;
mod region;

use crate::surface::Output;
use crate::surface::chart_files as plots;
use crate::surface::fault::Fault;
use crate::surface::progress::Progress;
use crate::surface::report_files::check_folder;
use anyhow::Context;
use document::Document;
use meetpoint_diagnose::Remedy;
use meetpoint_report::write::place;
use std::path::{Path, PathBuf};

/// Compare our figures with the published ones of DDLP, as far as they are public.
///
/// Simulates its experiments at the points that the published headline implies, models the energy,
/// and with --measure runs them on this machine with an emulated device (some minutes). The report
/// has the headline, the machines that yield it, the position of the emulated one among them, the
/// results that would falsify it, and the unknown rows of the paper. Every row is marked as
/// published, simulated, measured or modelled.
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
    /// Batches of each measured epoch of photographs.
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
    let size = measured::Size { batches: arguments.batches, quick: arguments.quick };
    let measured = match arguments.measure {
        true => Some(measured::run(size, output)?),
        false => None,
    };
    let left_out = if arguments.measure { measured::left_out(size) } else { Vec::new() };
    let document = Document::new(
        simulated,
        modelled,
        measured,
        document::LeftOut { simulated: refused, measured: left_out },
    );
    let written = write(&document, &arguments.report);
    let printed = output.result(&document, || {
        let text = document::text(&document);
        match &written {
            Ok((json, html)) => format!("{text}report: {} and {}", html.display(), json.display()),
            Err(_) => text,
        }
    });
    written?;
    printed
}

fn write(document: &Document, folder: &Path) -> anyhow::Result<(PathBuf, PathBuf)> {
    let both = || -> anyhow::Result<(PathBuf, PathBuf)> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("failed to create folder {}", folder.display()))?;
        let mut json = serde_json::to_string_pretty(document)?;
        json.push('\n');
        let json = place(folder, "reproduction.json", json.as_bytes())?;
        let page = plots::page("DDLP, reproduced", document::LEAD, &document::sections(document)?);
        Ok((json, place(folder, "reproduction.html", page.as_bytes())?))
    };
    both().with_context(|| {
        let message = format!("the report could not be written to {}", folder.display());
        let remedy = Remedy::advice("free space").or("name another folder with --report");
        Fault::new("report_not_written", message, remedy)
    })
}
