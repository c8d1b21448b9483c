//! `meetpoint validate`: the simulator against the closed forms, the clock and recorded runs.
//!
//! In reading order: this file (what is run, and the verdict), [`closed`], [`measured`],
//! [`bench`] (where it is measured).

pub(crate) mod bench;
mod closed;
mod measured;

use crate::commands::simulate::replay;
use crate::surface::Output;
use crate::surface::output::table_style;
use crate::surface::units::{count, seconds};
use anyhow::bail;
use bench::{Bench, Pictures};
use serde::Serialize;

/// Samples in a batch.
const BATCH_SIZE: u32 = 8;

/// Compare the simulator with the closed forms, with measured times, and with recorded runs.
///
/// Three checks: (a) simulated times agree with the closed forms to 0.1 % over a grid of constants;
/// (b) simulated and measured times on the emulated device agree to 5 % over a grid of w, t_s/t_c
/// and t_g/t_c, with generated pictures, jobs and devices; (c) each recorded run, replayed with the
/// times of its own batches, takes its recorded time to 2 %. A run whose emulated device missed its
/// target is marked INVALID and does not count. The exit code is 1 if a check fails.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint validate
  meetpoint validate --quick
  meetpoint validate --no-measure")]
pub(crate) struct Arguments {
    /// Check a part of each grid: two measured points instead of 24.
    #[arg(long)]
    quick: bool,
    /// Check the closed forms only; nothing is measured.
    #[arg(long, conflicts_with = "batches")]
    no_measure: bool,
    /// Batches of each measured epoch.
    #[arg(long, value_name = "N", default_value_t = 144,
          value_parser = clap::value_parser!(u32).range(8..=10_000))]
    batches: u32,
}

#[derive(Debug, Serialize)]
struct Document {
    kind: &'static str,
    closed_forms: Vec<closed::Row>,
    measured: Vec<measured::Row>,
    replayed: Vec<replay::Row>,
    failed: Vec<String>,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let closed_forms = closed::rows(arguments.quick)?;
    let (measured, replayed) = match arguments.no_measure {
        true => (Vec::new(), Vec::new()),
        false => measure(arguments, output)?,
    };
    let failed = failed(&closed_forms, &measured, &replayed);
    let document = Document { kind: "validation", closed_forms, measured, replayed, failed };
    let printed = output.result(&document, || text(&document));
    if document.failed.is_empty() { printed } else { bail!("{}", document.failed.join("; ")) }
}

fn measure(
    arguments: &Arguments,
    output: Output,
) -> anyhow::Result<(Vec<measured::Row>, Vec<replay::Row>)> {
    let bench = Bench::new()?;
    let pictures = arguments.batches * BATCH_SIZE;
    let recipe = super::demo::RECIPE;
    let material =
        bench.material("photos.set", Pictures::Photographs, pictures, BATCH_SIZE, recipe)?;
    output.line(&format!(
        "this host prepares a batch of {BATCH_SIZE} in {}; each run has {}",
        seconds(material.prepare.as_secs_f64()),
        count(arguments.batches.into(), "batch")
    ));
    measured::rows(&bench, &material, &measured::points(arguments.quick))
}

/// A sentence for each check that failed.
fn failed(
    closed_forms: &[closed::Row],
    measured: &[measured::Row],
    replayed: &[replay::Row],
) -> Vec<String> {
    let checks = [
        (
            closed_forms.iter().filter(|row| !row.holds).count(),
            closed_forms.len(),
            "simulated times are more than 0.1 % off their closed form",
        ),
        (
            measured.iter().filter(|row| row.is_off()).count(),
            measured.len(),
            "simulated times are more than 5 % off the measured ones",
        ),
        (
            replayed.iter().filter(|row| row.is_off()).count(),
            replayed.len(),
            "replays are more than 2 % off what was recorded",
        ),
    ];
    let wrong = checks.into_iter().filter(|(wrong, _, _)| *wrong > 0);
    wrong.map(|(wrong, all, what)| format!("{wrong} of {all} {what}")).collect()
}

fn text(document: &Document) -> String {
    let mut text = format!(
        "(a) Simulated against the closed forms: T/(N t_c), to {} % and the ends of an epoch\n{}",
        closed::WITHIN * 100.0,
        closed::grid(&document.closed_forms).text(table_style())
    );
    let rows = &document.measured;
    if rows.is_empty() {
        text.push_str("nothing was measured (--no-measure)\n");
        return text;
    }
    let (invalid, off, both) = (
        rows.iter().filter(|row| row.is_invalid()).count(),
        rows.iter().filter(|row| row.is_off()).count(),
        rows.iter().filter(|row| row.is_invalid_and_off()).count(),
    );
    text.push_str(&format!(
        "\n(b) Simulated against measured on the emulated device, to {} %; ratios as aimed for \
         (as measured)\n{}{} runs: {} within, {off} off, {invalid} INVALID (of which \
         {both} off as well). Simulated: from the mean times \
         of the run itself; foretold: from the calibration before it.\n",
        measured::WITHIN * 100.0,
        measured::grid(rows).text(table_style()),
        rows.len(),
        rows.len() - invalid - off,
    ));
    text.push_str(&format!(
        "\n(c) Recorded runs, replayed with the times of their own batches, to {} %\n{}",
        replay::WITHIN * 100.0,
        replay::text(&document.replayed)
    ));
    text
}
