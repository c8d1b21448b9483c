//! Compares simulated and measured times on the emulated device, over a grid of ratios.
//!
//! Each point is a job: the accelerator's step and the device's share of a core are chosen so that
//! t_g/t_c and t_s/t_c have the values of the grid. The simulator uses the mean times that the run
//! itself measured, so the comparison tests the scheduler's decisions, not the accuracy of these
//! settings.

use crate::Progress;
use crate::bench::{Bench, JobParameters, Material, Times};
use crate::simulate::constants::Constants;
use crate::simulate::replay;
use meetpoint_report::grid::Grid;
use meetpoint_report::units::{seconds, signed_percent};
use meetpoint_report::{Report, Run};
use meetpoint_scheduler::{AnyStrategy, Mte, Split, StrategyName};
use serde::Serialize;

/// Maximum relative difference of a simulated time from a measured one.
pub(crate) const WITHIN: f64 = 0.05;

/// One point of the grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// w.
    pub workers: u32,
    /// Target of t_g/t_c.
    pub x: f64,
    /// Target of t_s/t_c.
    pub y: f64,
}

/// One run of a point.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// w.
    pub workers: u32,
    /// Target of t_g/t_c.
    pub target_t_g_over_t_c: f64,
    /// Target of t_s/t_c.
    pub target_t_s_over_t_c: f64,
    /// Strategy.
    pub strategy: String,
    /// Mean times of its batches.
    pub measured_times: Option<Times>,
    /// T as measured.
    pub measured_seconds: f64,
    /// T as simulated from these times.
    pub simulated_seconds: Option<f64>,
    /// simulated / measured - 1.
    pub off_ratio: Option<f64>,
    /// T as predicted before the run, from the calibration alone.
    pub foretold_seconds: Option<f64>,
    /// `within 5 %`, `OFF`, or `INVALID` with the reason.
    pub verdict: String,
}

impl Row {
    /// Whether the run is valid and differs by more than 5 %.
    pub(crate) fn is_off(&self) -> bool {
        self.verdict.starts_with("OFF")
    }

    /// Whether the run is invalid, because the emulated device missed its targets.
    pub(crate) fn is_invalid(&self) -> bool {
        self.verdict.starts_with("INVALID")
    }

    /// Whether the run is invalid and also differs by more than 5 %.
    pub(crate) fn is_invalid_and_off(&self) -> bool {
        self.verdict.starts_with("INVALID and off")
    }
}

/// The points. Without workers, t_g/t_c = 1 would mean that preparation takes no time, so the grid
/// ends at 0.8.
pub fn points(quick: bool) -> Vec<Point> {
    let device: &[f64] = if quick { &[2.0] } else { &[1.0, 2.0, 4.0, 8.0] };
    let mut points = Vec::new();
    for workers in [0, 1] {
        let ready: &[f64] = match (workers, quick) {
            (_, true) => &[0.5],
            (0, false) => &[0.2, 0.5, 0.8],
            (_, false) => &[0.2, 0.6, 1.0],
        };
        for &x in ready {
            points.extend(device.iter().map(|&y| Point { workers, x, y }));
        }
    }
    points
}

/// Settings for a point, given the seconds in which the host prepares a batch.
fn parameters_at(point: Point, prepare: f64) -> JobParameters {
    let (step, t_c) = match point.workers {
        // t_c = t_p + t_t, t_g = t_t.
        0 => {
            let step = prepare * point.x / (1.0 - point.x);
            (step, prepare + step)
        }
        // t_c = max(t_p, t_t) = t_p for x ≤ 1.
        _ => (prepare * point.x, prepare),
    };
    JobParameters {
        workers: point.workers,
        step: std::time::Duration::from_secs_f64(step),
        cpu_ratio: prepare / (point.y * t_c),
    }
}

/// Measures every point and replays the runs; an interruption ends it.
pub fn rows<B: Bench>(
    bench: &B,
    material: &Material,
    points: &[Point],
    progress: Progress<'_>,
) -> Result<(Vec<Row>, Vec<replay::Row>), B::Error> {
    let total = points.len() as u64;
    let (mut rows, mut replays) = (Vec::new(), Vec::new());
    for (done, &point) in points.iter().enumerate() {
        progress(done as u64, total);
        let parameters = parameters_at(point, material.prepare.as_secs_f64());
        let strategies = [StrategyName::HostOnly, StrategyName::Mte, StrategyName::Wrr];
        let report = bench.run(material, parameters, &strategies)?;
        for failure in &report.failures {
            bench.failed(&format!("{} failed: {}", failure.what, failure.error));
        }
        rows.extend(report.runs.iter().map(|run| row(point, parameters, material, &report, run)));
        replays.extend(replay::report(&report));
    }
    Ok((rows, replays))
}

fn row(
    point: Point,
    parameters: JobParameters,
    material: &Material,
    report: &Report,
    run: &Run,
) -> Row {
    let measured = run.totals.seconds;
    let times = Times::of(run);
    let batches = report.job.batches;
    let simulated = times.and_then(|times| simulated(&times, point.workers, batches, run));
    let foretold = foretold(point, parameters, material, batches, run);
    let off = simulated.map(|simulated| simulated / measured - 1.0);
    let invalid = run.invalid().into_iter().chain(run.event_lines()).next();
    let verdict = match (invalid, off) {
        (Some(reason), off) => {
            let reason = match reason.strip_prefix("INVALID: ") {
                Some(reason) => reason.to_owned(),
                None => reason,
            };
            let is_off = off.is_some_and(|off| off.abs() > WITHIN);
            format!("INVALID{}: {reason}", if is_off { " and off" } else { "" })
        }
        (None, None) => "INVALID: too few batches of a kind for its times".to_owned(),
        (None, Some(off)) if off.abs() <= WITHIN => "within 5 %".to_owned(),
        (None, Some(_)) => "OFF: more than 5 %".to_owned(),
    };
    Row {
        workers: point.workers,
        target_t_g_over_t_c: point.x,
        target_t_s_over_t_c: point.y,
        strategy: run.strategy.clone(),
        measured_times: times,
        measured_seconds: measured,
        simulated_seconds: simulated,
        off_ratio: off,
        foretold_seconds: foretold,
        verdict,
    }
}

/// The strategy of the run, with the split that it determined.
fn strategy(run: &Run) -> Option<AnyStrategy> {
    let name: StrategyName = run.strategy.parse().ok()?;
    let split = run.epochs.last()?.split;
    Some(match (name.with_defaults(), split) {
        (AnyStrategy::Mte(mte), Some(split)) => Mte { split: Split::Fixed(split), ..mte }.into(),
        (strategy, _) => strategy,
    })
}

fn simulated(times: &Times, workers: u32, batches: u32, run: &Run) -> Option<f64> {
    let strategy = strategy(run)?;
    let epoch = run.epochs.last()?;
    let step = epoch.step.mean_seconds;
    // Overhead of the runtime between the parts of a batch counts as preparation.
    let t_c = times.t_c.unwrap_or(times.preparation + step);
    let preparation = match workers {
        0 => t_c - step,
        _ => times.preparation,
    };
    let constants = Constants {
        preparation_ns: preparation * 1e9,
        step_ns: step * 1e9,
        direct_read_ns: times.t_g.map_or(0.0, |t_g| (t_g - step).max(0.0) * 1e9),
        device_ns: times.t_s.unwrap_or(1.0) * 1e9,
        workers,
        batches,
    };
    (!strategy.uses_devices() || times.t_s.is_some())
        .then(|| constants.simulate(strategy).ok())?
        .map(|run| run.total_ns / 1e9)
}

/// The prediction before the run, from the calibration and the settings alone.
fn foretold(
    point: Point,
    parameters: JobParameters,
    material: &Material,
    batches: u32,
    run: &Run,
) -> Option<f64> {
    let prepare = material.prepare.as_secs_f64();
    let constants = Constants {
        preparation_ns: prepare * 1e9,
        step_ns: parameters.step.as_secs_f64() * 1e9,
        direct_read_ns: 0.0,
        device_ns: prepare / parameters.cpu_ratio * 1e9,
        workers: point.workers,
        batches,
    };
    let name: StrategyName = run.strategy.parse().ok()?;
    constants.simulate(name.with_defaults()).ok().map(|run| run.total_ns / 1e9)
}

/// The table.
pub(crate) fn grid(rows: &[Row]) -> Grid {
    let head = [
        "w",
        "t_g/t_c",
        "t_s/t_c",
        "strategy",
        "measured",
        "simulated",
        "off",
        "foretold",
        "off ",
        "verdict",
    ];
    let mut grid = Grid::new(&head, 4..9);
    let unknown = || "–".to_owned();
    for row in rows {
        let foretold_off = row.foretold_seconds.map(|it| it / row.measured_seconds - 1.0);
        grid.rows.push(vec![
            row.workers.to_string(),
            achieved(row.target_t_g_over_t_c, ratio(row, |times| times.t_g)),
            achieved(row.target_t_s_over_t_c, ratio(row, |times| times.t_s)),
            row.strategy.clone(),
            seconds(row.measured_seconds),
            row.simulated_seconds.map_or_else(unknown, seconds),
            row.off_ratio.map_or_else(unknown, signed_percent),
            row.foretold_seconds.map_or_else(unknown, seconds),
            foretold_off.map_or_else(unknown, signed_percent),
            row.verdict.clone(),
        ]);
    }
    grid
}

fn ratio(row: &Row, of: impl Fn(&Times) -> Option<f64>) -> Option<f64> {
    let times = row.measured_times.as_ref()?;
    Some(of(times)? / times.t_c?)
}

/// `2 (2.07)`: target and measured.
fn achieved(target: f64, measured: Option<f64>) -> String {
    match measured {
        None => format!("{target}"),
        Some(measured) => format!("{target} ({measured:.2})"),
    }
}

#[cfg(test)]
mod tests {
    use super::{parameters_at, points};

    #[test]
    fn the_parameters_give_the_ratios_of_the_grid() {
        let all = points(false);
        assert_eq!(all.len(), 24);
        for point in all {
            let found = parameters_at(point, 0.030);
            let step = found.step.as_secs_f64();
            let t_c = if point.workers == 0 { 0.030 + step } else { f64::max(0.030, step) };
            let t_s = 0.030 / found.cpu_ratio;
            assert!((step / t_c - point.x).abs() < 1e-6, "{point:?}");
            assert!((t_s / t_c - point.y).abs() < 1e-6, "{point:?}");
            assert!((0.001..=1.0 + 1e-9).contains(&found.cpu_ratio), "{point:?}: {found:?}");
        }
    }
}
