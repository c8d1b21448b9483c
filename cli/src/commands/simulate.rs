//! `meetpoint simulate`: an epoch in virtual time, with the scheduler that `run` uses.

use super::hosts_study::HostsArguments;
use crate::surface::chart_files::{ChartFormat, check_file, file, kind};
use crate::surface::fault::Fault;
use crate::surface::output::{notice, table_style};
use crate::surface::progress::Progress;
use crate::surface::{Output, units};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use meetpoint_diagnose::{Diagnose, Remedy, shown};
use meetpoint_lab::Error;
use meetpoint_lab::simulate::constants::{Constants, UNIT_NS};
use meetpoint_lab::simulate::load::Loaded;
use meetpoint_lab::simulate::study::Study;
use meetpoint_lab::simulate::{hosts, notes, picture, quick, replay, scenario, study, sweep};
use meetpoint_sim::scenario::Sweep;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Arguments that exclude the options of a scenario. `requires` is not enough, because clap does
/// not require an argument that conflicts with a given one, so the options would be ignored
/// silently.
const OTHERS: [&str; 4] = ["t_c", "table", "study", "trace"];
/// Arguments that exclude the options of constants.
const NO_CONSTANTS: [&str; 4] = ["scenario", "table", "study", "trace"];

/// Simulate epochs in virtual time, with the scheduler of `run` and a machine that you describe.
///
/// With a scenario file, simulates the machine that the file describes; --sweep varies its
/// parameters, and docs/simulation.md lists every key. With --t-c, --t-g and --t-s, prints the
/// simulated times of every strategy of the paper, compared with their closed forms. t_c is the
/// time in which the host prepares a batch and trains on it, t_g the time of a step on a batch that
/// the device prepared, and t_s the device's time for a batch. A number without a unit is in
/// seconds; only the ratios matter.
///
/// Nothing is measured, and the same seed gives the same result on every machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint simulate --t-c 1 --t-g 0.375 --t-s 2
  meetpoint simulate --t-c 80ms --t-g 30ms --t-s 160ms --batches 625
  meetpoint simulate --table
  meetpoint simulate --study misprofiled
  meetpoint simulate --study hosts --hosts 1,16
  meetpoint simulate --study hosts --hosts 8 --agents 1,3/2 --links 10 --batches 1600 --seeds 3
  meetpoint simulate sim/scenarios/one-device.toml --plot epoch.svg
  meetpoint simulate sim/scenarios/one-device.toml --sweep strategy=host-only,mte,wrr \\
      --sweep devices.0.preparation=1s,2s,4s,8s --csv sweep.csv --plot sweep.html
  meetpoint simulate --trace meetpoint-report/report.json")]
#[command(group = clap::ArgGroup::new("what").required(true)
    .args(["scenario", "t_c", "table", "study", "trace"]))]
pub(crate) struct Arguments {
    /// The scenario, a TOML file.
    scenario: Option<PathBuf>,
    /// Seed of all random draws.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with_all = OTHERS)]
    seed: u64,
    /// Vary a parameter of the scenario: its path in the file and the values. With several
    /// parameters, every combination is simulated.
    #[arg(long, value_name = "PATH=V1,V2,…", value_parser = sweep::parse, requires = "scenario",
          conflicts_with_all = OTHERS)]
    sweep: Vec<Sweep>,
    /// Write the result of every scenario as a row of this CSV file.
    #[arg(long, value_name = "FILE", requires = "scenario",
          conflicts_with_all = OTHERS)]
    csv: Option<PathBuf>,
    /// Draw a chart of the result: FILE.svg, or FILE.html for a page with the table.
    #[arg(long, value_name = "FILE", requires = "scenario",
          conflicts_with_all = OTHERS)]
    plot: Option<PathBuf>,
    /// Time in which the host prepares a batch and trains on it (with workers: the time between
    /// batches).
    #[arg(long, value_name = "TIME", value_parser = parse_time, requires_all = ["t_g", "t_s"])]
    t_c: Option<f64>,
    /// Time of a step on a batch that the device prepared.
    #[arg(long, value_name = "TIME", value_parser = parse_time, requires = "t_c")]
    t_g: Option<f64>,
    /// Time of the device for a batch.
    #[arg(long, value_name = "TIME", value_parser = parse_time, requires = "t_c")]
    t_s: Option<f64>,
    /// Number of background workers of the host; together they finish a batch every --t-c. With 0,
    /// the consumer prepares the batches itself.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "t_c",
          conflicts_with_all = NO_CONSTANTS,
          value_parser = clap::value_parser!(u32).range(0..=1_024))]
    workers: u32,
    /// Batches of the epoch; default: 5,000. In the study `hosts`, batches of each host; default:
    /// 400.
    #[arg(long, value_name = "N", conflicts_with_all = ["scenario", "table", "trace"],
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    batches: Option<u32>,
    /// Print the tables of the notes on DDLP, with their figures and ours, by formula and
    /// simulated.
    #[arg(long)]
    table: bool,
    /// Run a study: every strategy on machines that differ from their profile, or trainings over
    /// many hosts.
    #[arg(long, value_name = "NAME", value_parser = study_parser())]
    study: Option<Study>,
    /// Replay a recorded run, the report.json of `run` or `demo`, and compare the times.
    #[arg(long, value_name = "REPORT.json")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    hosts: HostsArguments,
}

/// Default number of batches of an epoch of constants.
const BATCHES: u32 = 5_000;

/// Parses the name of a study.
fn study_parser() -> impl TypedValueParser<Value = Study> {
    let values = Study::ALL.map(|study| PossibleValue::new(study.name()).help(study.describe()));
    PossibleValuesParser::new(values).map(|name| {
        let named = Study::ALL.into_iter().find(|study| study.name() == name);
        named.expect("only names of studies are taken")
    })
}

/// Parses a time: `0.375` is in seconds, other times have a unit.
fn parse_time(text: &str) -> Result<f64, String> {
    let units = match text.trim().parse::<f64>() {
        Ok(number) => number,
        Err(_) => units::parse_duration(text)?.as_secs_f64(),
    };
    if units.is_finite() && (1e-6..=1e6).contains(&units) {
        return Ok(units);
    }
    Err(format!("\"{text}\" is not a time from 1 µs to 1000000 s; write for example 0.375 or 20ms"))
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    if let Some(path) = &arguments.scenario {
        return simulate(path, arguments, output);
    }
    if arguments.table {
        let rows = notes::rows()?;
        return output.result(&RowsDocument { kind: "table", rows: &rows }, || {
            notes::text(&rows, table_style())
        });
    }
    if let Some(which) = arguments.study {
        return study(which, arguments, output);
    }
    if let Some(path) = &arguments.trace {
        let rows = replay::file(path)?;
        return output.result(&RowsDocument { kind: "replay", rows: &rows }, || {
            replay::text(&rows, table_style())
        });
    }
    let times = arguments.t_c.zip(arguments.t_g).zip(arguments.t_s);
    let ((t_c, t_g), t_s) = times.expect("the group of arguments requires one, and it all three");
    let batches = arguments.batches.unwrap_or(BATCHES);
    let constants = if arguments.workers == 0 {
        Constants::serial(t_c, t_g, t_s, batches)
    } else {
        with_workers(t_c, t_g, t_s, arguments.workers, batches)
    };
    let document = quick::run(&constants)?;
    output.result(&document, || quick::text(&document, table_style()))
}

/// Runs a study and prints its tables.
fn study(which: Study, arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    if which == Study::Hosts {
        let selection = arguments.hosts.selection(arguments.batches)?;
        let mut bar = Progress::new("simulating", "epochs", 0).in_lines();
        let document = hosts::run(&selection, &mut |done, total| bar.set(done, total));
        drop(bar);
        let document = document.map_err(|error| match error {
            Error::ValueTwice { .. } => Fault::usage_of(&error).into(),
            error => anyhow::Error::from(error),
        })?;
        return output.result(&document, || hosts::text(&document, table_style()));
    }
    let batches = arguments.batches.map(|_| "--batches");
    if let Some(option) = arguments.hosts.given().or(batches) {
        let message = format!("{option} has no effect on the study {}", which.name());
        return Err(Fault::usage(message, "leave it out, or give --study hosts").into());
    }
    let mut bar = Progress::new("simulating", "scenarios", 0).in_lines();
    let document = study::run(which, &mut |done, total| bar.set(done, total))?;
    drop(bar);
    output.result(&document, || study::text(&document, table_style()))
}

/// Simulates a scenario file; prints the results and writes the requested files.
fn simulate(path: &Path, arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let plot = arguments.plot.as_deref();
    let plot = plot.map(|path| kind(path).map(|kind| (path, kind))).transpose()?;
    for path in arguments.csv.iter().chain(&arguments.plot) {
        check_file(path)?;
    }
    let seed = arguments.seed;
    let loaded = Loaded::read(path)?;
    let mut bar = Progress::new("simulating", "scenarios", 0).in_lines();
    let results =
        sweep::run(&loaded, &arguments.sweep, seed, &mut |done, total| bar.set(done, total))?;
    drop(bar);
    let document = scenario::Document::new(&loaded, &results, seed)?;
    if let Some(path) = &arguments.csv {
        file(path, &sweep::csv(&results, seed))?;
        notice(&format!("wrote {}", shown(path)));
    }
    if let Some((path, kind)) = plot {
        let picture = picture::of(&loaded, &results, seed).map_err(with_options)?;
        let content = match kind {
            ChartFormat::Svg => picture.file(),
            ChartFormat::Html => scenario::page(&loaded, &results, &picture),
        };
        file(path, &content)?;
        notice(&format!("wrote {}", shown(path)));
    }
    output.result(&document, || scenario::text(&document, &loaded, &results, table_style()))
}

/// Adds the remedy of a chart that cannot be drawn.
fn with_options(error: Error) -> anyhow::Error {
    match error {
        Error::NotDrawn(reason) => {
            let instead = "leave out --plot: --csv takes everything";
            let remedy = match reason.remedy() {
                Some(remedy) => remedy.or(instead),
                None => Remedy::advice(instead),
            };
            Fault::new(reason.cause(), reason.to_string(), remedy).into()
        }
        other => other.into(),
    }
}

/// p = t_c; the step is t_g, or t_c where the device's batches take longer than the interval.
fn with_workers(t_c: f64, t_g: f64, t_s: f64, workers: u32, batches: u32) -> Constants {
    let step = t_g.min(t_c);
    let given = Constants::background(t_c, step, t_s, workers, batches);
    Constants { direct_read_ns: (t_g - step) * UNIT_NS, ..given }
}

#[derive(Serialize)]
struct RowsDocument<'a, T> {
    kind: &'static str,
    rows: &'a [T],
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
