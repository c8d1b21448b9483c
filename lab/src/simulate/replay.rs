//! A recorded run, simulated with the times of its batches.
//!
//! Host, device and accelerator take their recorded times, each in its own order; the scheduler
//! decides again who prepares which batch and when it is consumed.

use crate::Error;
use meetpoint_report::grid::{Grid, Style};
use meetpoint_report::units::{seconds, signed_percent};
use meetpoint_report::{Batch, Epoch, FILE_BYTES_MAX, Report, Run, Source};
use meetpoint_scheduler::{AnyStrategy, Split, StrategyName, UnknownStrategy};
use meetpoint_sim::Trace;
use meetpoint_sim::scenario::{Device, Distribution, Holders, Scenario, ScenarioError, Span};
use meetpoint_storage::files::read_regular;
use serde::Serialize;
use std::path::Path;

/// Maximum relative difference of a replayed time from the recorded one.
pub const WITHIN: f64 = 0.02;

/// A gap before a piece of work that is longer than this share of it counts as idle time.
const IDLE_ABOVE: f64 = 0.5;

/// A replayed epoch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Its strategy.
    pub strategy: String,
    /// Its number.
    pub epoch: u32,
    /// T as recorded.
    pub recorded_seconds: Option<f64>,
    /// T as replayed; `None` if it cannot be replayed.
    pub replayed_seconds: Option<f64>,
    /// replayed / recorded - 1.
    pub off_ratio: Option<f64>,
    /// Batches of the device as recorded.
    pub recorded_device_batches: usize,
    /// Batches of the device as replayed.
    pub replayed_device_batches: Option<u64>,
    /// Whether the run is valid: its emulated device met its targets.
    pub counts: bool,
    /// `within 2 %`, `OFF`, `INVALID` or why it was not replayed.
    pub verdict: String,
}

impl Row {
    /// Whether it was replayed and is more than 2 % off.
    pub fn is_off(&self) -> bool {
        self.counts && self.off_ratio.is_some_and(|off| off.abs() > WITHIN)
    }
}

/// Replays every epoch of a report.
pub fn file(path: &Path) -> Result<Vec<Row>, Error> {
    let text = read_regular(path, FILE_BYTES_MAX).map_err(|source| Error::Unreadable {
        file: path.to_path_buf(),
        remedy: "name the report.json of a run",
        source,
    })?;
    let report: Report = serde_json::from_slice(&text)
        .map_err(|source| Error::NotAReport { file: path.to_path_buf(), source })?;
    let rows = self::report(&report);
    if rows.is_empty() {
        return Err(Error::NoEpochs { file: path.to_path_buf() });
    }
    Ok(rows)
}

/// Replays every epoch.
pub fn report(report: &Report) -> Vec<Row> {
    let of_run = |run| epochs(report, run);
    report.runs.iter().flat_map(of_run).collect()
}

fn epochs(report: &Report, run: &Run) -> Vec<Row> {
    run.epochs.iter().map(|epoch| replayed(report, run, epoch)).collect()
}

fn replayed(report: &Report, run: &Run, epoch: &Epoch) -> Row {
    let by_device = epoch.batches.iter().filter(|it| it.source == Source::Device).count();
    let mut row = Row {
        strategy: run.strategy.clone(),
        epoch: epoch.epoch,
        recorded_seconds: Some(epoch.seconds),
        replayed_seconds: None,
        off_ratio: None,
        recorded_device_batches: by_device,
        replayed_device_batches: None,
        counts: run.invalid().is_empty(),
        verdict: String::new(),
    };
    let outcome =
        scenario(report, run, epoch).and_then(|scenario| Ok(meetpoint_sim::run(&scenario, 0)?));
    match outcome {
        Err(error) => row.verdict = format!("not replayed: {error}"),
        Ok(outcome) => {
            let replayed = outcome.total_ns as f64 / 1e9;
            let off = replayed / epoch.seconds - 1.0;
            row.replayed_seconds = Some(replayed);
            row.off_ratio = Some(off);
            row.replayed_device_batches = Some(outcome.sum(|rank| rank.device_batches.into()));
            let is_within = off.abs() <= WITHIN;
            row.verdict = match run.invalid().into_iter().next() {
                None if is_within => "within 2 %".to_owned(),
                None => "OFF: more than 2 %".to_owned(),
                Some(reason) if is_within => reason,
                Some(reason) => format!("{reason}; more than 2 % off as well"),
            };
        }
    }
    row
}

/// Why an epoch is not replayed.
#[derive(Debug, thiserror::Error)]
enum NotReplayed {
    #[error("faults occurred in it ({0})")]
    Events(String),
    #[error("it has {0} ranks, and only one can be replayed")]
    Ranks(u32),
    #[error("batches of it were prepared before it began")]
    PreparedBefore,
    #[error(transparent)]
    UnknownStrategy(#[from] UnknownStrategy),
    #[error("{0} decides by learned times, which the report does not contain")]
    Picks(StrategyName),
    #[error("too many batches")]
    TooManyBatches,
    #[error(transparent)]
    Times(#[from] ScenarioError),
    #[error(transparent)]
    Simulation(#[from] meetpoint_sim::Error),
}

/// Turns a recorded epoch into a scenario.
fn scenario(report: &Report, run: &Run, epoch: &Epoch) -> Result<Scenario, NotReplayed> {
    if let Some(event) = run.event_lines().next() {
        return Err(NotReplayed::Events(event));
    }
    let job = &report.job;
    if job.ranks > 1 {
        return Err(NotReplayed::Ranks(job.ranks));
    }
    if epoch.ahead_batches > 0 || epoch.reused_batches > 0 {
        return Err(NotReplayed::PreparedBefore);
    }
    let name: StrategyName = run.strategy.parse()?;
    let mut strategy = job.strategies.strategy(name);
    if strategy.is_selector() {
        return Err(NotReplayed::Picks(name));
    }
    if let (AnyStrategy::Mte(mte), Some(split)) = (&mut strategy, epoch.split) {
        mte.split = Split::Fixed(split);
    }
    let batches = u32::try_from(epoch.batches.len());
    let batches = batches.map_err(|_| NotReplayed::TooManyBatches)?;
    let devices = if name.uses_devices() { job.devices.len().max(1) } else { 0 };
    let some = || Distribution::constant_ns(1);
    let mut scenario = Scenario::new(batches, some(), some());
    scenario.choose(strategy);
    scenario.stall_timeout = Span(u64::MAX / 4);
    scenario.replay = epoch.record.clone();
    scenario.host.workers = job.workers;
    scenario.host.prefetch = job.prefetch.max(1);
    scenario.devices = (0..devices).map(|_| Device::new(some())).collect();
    if !job.shared && devices > 1 {
        scenario.holders = Holders::Interleaved;
    }
    let recorded = Recorded::of(epoch, job.workers, devices);
    Ok(scenario.replaying(&recorded.trace())?)
}

/// Times of each part, in its own order, in seconds.
#[derive(Debug, Default, PartialEq)]
struct Recorded {
    host: Vec<f64>,
    devices: Vec<Vec<f64>>,
    steps: Vec<f64>,
}

impl Recorded {
    /// The time that the runtime itself takes between a preparation and a step belongs to the part
    /// that follows, unless it was a wait for a batch.
    fn of(epoch: &Epoch, workers: u32, devices: usize) -> Self {
        let devices = (0..devices).map(|device| device_times(epoch, device)).collect();
        let mut recorded = Self { devices, ..Self::default() };
        match workers {
            0 => recorded.add_serial(epoch),
            _ => recorded.add_background(epoch, workers),
        }
        recorded
    }

    fn trace(&self) -> Trace {
        let ns = |times: &Vec<f64>| -> Vec<u64> {
            times.iter().map(|seconds| (seconds.max(0.0) * 1e9).round() as u64).collect()
        };
        Trace {
            host_ns: ns(&self.host),
            device_ns: self.devices.iter().map(ns).collect(),
            step_ns: ns(&self.steps),
        }
    }

    /// Without workers, the consumer alternates between preparing and stepping.
    fn add_serial(&mut self, epoch: &Epoch) {
        enum Part<'a> {
            Preparation,
            Step(&'a Batch),
        }
        let mut parts: Vec<(f64, f64, Part<'_>)> = Vec::new();
        for batch in &epoch.batches {
            if batch.source == Source::Host {
                parts.push((batch.prepare_start, batch.prepare_end, Part::Preparation));
            }
            parts.push((batch.consume, batch.step_end, Part::Step(batch)));
        }
        parts.sort_by(|left, right| left.0.total_cmp(&right.0));
        let mut free = 0.0_f64;
        for (_, end, part) in parts {
            match part {
                Part::Preparation => self.host.push(end - free),
                Part::Step(batch) if batch.source == Source::Host => self.steps.push(end - free),
                // The consumer may have waited for this one.
                Part::Step(batch) => self.steps.push(end - free.max(batch.ready)),
            }
            free = free.max(end);
        }
    }

    /// With workers, the consumer only steps.
    fn add_background(&mut self, epoch: &Epoch, workers: u32) {
        let host = epoch.batches.iter().filter(|batch| batch.source == Source::Host);
        let mut spans: Vec<(f64, f64)> =
            host.map(|batch| (batch.prepare_start, batch.prepare_end)).collect();
        spans.sort_by(|left, right| left.0.total_cmp(&right.0));
        self.host = match workers {
            // With several workers, the report does not record which one prepared a batch.
            2.. => spans.iter().map(|(start, end)| end - start).collect(),
            _ => chained(spans),
        };
        let mut free = 0.0_f64;
        for batch in &epoch.batches {
            self.steps.push(batch.step_end - free.max(batch.ready));
            free = batch.step_end;
        }
    }
}

/// From one ready batch to the next while the device had work; the first from the epoch's start.
fn device_times(epoch: &Epoch, device: usize) -> Vec<f64> {
    let of_device = |batch: &&Batch| {
        batch.source == Source::Device && usize::from(batch.device.unwrap_or(0)) == device
    };
    // A batch counts as published when its slot has arrived, which takes no time in the simulator.
    let spans = epoch.batches.iter().filter(of_device).map(|it| (it.prepare_start, it.ready));
    chained(spans.collect())
}

/// Time of each piece of work of one part, from the end of the previous one. A short gap is
/// overhead of the runtime and counts as part of the next piece; a long one is idle time and does
/// not count.
fn chained(mut spans: Vec<(f64, f64)>) -> Vec<f64> {
    spans.sort_by(|left, right| left.1.total_cmp(&right.1));
    let mut before = 0.0;
    let mut times = Vec::new();
    for (place, (start, end)) in spans.into_iter().enumerate() {
        let (busy, since) = (end - start, end - before);
        let was_idle = place > 0 && since > busy * (1.0 + IDLE_ABOVE);
        times.push(if was_idle { busy } else { since });
        before = end;
    }
    times
}

/// As a table.
fn grid(rows: &[Row]) -> Grid {
    let head = [
        "strategy",
        "epoch",
        "recorded",
        "replayed",
        "off",
        "device batches",
        "replayed ",
        "verdict",
    ];
    let mut grid = Grid::new(&head, 1..7);
    let unknown = || "–".to_owned();
    for row in rows {
        grid.rows.push(vec![
            row.strategy.clone(),
            row.epoch.to_string(),
            row.recorded_seconds.map_or_else(unknown, seconds),
            row.replayed_seconds.map_or_else(unknown, seconds),
            row.off_ratio.map_or_else(unknown, signed_percent),
            row.recorded_device_batches.to_string(),
            row.replayed_device_batches.map_or_else(unknown, |count| count.to_string()),
            row.verdict.clone(),
        ]);
    }
    grid
}

/// For a terminal.
pub fn text(rows: &[Row], style: Style) -> String {
    let held = rows.iter().filter(|row| row.off_ratio.is_some_and(|off| off.abs() <= WITHIN));
    format!(
        "{}{} of {} epochs replayed within 2 % of the recorded time\n",
        grid(rows).text(style),
        held.count(),
        rows.len()
    )
}

#[cfg(test)]
mod tests {
    use super::Recorded;
    use meetpoint_report::{Batch, made_up};

    #[test]
    fn the_times_between_are_the_next_parts_and_waits_are_nobodys() {
        let mut epoch = made_up::report(2).runs[0].epochs[0].clone();
        let memory = epoch.batches[0].memory;
        let batch = |source, times: [f64; 5]| Batch {
            batch: 0,
            source,
            device: (source == Device).then_some(0),
            rank: 0,
            memory,
            prepare_start: times[0],
            prepare_end: times[1],
            ready: times[2],
            consume: times[3],
            step_end: times[4],
        };
        use meetpoint_report::Source::{Device, Host};
        epoch.batches = vec![
            batch(Host, [0.1, 1.0, 1.0, 1.1, 2.0]),
            batch(Device, [0.5, 2.5, 3.0, 3.1, 4.0]),
            batch(Device, [2.6, 4.5, 4.6, 4.6, 5.0]),
        ];
        let near = |found: &[f64], wanted: &[f64]| {
            assert_eq!(found.len(), wanted.len());
            for (found, wanted) in found.iter().zip(wanted) {
                assert!((found - wanted).abs() < 1e-9, "{found} is not {wanted}");
            }
        };
        let recorded = Recorded::of(&epoch, 0, 1);
        near(&recorded.host, &[1.0]);
        near(&recorded.steps, &[1.0, 1.0, 0.4]);
        // The first from the epoch's beginning, the second from one arrival to the next.
        near(&recorded.devices[0], &[3.0, 1.6]);
    }
}
