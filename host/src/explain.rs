//! Whether loading held training up, which part of it did, and what would be gained without.
//!
//! The time that the consumer waited is measured, batch by batch, and each wait is put down to what
//! the batch was waiting for. What could be gained follows from the steps, whose pace is that of a
//! consumer that always finds a batch ready.

use crate::stats::{BatchRecord, EpochStats};
use serde::{Deserialize, Serialize};

/// Waiting for less than this share of the time counts as none.
pub const WAITED_SHARE_MIN: f64 = 0.05;

/// What is known beside the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Surroundings {
    /// Background threads that prepare; 0: the consumer's own.
    pub workers: u32,
    /// Cores that the process may use.
    pub cores: usize,
    /// Mean time of a step on batches that were all ready and repeated, with nothing prepared
    /// meanwhile; `None` where that was not tried.
    pub replayed_step_ns: Option<f64>,
    /// Time that a function of the user took to change batches, all of the epoch together; it
    /// runs in the consumer's thread, after a batch was handed out.
    pub transform_ns: f64,
}

/// Part of the way of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The host reads samples.
    HostRead,
    /// The host decodes and augments them.
    HostCompute,
    /// A device prepares.
    Device,
    /// A batch that a device published comes into host memory and is checked.
    HandOver,
    /// A function of the user changes the batch, in the consumer's thread.
    Transform,
    /// The consumer's own step.
    Step,
}

impl Stage {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::HostRead => "reading at the host",
            Self::HostCompute => "decoding and augmenting at the host",
            Self::Device => "the device's preparation",
            Self::HandOver => "the hand-over from the device's spool",
            Self::Transform => "the batch transform",
            Self::Step => "the training step itself",
        }
    }
}

/// How fast a stage would be if it never waited for another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Which.
    pub stage: Stage,
    /// Batches in a second, read off a clock.
    pub measured_batches_per_second: Option<f64>,
    /// Batches in a second, worked out of what was measured.
    pub modelled_batches_per_second: Option<f64>,
    /// Where the number comes from.
    pub how: String,
    /// Seconds of this epoch that the consumer waited for it; of the step: that it took.
    pub seconds: f64,
}

/// Why an epoch took as long as it did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// Which epoch.
    pub epoch: u32,
    /// Whether the consumer waited for batches for longer than [`WAITED_SHARE_MIN`] of the time.
    pub is_loading: bool,
    /// The stage that took most of the time: of loading where that held the consumer up, else the
    /// batch transform or the step.
    pub stage: Stage,
    /// Share of the time in which the consumer waited for a batch; that until the first left out.
    pub waited_share: f64,
    /// Seconds until the first batch.
    pub startup_seconds: f64,
    /// How many times as fast the epoch would be if every batch were ready when it is asked for,
    /// by a replay of ready batches; `None` where there was none.
    pub measured_gain: Option<f64>,
    /// The same by the steps of this epoch; `None` where they take no time.
    pub modelled_gain: Option<f64>,
    /// The ceiling of each stage that was used.
    pub ceilings: Vec<Ceiling>,
    /// All that in sentences.
    pub sentences: Vec<String>,
}

/// What the consumer waited for, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Waits {
    startup: f64,
    host: f64,
    device: f64,
    hand_over: f64,
    transform: f64,
    /// Without the transform.
    step: f64,
}

impl Waits {
    /// Puts every wait down to what its batch was waiting for.
    fn of(records: &[BatchRecord], transform_ns: f64) -> Self {
        let mut waits = Self::default();
        let mut before = None;
        for record in records {
            waits.step += record.step_end_ns.saturating_sub(record.consume_ns) as f64;
            let asked = before.replace(record.step_end_ns);
            let Some(asked) = asked else {
                waits.startup = record.consume_ns as f64;
                continue;
            };
            let waited = record.consume_ns.saturating_sub(asked) as f64;
            if record.device.is_none() {
                waits.host += waited;
                continue;
            }
            let until_published = record.prepare_end_ns.saturating_sub(asked) as f64;
            waits.device += until_published.min(waited);
            waits.hand_over += waited - until_published.min(waited);
        }
        waits.transform = transform_ns.clamp(0.0, waits.step);
        waits.step -= waits.transform;
        waits
    }

    fn loading(&self) -> f64 {
        self.host + self.device + self.hand_over
    }
}

/// Explains an epoch; `None` where fewer than two batches were consumed.
pub fn explain(stats: &EpochStats, around: &Surroundings) -> Option<Explanation> {
    if stats.records.len() < 2 {
        return None;
    }
    let waits = Waits::of(&stats.records, around.transform_ns);
    let total = waits.loading() + waits.transform + waits.step;
    let waited_share = if total > 0.0 { waits.loading() / total } else { 0.0 };
    let is_loading = waited_share > WAITED_SHARE_MIN;
    let ceilings = ceilings(stats, around, &waits);
    let stage = match is_loading {
        false if waits.transform > waits.step => Stage::Transform,
        false => Stage::Step,
        true => slowest(stats, &waits),
    };
    let gain = |step_ns: f64| {
        let least = waits.transform + step_ns;
        (least > 0.0).then(|| total / least)
    };
    // Preparation may slow the steps themselves down; a replay shows them without it.
    let replayed = around.replayed_step_ns.map(|each| each * stats.records.len() as f64);
    let mut explanation = Explanation {
        epoch: stats.epoch,
        is_loading,
        stage,
        waited_share,
        startup_seconds: waits.startup / 1e9,
        measured_gain: replayed.and_then(gain),
        modelled_gain: gain(waits.step),
        ceilings,
        sentences: Vec::new(),
    };
    explanation.sentences = sentences(&explanation, stats, around, &waits);
    Some(explanation)
}

/// The stage of loading that was waited for longest.
fn slowest(stats: &EpochStats, waits: &Waits) -> Stage {
    let host = match stats.read.mean_ns * 2.0 > stats.prepare.mean_ns {
        true => Stage::HostRead,
        false => Stage::HostCompute,
    };
    let all =
        [(host, waits.host), (Stage::Device, waits.device), (Stage::HandOver, waits.hand_over)];
    let slowest = all.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    slowest.map_or(Stage::Step, |(stage, _)| stage)
}

/// What each stage could do by itself.
fn ceilings(stats: &EpochStats, around: &Surroundings, waits: &Waits) -> Vec<Ceiling> {
    let threads = f64::from(around.workers.max(1));
    let compute_ns = stats.prepare.mean_ns - stats.read.mean_ns;
    let who = match around.workers {
        0 => "the consumer's own thread".to_owned(),
        1 => "1 worker".to_owned(),
        workers => format!("{workers} workers"),
    };
    let ceiling = |stage, each_ns: f64, at_once: f64, how: String, waited: f64| {
        let rate = at_once * 1e9 / each_ns;
        // One thread's rate is what was measured; several are taken to work side by side.
        let is_measured = matches!(stage, Stage::HandOver | Stage::Transform | Stage::Step);
        (rate.is_finite() && rate > 0.0).then(|| Ceiling {
            stage,
            measured_batches_per_second: is_measured.then_some(rate),
            modelled_batches_per_second: (!is_measured).then_some(rate),
            how,
            seconds: waited / 1e9,
        })
    };
    let read_share = (stats.read.mean_ns / stats.prepare.mean_ns.max(1.0)).min(1.0);
    let of_workers = |what| format!("{who} by the measured mean time that a batch {what}");
    let t_s = |device: &crate::stats::DeviceSchedule| {
        if device.t_s_ns > 0 { 1e9 / device.t_s_ns as f64 } else { 0.0 }
    };
    let devices: f64 = stats.schedule.devices.iter().map(t_s).sum();
    let transform_ns = waits.transform / stats.records.len() as f64;
    let (step, how) = match around.replayed_step_ns {
        Some(replayed) => (replayed, "a replay of batches that were ready"),
        None => (stats.step.mean_ns - transform_ns, "the steps of this epoch"),
    };
    let all = [
        ceiling(
            Stage::HostRead,
            stats.read.mean_ns,
            threads,
            of_workers("waited for reads"),
            waits.host * read_share,
        ),
        ceiling(
            Stage::HostCompute,
            compute_ns,
            threads,
            of_workers("was computed"),
            waits.host * (1.0 - read_share),
        ),
        ceiling(
            Stage::Device,
            1e9,
            devices,
            "the measured mean time of a batch at each device".to_owned(),
            waits.device,
        ),
        ceiling(
            Stage::HandOver,
            stats.bring.mean_ns,
            1.0,
            "one thread that fetches and checks slots".to_owned(),
            waits.hand_over,
        ),
        ceiling(
            Stage::Transform,
            transform_ns,
            1.0,
            "the function's measured time".to_owned(),
            waits.transform,
        ),
        ceiling(Stage::Step, step, 1.0, how.to_owned(), waits.step),
    ];
    all.into_iter().flatten().collect()
}

fn sentences(
    explanation: &Explanation,
    stats: &EpochStats,
    around: &Surroundings,
    waits: &Waits,
) -> Vec<String> {
    let Explanation { is_loading, stage, waited_share, startup_seconds, .. } = explanation;
    let percent = waited_share * 100.0;
    let mut said = Vec::new();
    let (gain, source) = match explanation.measured_gain {
        Some(gain) => (Some(gain), "measured: a replay of ready batches"),
        None => (explanation.modelled_gain, "modelled: the steps as they were measured"),
    };
    if *is_loading {
        said.push(format!(
            "Loading is the bottleneck: the consumer waited for batches for {percent:.0} % of the \
             time, mostly for {}.",
            stage.name()
        ));
        said.push(match gain {
            Some(gain) => format!(
                "With every batch ready in time the epoch would be {gain:.2} times as fast \
                 ({source})."
            ),
            None => "The steps take no time: any faster loading is as much faster an epoch.".into(),
        });
        said.extend(advice(*stage, stats, around));
    } else {
        said.push(format!(
            "Loading is not the bottleneck: the consumer waited for batches for {percent:.1} % of \
             the time; {} {}.",
            if waits.transform > 0.0 { "most of the rest went to" } else { "the rest went to" },
            stage.name()
        ));
        let gain = gain.unwrap_or(1.0);
        said.push(format!(
            "Faster loading would make the epoch at most {gain:.2} times as fast ({source})."
        ));
    }
    let transform_ns = waits.transform / stats.records.len() as f64;
    if transform_ns > 0.0 {
        let total = waits.loading() + waits.transform + waits.step;
        said.push(format!(
            "The batch transform takes {:.2} ms a batch, {:.1} % of the time, in the thread that \
             consumes batches.",
            transform_ns / 1e6,
            waits.transform / total * 100.0
        ));
    }
    if *stage == Stage::Transform {
        said.extend(advice(*stage, stats, around));
    }
    let step_ns = stats.step.mean_ns - transform_ns;
    if let Some(replayed) = around.replayed_step_ns.filter(|it| *it * 1.1 < step_ns) {
        said.push(format!(
            "A step takes {:.2} ms while batches are prepared and {:.2} ms without: both share \
             cores or memory.",
            step_ns / 1e6,
            replayed / 1e6
        ));
    }
    for ceiling in &explanation.ceilings {
        let (rate, figure) = match ceiling.measured_batches_per_second {
            Some(rate) => (rate, "measured"),
            None => (ceiling.modelled_batches_per_second.unwrap_or_default(), "modelled"),
        };
        said.push(format!(
            "Ceiling of {}: {rate:.1} batches/s ({figure}: {}); {:.3} s of the epoch.",
            ceiling.stage.name(),
            ceiling.how,
            ceiling.seconds
        ));
    }
    said.push(format!("The first batch was there after {startup_seconds:.3} s."));
    said
}

/// What would help against a slow stage.
fn advice(stage: Stage, stats: &EpochStats, around: &Surroundings) -> Option<String> {
    let spare = around.cores > around.workers as usize + 1;
    let text = match stage {
        Stage::HostRead => {
            "Reads are what takes time: a faster drive, more reads in flight (more workers), or a \
             device that reads at its end would help."
        }
        Stage::HostCompute if around.workers == 0 => {
            "Batches are prepared in the consumer's own thread: with workers they would be \
             prepared while it trains."
        }
        Stage::HostCompute if spare => "More workers would help: there are cores left.",
        Stage::HostCompute if stats.devices.is_empty() => {
            "All cores are in use: a device that takes a share, a dataset in coefficient form, or \
             an offline prefix of the recipe would help."
        }
        Stage::HostCompute => {
            "All cores are in use: a dataset in coefficient form, or an offline prefix of the \
             recipe would help."
        }
        Stage::Device => {
            "The device is what is waited for: a strategy that gives it less (wrr, mte-feedback, \
             auto) or a faster device would help."
        }
        Stage::HandOver => {
            "Batches of the device wait in its spool: a larger spool quota, or a spool in memory \
             rather than a file, would help."
        }
        Stage::Transform => {
            "The function runs while nothing else of the loop does: operations of the recipe in \
             its place would be computed ahead, by workers and devices."
        }
        Stage::Step => return None,
    };
    Some(text.to_owned())
}
