//! The options that say where a report is written and in which formats.

use super::fault::Fault;
use anyhow::Context;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use meetpoint_diagnose::{Remedy, shown};
use meetpoint_report::Report;
use meetpoint_report::render::{DEFAULT_NAMES, RENDERERS, Renderer, renderer};
use meetpoint_report::write::{self, WriteError};
use std::path::{Path, PathBuf};

/// Where a report is written, and in which formats.
#[derive(Debug, clap::Args)]
pub(crate) struct ReportFiles {
    /// Folder for the files of the report.
    #[arg(long, default_value = "meetpoint-report", value_name = "FOLDER")]
    report: PathBuf,
    /// Formats of the report, one file each, separated by commas.
    #[arg(long, value_name = "FORMATS", value_delimiter = ',', value_parser = format_parser(),
          default_values = DEFAULT_NAMES)]
    report_format: Vec<Format>,
}

/// A format of a report.
#[derive(Clone, Copy)]
struct Format(&'static dyn Renderer);

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name())
    }
}

/// Parses the name of a format.
fn format_parser() -> impl TypedValueParser<Value = Format> {
    let known = |it: &dyn Renderer| {
        let help = format!("{} ({})", it.describe(), it.file_name());
        PossibleValue::new(it.name()).help(help)
    };
    let names = RENDERERS.map(known);
    PossibleValuesParser::new(names)
        .map(|name| Format(renderer(&name).expect("only names of formats are taken")))
}

/// Fails if a report could not be written to the folder of `--report`.
pub(crate) fn check_folder(folder: &Path) -> anyhow::Result<()> {
    write::check_folder(folder).with_context(|| {
        let message = format!("the report cannot be written to {}", shown(folder));
        Fault::new("report_not_written", message, "name another folder with --report")
    })
}

impl ReportFiles {
    /// Fails if the report cannot be written, before the work starts.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        check_folder(&self.report)
    }

    /// Writes the files, in the order of their formats; each once.
    pub(crate) fn write(&self, report: &Report) -> anyhow::Result<Vec<PathBuf>> {
        let mut renderers: Vec<&dyn Renderer> = Vec::new();
        for Format(renderer) in &self.report_format {
            if renderers.iter().all(|other| other.name() != renderer.name()) {
                renderers.push(*renderer);
            }
        }
        let written: Result<Vec<PathBuf>, WriteError> =
            write::write(report, &renderers, &self.report);
        written.with_context(|| {
            let message = format!("the report could not be written to {}", shown(&self.report));
            let remedy = Remedy::advice("free space").or("name another folder with --report");
            Fault::new("report_not_written", message, remedy)
        })
    }
}
