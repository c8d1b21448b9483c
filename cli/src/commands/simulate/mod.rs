//! `meetpoint simulate`: an epoch in virtual time, decided by the scheduler that ships.
//!
//! In reading order: this file (what was asked for), [`quick`] (given constants beside the closed
//! forms), [`notes`] (the tables of the notes on DDLP).

pub(crate) mod constants;
pub(crate) mod notes;
pub(crate) mod quick;

use crate::surface::{Output, units};
use constants::{Constants, UNIT_NS};
use serde::Serialize;

/// Simulate an epoch in virtual time: the scheduler that ships, on a machine of your numbers.
///
/// With --t-c, --t-g and --t-s: the simulated times of every strategy of the paper beside their
/// closed forms. t_c is the time of a batch that the host prepares and trains on, t_g the
/// step on a batch that the device had ready, t_s the device's time for a batch; a number without a
/// unit is in seconds, and only their ratios matter.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint simulate --t-c 1 --t-g 0.375 --t-s 2
  meetpoint simulate --t-c 80ms --t-g 30ms --t-s 160ms --batches 625
  meetpoint simulate --table")]
#[command(group = clap::ArgGroup::new("what").required(true).args(["t_c", "table"]))]
pub(crate) struct Arguments {
    /// Time of a batch that the host prepares and trains on (with workers: of the interval).
    #[arg(long, value_name = "TIME", value_parser = parse_time, requires_all = ["t_g", "t_s"])]
    t_c: Option<f64>,
    /// Time of a step on a batch that the device had ready.
    #[arg(long, value_name = "TIME", value_parser = parse_time, requires = "t_c")]
    t_g: Option<f64>,
    /// Time of the device for a batch.
    #[arg(long, value_name = "TIME", value_parser = parse_time, requires = "t_c")]
    t_s: Option<f64>,
    /// Batches of the epoch.
    #[arg(long, value_name = "N", default_value_t = 5_000,
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    batches: u32,
    /// Background workers of the host, whose combined period is --t-c; 0: the consumer prepares.
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=1_024))]
    workers: u32,
    /// Print the tables of the notes on DDLP: their figures, ours by formula, ours simulated.
    #[arg(long)]
    table: bool,
}

/// `0.375` in units, or a time with its unit.
fn parse_time(text: &str) -> Result<f64, String> {
    let units = match text.trim().parse::<f64>() {
        Ok(number) => number,
        Err(_) => units::parse_duration(text)?.as_secs_f64(),
    };
    if units.is_finite() && (1e-6..=1e6).contains(&units) {
        return Ok(units);
    }
    Err(format!("\"{text}\" is no time of 1 µs to 1000000 s; write 0.375, 20ms or the like"))
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    if arguments.table {
        let rows = notes::rows()?;
        let document = Table { kind: "table", rows: &rows };
        return output.result(&document, || notes::text(&rows));
    }
    let times = arguments.t_c.zip(arguments.t_g).zip(arguments.t_s);
    let ((t_c, t_g), t_s) = times.expect("the group of arguments requires one, and it all three");
    let constants = if arguments.workers == 0 {
        Constants::serial(t_c, t_g, t_s, arguments.batches)
    } else {
        with_workers(t_c, t_g, t_s, arguments)
    };
    let document = quick::run(&constants)?;
    output.result(&document, || quick::text(&document))
}

/// p = t_c; the step is t_g, or t_c where the device's batches take longer than the interval.
fn with_workers(t_c: f64, t_g: f64, t_s: f64, arguments: &Arguments) -> Constants {
    let step = t_g.min(t_c);
    let given = Constants::background(t_c, step, t_s, arguments.workers, arguments.batches);
    Constants { direct_read_ns: (t_g - step) * UNIT_NS, ..given }
}

#[derive(Serialize)]
struct Table<'a> {
    kind: &'static str,
    rows: &'a [notes::Row],
}

#[cfg(test)]
mod tests {
    use super::parse_time;

    #[test]
    fn a_time_is_a_number_of_units_or_has_its_unit() {
        assert_eq!(parse_time("0.375"), Ok(0.375));
        assert_eq!(parse_time("20ms"), Ok(0.02));
        for wrong in ["0", "-1", "nan", "fast", "1e9"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }
}
