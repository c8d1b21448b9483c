//! `meetpoint validate`: the simulator against the closed forms, the clock and recorded runs.

use super::bench::EmulatedBench;
use crate::surface::Output;
use crate::surface::output::table_style;
use crate::surface::progress::Progress;
use crate::surface::units::{count, seconds};
use anyhow::bail;
use meetpoint_lab::bench::{Bench, PHOTOGRAPHS, Pictures};
use meetpoint_lab::simulate::replay;
use meetpoint_lab::validate::{Document, closed, measured, text};

/// Samples in a batch.
const BATCH_SIZE: u32 = 8;

/// Compare the simulator with the closed forms, with measured times, and with recorded runs.
///
/// There are three checks: (a) simulated times agree with the closed forms within 0.1 % over a grid
/// of constants; (b) simulated times agree with times measured on the emulated device within 5 %
/// over a grid of w, t_s/t_c and t_g/t_c, with generated pictures, jobs and devices; (c) each
/// recorded run, replayed with the times of its own batches, takes the recorded time within 2 %. A
/// run whose emulated device missed its target is marked INVALID and does not count. The exit code
/// is 1 if a check fails.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint validate
  meetpoint validate --quick
  meetpoint validate --no-measure")]
pub(crate) struct Arguments {
    /// Check only a part of each grid, with two measured points instead of 24.
    #[arg(long)]
    quick: bool,
    /// Check the closed forms only; nothing is measured.
    #[arg(long, conflicts_with = "batches")]
    no_measure: bool,
    /// Number of batches in each measured epoch.
    #[arg(long, value_name = "N", default_value_t = 144,
          value_parser = clap::value_parser!(u32).range(8..=10_000))]
    batches: u32,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let mut bar = Progress::new("simulating", "points", 0);
    let closed_forms = closed::rows(arguments.quick, &mut |done, total| bar.set(done, total))?;
    drop(bar);
    let measured = match arguments.no_measure {
        true => (Vec::new(), Vec::new()),
        false => measure(arguments, output)?,
    };
    let document = Document::new(closed_forms, measured);
    let printed = output.result(&document, || {
        let not_measured = match arguments.no_measure {
            true => "nothing was measured (--no-measure)\n",
            false => "",
        };
        text(&document, table_style()) + not_measured
    });
    if document.failed.is_empty() { printed } else { bail!("{}", document.failed.join("; ")) }
}

fn measure(
    arguments: &Arguments,
    output: Output,
) -> anyhow::Result<(Vec<measured::Row>, Vec<replay::Row>)> {
    let bench = EmulatedBench::new()?;
    let pictures = arguments.batches * BATCH_SIZE;
    let kind = Pictures::Photographs;
    let material = bench.material("photos.set", kind, pictures, BATCH_SIZE, PHOTOGRAPHS)?;
    output.line(&format!(
        "this host prepares a batch of {BATCH_SIZE} in {}; each run has {}",
        seconds(material.prepare.as_secs_f64()),
        count(arguments.batches.into(), "batch")
    ));
    let points = measured::points(arguments.quick);
    let mut bar = Progress::new("measuring", "points", 0);
    measured::rows(&bench, &material, &points, &mut |done, total| bar.set(done, total))
}
