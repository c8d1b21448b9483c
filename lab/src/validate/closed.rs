//! Compares the simulator with the closed forms, over a grid of constants.

use crate::simulate::constants::{Constants, MTE};
use crate::{Error, Progress};
use meetpoint_report::grid::Grid;
use meetpoint_scheduler::{AnyStrategy, DeviceOnly, HostOnly, Wrr};
use serde::Serialize;

/// Maximum relative difference of a simulated time from its closed form, apart from the ends of an
/// epoch.
pub(crate) const WITHIN: f64 = 0.001;
/// N: large, because the closed forms ignore the ends of an epoch.
const BATCHES: u32 = 20_000;
const QUICK_BATCHES: u32 = 5_000;
/// Workers of the rows with background workers.
const WORKERS: u32 = 4;

/// One point with one strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// w.
    pub workers: u32,
    /// t_g/t_c.
    pub t_g_over_t_c: f64,
    /// t_s/t_c.
    pub t_s_over_t_c: f64,
    /// Strategy.
    pub strategy: &'static str,
    /// T/(N·t_c) by the closed form; `None` if none applies.
    pub formula: Option<f64>,
    /// T/(N·t_c) by the simulator.
    pub simulated: f64,
    /// simulated / formula - 1.
    pub off_ratio: Option<f64>,
    /// Whether the difference is within 0.1 %; true if no closed form applies.
    pub holds: bool,
}

/// The whole grid.
pub fn rows(quick: bool, progress: Progress<'_>) -> Result<Vec<Row>, Error> {
    let device = [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0];
    let ready = [0.2, 0.4, 0.6, 0.8, 0.95];
    let batches = if quick { QUICK_BATCHES } else { BATCHES };
    let total = (2 * device.len() * ready.len()) as u64;
    let (mut rows, mut done) = (Vec::new(), 0);
    for workers in [0, WORKERS] {
        for y in device {
            for x in ready {
                rows.extend(point(workers, x, y, batches)?);
                done += 1;
                progress(done, total);
            }
        }
    }
    Ok(rows)
}

fn point(workers: u32, x: f64, y: f64, batches: u32) -> Result<Vec<Row>, Error> {
    let constants = match workers {
        0 => Constants::serial(1.0, x, y, batches),
        workers => Constants::background(1.0, x, y, workers, batches),
    };
    let unit = f64::from(batches) * constants.t_c_ns();
    let strategies = [
        AnyStrategy::HostOnly(HostOnly),
        AnyStrategy::DeviceOnly(DeviceOnly),
        MTE,
        AnyStrategy::Wrr(Wrr),
    ];
    strategies
        .into_iter()
        .map(|strategy| {
            let simulated = constants.simulate(strategy)?.total_ns;
            let formula = constants.closed_form(strategy).ok();
            // Work in progress at both ends when the epoch begins and ends.
            let ends = 2.0 * (constants.t_c_ns() + constants.device_ns) + constants.preparation_ns;
            let holds = formula.is_none_or(|it| (simulated - it).abs() <= it * WITHIN + ends);
            Ok(Row {
                workers,
                t_g_over_t_c: x,
                t_s_over_t_c: y,
                strategy: strategy.name().as_str(),
                formula: formula.map(|total| total / unit),
                simulated: simulated / unit,
                off_ratio: formula.map(|total| simulated / total - 1.0),
                holds,
            })
        })
        .collect()
}

/// The largest difference of each strategy, with and without workers, and every row that fails.
pub(crate) fn grid(rows: &[Row]) -> Grid {
    let head = ["w", "strategy", "points", "worst off", "at t_g/t_c", "t_s/t_c", "verdict"];
    let mut grid = Grid::new(&head, 2..6);
    for workers in [0, WORKERS] {
        for strategy in ["host-only", "device-only", "mte", "wrr"] {
            let of = |row: &&Row| {
                row.workers == workers && row.strategy == strategy && row.off_ratio.is_some()
            };
            let off = |row: &Row| row.off_ratio.unwrap_or(0.0).abs();
            let worst =
                rows.iter().filter(of).max_by(|left, right| off(left).total_cmp(&off(right)));
            let Some(worst) = worst else { continue };
            let all = rows.iter().filter(of).all(|row| row.holds);
            grid.rows.push(vec![
                workers.to_string(),
                strategy.to_owned(),
                rows.iter().filter(of).count().to_string(),
                format!("{:+.3} %", worst.off_ratio.unwrap_or(0.0) * 100.0),
                worst.t_g_over_t_c.to_string(),
                worst.t_s_over_t_c.to_string(),
                if all { "within 0.1 %".to_owned() } else { "OFF".to_owned() },
            ]);
        }
    }
    grid
}
