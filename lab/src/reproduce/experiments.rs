//! The experiments, simulated: recipes, workers, a faster host path, strategies, accelerators.
//!
//! The paper's times are not known, so each recipe is simulated at a point that its headline
//! implies. A simulated gain there shows that the analysis is consistent, not that the paper's
//! machine had these times.

use super::paper;
use super::region::{self, Method, Reading};
use crate::simulate::constants::{Constants, MTE, Simulated};
use crate::{Error, Progress};
use meetpoint_report::grid::Grid;
use meetpoint_report::units::signed_percent;
use meetpoint_scheduler::{AnyStrategy, DeviceOnly, HostOnly, Wrr};
use meetpoint_sim::scenario::{Device, Distribution, Scenario, Span, StrategyName};
use serde::Serialize;

/// N, the number of batches of an epoch.
pub const BATCHES: u32 = 5_000;
/// Workers of the experiments with background workers; from the paper.
const WORKERS: u32 = 16;
/// Speed-up of the faster host path; an assumption, because the paper's is not known.
pub const FASTER: f64 = 2.0;
/// Numbers of accelerators that share one device; an assumption.
const RANKS: [u32; 3] = [2, 4, 8];
/// Batches of a rank in the experiments with several accelerators.
const RANK_BATCHES: u32 = 500;

/// A recipe at a point that its headline implies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Setting {
    /// The recipe.
    pub recipe: &'static str,
    /// How the headline is read.
    pub reading: Reading,
    /// t_g/t_c without workers.
    pub x: f64,
    /// t_s/t_c without workers.
    pub y: f64,
    /// The assumptions of the point.
    pub assumes: &'static str,
}

/// Every recipe under both readings.
pub fn settings() -> Vec<Setting> {
    let mut settings = Vec::new();
    for reading in Reading::ALL {
        let (x, y) = region::point(reading, paper::IMAGENET_GAIN, paper::USAGE_LESS);
        settings.push(Setting {
            recipe: "ImageNet-like",
            reading,
            x,
            y,
            assumes: "+23.5 % and -37.6 % are one row, under wrr, w = 0; 37.6 % is n_s/N",
        });
        // A single figure determines a line; the point on it is an assumption.
        settings.push(Setting {
            recipe: "CIFAR-10-like",
            reading,
            x,
            y: region::border(Method::Wrr, reading, paper::CIFAR_GAIN, x),
            assumes: "+27.6 % under wrr, w = 0; t_g/t_c as of ImageNet (nothing else is known)",
        });
    }
    settings
}

/// One simulated epoch, compared with the host alone in the same setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// `simulated`, always.
    pub kind: &'static str,
    /// The recipe.
    pub recipe: &'static str,
    /// How its headline is read.
    pub reading: Reading,
    /// t_g/t_c of the point without workers.
    pub t_g_over_t_c: f64,
    /// t_s/t_c of the point without workers.
    pub t_s_over_t_c: f64,
    /// w.
    pub workers: u32,
    /// Speed-up of the host's preparation, compared with the point.
    pub host_path: f64,
    /// G, sharing one device.
    pub accelerators: u32,
    /// Whether ranks decide together; irrelevant for one rank.
    pub together: bool,
    /// Strategy.
    pub strategy: &'static str,
    /// T/T0.
    pub time_ratio: f64,
    /// n_s/N.
    pub device_share: f64,
    /// Host core-seconds of preparation saved, as a share.
    pub host_cpu_less: f64,
}

/// All experiments, and a sentence for each that the scheduler refused.
pub fn rows(progress: Progress<'_>) -> Result<(Vec<Row>, Vec<String>), Error> {
    let settings = settings();
    let total = settings.len() as u64;
    let (mut rows, mut refused) = (Vec::new(), Vec::new());
    for (done, setting) in settings.iter().enumerate() {
        progress(done as u64, total);
        for workers in [0, WORKERS] {
            for host_path in [1.0, FASTER] {
                rows.extend(one_rank(setting, workers, host_path)?);
            }
        }
        for accelerators in RANKS {
            match several(setting, accelerators) {
                Ok(found) => rows.extend(found),
                Err(error) if error.is_refusal() => {
                    refused
                        .push(format!("{}, {accelerators} accelerators: {error}", setting.recipe));
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok((rows, refused))
}

fn one_rank(setting: &Setting, workers: u32, host_path: f64) -> Result<Vec<Row>, Error> {
    let at_point = Constants::serial(1.0, setting.x, setting.y, BATCHES);
    let preparation_ns = at_point.preparation_ns / host_path;
    let constants = Constants { preparation_ns, workers, ..at_point };
    let alone = constants.simulate(AnyStrategy::HostOnly(HostOnly))?;
    let strategies = [AnyStrategy::DeviceOnly(DeviceOnly), MTE, AnyStrategy::Wrr(Wrr)];
    strategies
        .into_iter()
        .map(|strategy| {
            let run = constants.simulate(strategy)?;
            Ok(row(setting, workers, host_path, strategy.name().as_str(), &run, &alone))
        })
        .collect()
}

fn row(
    setting: &Setting,
    workers: u32,
    host_path: f64,
    strategy: &'static str,
    run: &Simulated,
    alone: &Simulated,
) -> Row {
    Row {
        kind: "simulated",
        recipe: setting.recipe,
        reading: setting.reading,
        t_g_over_t_c: setting.x,
        t_s_over_t_c: setting.y,
        workers,
        host_path,
        accelerators: 1,
        together: true,
        strategy,
        time_ratio: run.total_ns / alone.total_ns,
        device_share: f64::from(run.device_batches) / f64::from(BATCHES),
        host_cpu_less: 1.0 - run.host_busy_ns / alone.host_busy_ns,
    }
}

/// Ranks that step together and share one device, each with its own host path.
fn several(setting: &Setting, accelerators: u32) -> Result<Vec<Row>, Error> {
    let time = |units: f64| Distribution::constant_ns((units * 1e9).round() as u64);
    let mut scenario = Scenario::new(RANK_BATCHES, time(1.0 - setting.x), time(setting.x));
    scenario.stall_timeout = Span(u64::MAX / 4);
    scenario.devices = vec![Device::new(time(setting.y))];
    scenario.ranks.count = accelerators;
    let run = |strategy, together| {
        let mut scenario = scenario.clone();
        scenario.strategy = strategy;
        scenario.ranks.collective = together;
        if !strategy.uses_devices() {
            scenario.devices.clear();
        }
        meetpoint_sim::run(&scenario, 0)
    };
    let alone = run(StrategyName::HostOnly, true)?;
    let mut rows = Vec::new();
    for strategy in [StrategyName::Mte, StrategyName::Wrr] {
        for together in [true, false] {
            let outcome = run(strategy, together)?;
            let host =
                |outcome: &meetpoint_sim::Outcome| outcome.sum(|rank| rank.host_busy_ns) as f64;
            rows.push(Row {
                kind: "simulated",
                recipe: setting.recipe,
                reading: setting.reading,
                t_g_over_t_c: setting.x,
                t_s_over_t_c: setting.y,
                workers: 0,
                host_path: 1.0,
                accelerators,
                together,
                strategy: strategy.as_str(),
                time_ratio: outcome.total_ns as f64 / alone.total_ns as f64,
                device_share: outcome.device_share(),
                host_cpu_less: 1.0 - host(&outcome) / host(&alone),
            });
        }
    }
    Ok(rows)
}

/// One row per setting with the strategies side by side; gains in throughput over the host alone.
pub fn grid(rows: &[Row]) -> Grid {
    let head = [
        "kind",
        "recipe",
        "read as",
        "w",
        "host path",
        "accelerators",
        "device-only",
        "mte",
        "wrr",
        "CPU saved (wrr)",
    ];
    let mut grid = Grid::new(&head, 6..10);
    let mut done: Vec<(&str, Reading, u32, u64, u32, bool)> = Vec::new();
    for row in rows {
        let key = |row: &Row| {
            let path = row.host_path.to_bits();
            (row.recipe, row.reading, row.workers, path, row.accelerators, row.together)
        };
        if done.contains(&key(row)) {
            continue;
        }
        done.push(key(row));
        let of = |strategy: &str| {
            rows.iter().find(|other| key(other) == key(row) && other.strategy == strategy)
        };
        let gain = |strategy: &str| {
            of(strategy)
                .map_or_else(|| "–".into(), |row| signed_percent(1.0 / row.time_ratio - 1.0))
        };
        let decided = match (row.accelerators, row.together) {
            (1, _) => "1".to_owned(),
            (count, true) => format!("{count}, together"),
            (count, false) => format!("{count}, each alone"),
        };
        grid.rows.push(vec![
            row.kind.to_owned(),
            row.recipe.to_owned(),
            row.reading.name().to_owned(),
            row.workers.to_string(),
            if row.host_path > 1.0 {
                format!("{} x faster", row.host_path)
            } else {
                "as it is".into()
            },
            decided,
            gain("device-only"),
            gain("mte"),
            gain("wrr"),
            of("wrr").map_or_else(|| "–".into(), |row| signed_percent(row.host_cpu_less)),
        ]);
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::{one_rank, settings};

    #[test]
    fn the_headline_is_reproduced_at_the_points_that_it_implies() {
        for setting in settings() {
            let rows = one_rank(&setting, 0, 1.0).unwrap();
            let wrr = rows.iter().find(|row| row.strategy == "wrr").unwrap();
            let wanted = if setting.recipe == "ImageNet-like" { 0.235 } else { 0.276 };
            let gain = setting.reading.gain(wrr.time_ratio);
            assert!((gain - wanted).abs() < 0.002, "{setting:?}: {gain}");
            if setting.recipe == "ImageNet-like" {
                assert!((wrr.host_cpu_less - 0.376).abs() < 0.002, "{wrr:?}");
            }
        }
    }

    #[test]
    fn with_sixteen_workers_there_is_nothing_left_to_gain_at_these_points() {
        for setting in settings() {
            for row in one_rank(&setting, 16, 1.0).unwrap() {
                assert!(row.strategy == "device-only" || row.time_ratio > 0.999, "{row:?}");
            }
        }
    }
}
