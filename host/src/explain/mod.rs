//! Whether loading limited training, which stage was the bottleneck, and how much faster the epoch
//! could be.
//!
//! The waiting time of the consumer is measured for each batch, and attributed to the stage that
//! the batch was in. The possible gain follows from the steps, whose rate is that of a consumer
//! that always finds a batch ready.
//!
//! In reading order: this file (the facts), `gpu_meters` (what NVML measured), `words` (the same in
//! sentences).

mod gpu_meters;
mod words;

pub use gpu_meters::GpuMeter;

use crate::stats::{BatchRecord, CacheUse, DeliveryUse, EpochStats, GpuUse, RemoteUse, TuningUse};
use serde::{Deserialize, Serialize};

/// A smaller share of waiting time counts as no waiting.
pub const WAITED_SHARE_MIN: f64 = 0.05;

/// Facts about the run that the statistics of the epoch do not contain.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RunContext {
    /// Number of background threads that prepare; 0: the consumer's own thread does.
    pub workers: u32,
    /// Cores that the process may use.
    pub cores: usize,
    /// Mean time of a step on ready, repeated batches, while nothing is being prepared; `None` if
    /// it was not measured.
    pub replayed_step_ns: Option<f64>,
    /// Total time of the user's function on batches in the epoch; it runs in the consumer's thread,
    /// after a batch was delivered.
    pub transform_ns: f64,
}

/// A stage of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The host reads samples.
    HostRead,
    /// The host decodes and augments them.
    HostCompute,
    /// A device prepares.
    Device,
    /// A batch that a device published is brought into host memory and checked.
    HandOver,
    /// A function of the user changes the batch, in the consumer's thread.
    Transform,
    /// The consumer's own step.
    Step,
}

/// Where the rate of a stage comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// All workers, by the mean time that a batch waited for reads or was computed.
    Workers,
    /// All devices, by the mean time of a batch at each.
    Devices,
    /// The one thread that fetches and checks slots.
    FetchThread,
    /// The measured time of the user's function.
    Transform,
    /// A replay of batches that were ready.
    Replay,
    /// The steps of the epoch.
    Steps,
}

/// A remedy for a slow stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advice {
    /// Reads dominate: a faster drive, more reads in flight, or a device that reads.
    FasterReads,
    /// The consumer's own thread prepares: use workers.
    UseWorkers,
    /// Cores are idle: more workers.
    MoreWorkers,
    /// All cores are in use: a device, a dataset in coefficient form, or an offline prefix.
    AddDevice,
    /// The same if there is a device already.
    PrepareOffline,
    /// The device is too slow for its share: another strategy, or a faster device.
    SmallerDeviceShare,
    /// Batches wait in the spool: a larger one, or one in memory.
    LargerSpool,
    /// The user's function dominates: replace it by operations of the recipe.
    TransformInRecipe,
}

/// The user's function on batches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TransformTime {
    /// Mean time for one batch.
    pub seconds_per_batch: f64,
    /// Share of the time of the epoch, excluding the time until the first batch.
    pub share: f64,
}

/// A step is slower while batches are prepared: both share cores or memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Contention {
    /// Mean time of a step in the epoch.
    pub step_seconds: f64,
    /// The same in a replay, while nothing is prepared.
    pub replayed_step_seconds: f64,
}

/// How fast a stage would be if it never waited for another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// The stage.
    pub stage: Stage,
    /// Batches per second, measured.
    pub measured_batches_per_second: Option<f64>,
    /// Batches per second, computed from measured times.
    pub modelled_batches_per_second: Option<f64>,
    /// Where the number comes from.
    pub basis: Basis,
    /// Seconds of this epoch that the consumer waited for it; for the step, its duration.
    pub seconds: f64,
}

/// Why an epoch took as long as it did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The epoch.
    pub epoch: u32,
    /// Whether the consumer waited for batches for longer than [`WAITED_SHARE_MIN`] of the time.
    pub is_loading: bool,
    /// The stage that took most of the time: a stage of loading if the consumer waited, otherwise
    /// the batch transform or the step.
    pub stage: Stage,
    /// Share of the time during which the consumer waited for a batch, excluding the first batch.
    pub waited_share: f64,
    /// Seconds until the first batch.
    pub startup_seconds: f64,
    /// The speed-up of the epoch if every batch were ready on request, measured by a replay of
    /// ready batches; `None` without a replay.
    pub measured_gain: Option<f64>,
    /// The same, computed from the steps of this epoch; `None` if they take no time.
    pub modelled_gain: Option<f64>,
    /// Number of background threads that prepared; 0: the consumer's own thread did.
    pub workers: u32,
    /// A remedy for the slowest stage; `None` if that is the step.
    pub advice: Option<Advice>,
    /// The user's function on batches; `None` if there is none.
    pub transform: Option<TransformTime>,
    /// Steps slowed down by preparation; `None` unless a replay showed it.
    pub contention: Option<Contention>,
    /// The use of the cache of prepared samples; `None` without one.
    #[serde(default)]
    pub cache: Option<CacheUse>,
    /// Statistics of reads from stores; `None` if the dataset is on this machine.
    #[serde(default)]
    pub store: Option<RemoteUse>,
    /// The cost of copying batches to a GPU; `None` if they stay on the host.
    #[serde(default)]
    pub delivery: Option<DeliveryUse>,
    /// The use of a GPU by the host's preparers; `None` without one.
    #[serde(default)]
    pub gpu: Option<GpuUse>,
    /// What NVML measured of graphics boards, over an interval that may be longer than the epoch;
    /// empty where nothing was measured.
    #[serde(default)]
    pub gpu_meters: Vec<GpuMeter>,
    /// The use of a tuner; `None` without one.
    pub tuning: Option<TuningUse>,
    /// The ceiling of each stage that was used.
    pub ceilings: Vec<Ceiling>,
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
    /// Attributes every wait to the stage that its batch was in.
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

/// Explains an epoch; `None` if fewer than two batches were consumed.
pub fn explain(stats: &EpochStats, context: &RunContext) -> Option<Explanation> {
    if stats.records.len() < 2 {
        return None;
    }
    // A tuner changes the number of workers.
    let workers = stats.tuning.map_or(context.workers, |tuning| tuning.end.workers);
    let context = &RunContext { workers, ..*context };
    let waits = Waits::of(&stats.records, context.transform_ns);
    let total = waits.loading() + waits.transform + waits.step;
    let waited_share = if total > 0.0 { waits.loading() / total } else { 0.0 };
    let is_loading = waited_share > WAITED_SHARE_MIN;
    let ceilings = ceilings(stats, context, &waits);
    let stage = match is_loading {
        false if waits.transform > waits.step => Stage::Transform,
        false => Stage::Step,
        true => slowest(stats, &waits),
    };
    let gain = |step_ns: f64| {
        let least = waits.transform + step_ns;
        (least > 0.0).then(|| total / least)
    };
    // Preparation may slow down the steps themselves; a replay measures them without it.
    let replayed = context.replayed_step_ns.map(|each| each * stats.records.len() as f64);
    let transform_ns = waits.transform / stats.records.len() as f64;
    let step_ns = stats.step.mean_ns - transform_ns;
    Some(Explanation {
        epoch: stats.epoch,
        is_loading,
        stage,
        waited_share,
        startup_seconds: waits.startup / 1e9,
        measured_gain: replayed.and_then(gain),
        modelled_gain: gain(waits.step),
        workers: context.workers,
        advice: advice(stage, stats, context),
        transform: (transform_ns > 0.0).then(|| TransformTime {
            seconds_per_batch: transform_ns / 1e9,
            share: waits.transform / total,
        }),
        contention: context.replayed_step_ns.filter(|it| *it * 1.1 < step_ns).map(|replayed_ns| {
            Contention { step_seconds: step_ns / 1e9, replayed_step_seconds: replayed_ns / 1e9 }
        }),
        cache: stats.cache,
        store: stats.store,
        delivery: stats.delivery.clone(),
        gpu: stats.gpu.clone(),
        gpu_meters: Vec::new(),
        tuning: stats.tuning,
        ceilings,
    })
}

/// The loading stage with the longest waits.
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

/// The rate that each stage could reach by itself.
fn ceilings(stats: &EpochStats, context: &RunContext, waits: &Waits) -> Vec<Ceiling> {
    let threads = f64::from(context.workers.max(1));
    let compute_ns = stats.prepare.mean_ns - stats.read.mean_ns;
    let ceiling = |stage, each_ns: f64, at_once: f64, basis, waited: f64| {
        let rate = at_once * 1e9 / each_ns;
        // The rate of a single thread was measured; several are assumed to scale linearly.
        let is_measured = matches!(stage, Stage::HandOver | Stage::Transform | Stage::Step);
        (rate.is_finite() && rate > 0.0).then(|| Ceiling {
            stage,
            measured_batches_per_second: is_measured.then_some(rate),
            modelled_batches_per_second: (!is_measured).then_some(rate),
            basis,
            seconds: waited / 1e9,
        })
    };
    let read_share = (stats.read.mean_ns / stats.prepare.mean_ns.max(1.0)).min(1.0);
    let t_s = |device: &crate::stats::DeviceSchedule| {
        if device.t_s_ns > 0 { 1e9 / device.t_s_ns as f64 } else { 0.0 }
    };
    let devices: f64 = stats.schedule.devices.iter().map(t_s).sum();
    let transform_ns = waits.transform / stats.records.len() as f64;
    let (step, of_step) = match context.replayed_step_ns {
        Some(replayed) => (replayed, Basis::Replay),
        None => (stats.step.mean_ns - transform_ns, Basis::Steps),
    };
    let all = [
        ceiling(
            Stage::HostRead,
            stats.read.mean_ns,
            threads,
            Basis::Workers,
            waits.host * read_share,
        ),
        ceiling(
            Stage::HostCompute,
            compute_ns,
            threads,
            Basis::Workers,
            waits.host * (1.0 - read_share),
        ),
        ceiling(Stage::Device, 1e9, devices, Basis::Devices, waits.device),
        ceiling(Stage::HandOver, stats.bring.mean_ns, 1.0, Basis::FetchThread, waits.hand_over),
        ceiling(Stage::Transform, transform_ns, 1.0, Basis::Transform, waits.transform),
        ceiling(Stage::Step, step, 1.0, of_step, waits.step),
    ];
    all.into_iter().flatten().collect()
}

/// A remedy for a slow stage.
fn advice(stage: Stage, stats: &EpochStats, context: &RunContext) -> Option<Advice> {
    let has_idle_cores = context.cores > context.workers as usize + 1;
    Some(match stage {
        Stage::HostRead => Advice::FasterReads,
        Stage::HostCompute if context.workers == 0 => Advice::UseWorkers,
        Stage::HostCompute if has_idle_cores => Advice::MoreWorkers,
        Stage::HostCompute if stats.devices.is_empty() => Advice::AddDevice,
        Stage::HostCompute => Advice::PrepareOffline,
        Stage::Device => Advice::SmallerDeviceShare,
        Stage::HandOver => Advice::LargerSpool,
        Stage::Transform => Advice::TransformInRecipe,
        Stage::Step => return None,
    })
}
