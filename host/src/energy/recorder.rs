//! Reads the meters over an interval, on its own thread.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use serde::Serialize;

use super::integrate::Integrator;
use super::{Coverage, MeterError, MeterInfo, Meters, NoMeters, Reading, Scope};
use crate::clock::monotonic_ns;

/// Interval between readings if a sensor reports power or utilisation, which must be sampled.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// Interval between readings if all meters count: a counter of 65 kJ wraps after 219 s at 300 W.
const COUNT_EVERY: Duration = Duration::from_secs(10);

/// How long the last reading may take; a driver that hangs must not hang the run.
const LAST_READING_MAX: Duration = Duration::from_secs(5);

/// What one meter measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// The meter's name.
    pub meter: String,
    /// The scope of its figure.
    pub scope: Scope,
    /// The parts of the machine that it covers.
    pub covers: Coverage,
    /// Joules over the interval; `None` if the meter failed in it or never advanced.
    pub joules: Option<f64>,
    /// Why it failed.
    pub failure: Option<MeterError>,
    /// Number of readings.
    pub readings: u64,
    /// Mean share of the time during which a graphics board was busy, over the readings; `None` if
    /// the meter does not report it.
    pub utilisation: Option<f64>,
}

/// The measurements of all meters over an interval. None of them is modelled.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measurement {
    /// Length of the interval.
    pub seconds: f64,
    /// One entry for each meter; empty if none works.
    pub meters: Vec<Measured>,
    /// Why nothing was measured.
    pub nothing_because: Option<NoMeters>,
}

impl Measurement {
    /// Sum over the meters that do not overlap: packages, memory, graphics boards.
    ///
    /// `None` if there are none, or one failed: a partial sum is never reported.
    pub fn sum_joules(&self) -> Option<f64> {
        let mut adding = self.meters.iter().filter(|meter| meter.scope.adds_up()).peekable();
        adding.peek()?;
        adding.map(|meter| meter.joules).sum()
    }

    /// This interval followed by another one of the same meters.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let merged = |one: Measured| {
            let two = other.meters.iter().find(|two| two.meter == one.meter);
            let missing = || Some(MeterError::NotInEveryPart);
            Measured {
                joules: one.joules.zip(two.and_then(|two| two.joules)).map(|(a, b)| a + b),
                failure: one
                    .failure
                    .clone()
                    .or_else(|| two.map_or_else(missing, |two| two.failure.clone())),
                readings: one.readings + two.map_or(0, |two| two.readings),
                utilisation: mean_utilisation(&one, two),
                ..one
            }
        };
        Self {
            seconds: self.seconds + other.seconds,
            meters: self.meters.into_iter().map(merged).collect(),
            nothing_because: self.nothing_because.or(other.nothing_because),
        }
    }
}

/// The mean over the readings of both intervals.
fn mean_utilisation(one: &Measured, two: Option<&Measured>) -> Option<f64> {
    let (mean, two) = (one.utilisation?, two?);
    let [before, after] = [one.readings, two.readings].map(|readings| readings as f64);
    Some((mean * before + two.utilisation? * after) / (before + after).max(1.0))
}

/// An interval that is being measured.
#[derive(Debug)]
pub struct Recorder {
    stop: Sender<()>,
    done: Receiver<(Measurement, Meters)>,
    begun_ns: u64,
    abouts: Vec<MeterInfo>,
}

/// The interval, as its thread measures it.
struct Interval {
    meters: Meters,
    sums: Vec<Result<Integrator, MeterError>>,
    busy: Vec<Busy>,
    begun_ns: u64,
}

/// Samples of the utilisation of one meter.
#[derive(Debug, Clone, Copy, Default)]
struct Busy {
    sum: f64,
    samples: u32,
}

impl Busy {
    fn mean(self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum / f64::from(self.samples))
    }
}

impl Recorder {
    /// Begins: every meter has been read once when it returns.
    pub fn start(meters: Meters) -> Self {
        let abouts: Vec<MeterInfo> = meters.used().cloned().collect();
        let begun_ns = monotonic_ns();
        let sums = abouts.iter().map(|_| Ok(Integrator::default())).collect();
        let busy = vec![Busy::default(); abouts.len()];
        let mut interval = Interval { meters, sums, busy, begun_ns };
        let has_sensor = interval.read();
        let every = if has_sensor { SAMPLE_EVERY } else { COUNT_EVERY };
        let (stop, stopped) = channel();
        let (send, done) = channel();
        let run = move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                interval.read();
            }
            interval.read();
            // The receiver is dropped if the run was cancelled.
            let _ = send.send(interval.finish());
        };
        let spawned = std::thread::Builder::new().name("energy-meters".to_owned()).spawn(run);
        // Without a thread the channel is closed and `stop` says so.
        drop(spawned);
        Self { stop, done, begun_ns, abouts }
    }

    /// Ends the interval: reads every meter once more, and returns the measurements and the meters.
    ///
    /// If a driver does not answer, its figures and the meters are lost, but the run continues.
    pub fn stop(self) -> (Measurement, Meters) {
        // The thread may have ended by itself.
        let _ = self.stop.send(());
        if let Ok(finished) = self.done.recv_timeout(LAST_READING_MAX) {
            return finished;
        }
        let meters = self
            .abouts
            .iter()
            .map(|about| measured(about, &Err(MeterError::NoAnswer), Busy::default()));
        let seconds = seconds_since(self.begun_ns);
        let measurement = Measurement { seconds, meters: meters.collect(), nothing_because: None };
        (measurement, Meters::default())
    }
}

impl Interval {
    /// Reads all meters that have not failed; returns whether any must be sampled.
    fn read(&mut self) -> bool {
        let mut has_sensor = false;
        let sums = self.sums.iter_mut().zip(&mut self.busy);
        for ((_, meter), (sum, busy)) in self.meters.used_mut().zip(sums) {
            let Ok(integrator) = sum else { continue };
            let added: Result<(), MeterError> = meter.read().and_then(|reading| {
                has_sensor |= matches!(reading, Reading::Power { .. });
                integrator.add(monotonic_ns(), reading)
            });
            match added {
                Err(error) => *sum = Err(error),
                Ok(()) => {
                    if let Some(share) = meter.utilisation() {
                        has_sensor = true;
                        busy.sum += share;
                        busy.samples += 1;
                    }
                }
            }
        }
        has_sensor
    }

    fn finish(self) -> (Measurement, Meters) {
        let seconds = seconds_since(self.begun_ns);
        let sums = self.sums.iter().zip(&self.busy);
        let meters = self.meters.used().zip(sums);
        let meters = meters.map(|(about, (sum, busy))| measured(about, sum, *busy));
        let measurement = Measurement {
            seconds,
            meters: meters.collect(),
            nothing_because: self.meters.why_none(),
        };
        (measurement, self.meters)
    }
}

fn measured(about: &MeterInfo, sum: &Result<Integrator, MeterError>, busy: Busy) -> Measured {
    let joules = match sum {
        Ok(integrator) => integrator.joules(),
        Err(failure) => Err(failure.clone()),
    };
    Measured {
        meter: about.name.clone(),
        scope: about.scope,
        covers: about.covers.clone(),
        joules: joules.as_ref().ok().copied(),
        failure: joules.err(),
        readings: sum.as_ref().map_or(0, Integrator::readings),
        utilisation: busy.mean(),
    }
}

fn seconds_since(begun_ns: u64) -> f64 {
    monotonic_ns().saturating_sub(begun_ns) as f64 / 1e9
}
