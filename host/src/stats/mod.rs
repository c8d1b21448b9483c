//! The statistics of an epoch. Every field has its unit in its name; times are wall time unless
//! stated otherwise.
//!
//! In reading order: this file (the data), `limits` (speed limits of devices, and whether they were
//! met), `meters` (the sources).

mod limits;
mod meters;

pub use crate::causes::{
    BatchFault, Breach, Exit, LabelError, Loss, LossCause, ProcessEnd, SlotRefusal, SystemError,
};
pub use crate::damage::{DAMAGE_RECORDS_MAX, DamageRecord, DamageStats};
pub use crate::delivery::DeliveryUse;
pub use crate::events::{Attempt, DeviceLabel, Event, EventKind, Phase, Remaining};
pub use limits::{OFF_TARGET_MAX, SpeedLimit};
pub(crate) use meters::{Meter, peak_resident_bytes, reset_peak_resident};

use meetpoint_format::units::show_bytes;
use meetpoint_format::wire;
use meetpoint_link::Targets;
pub use meetpoint_link::{CoreUse, Disturbance};
use meetpoint_prepare::MemoryKind;
pub use meetpoint_prepare::RemoteUse;
pub use meetpoint_prepare::gpu::{Downloaded, GpuFailure, GpuUse, NotOffloaded, NotTaken};
use meetpoint_scheduler::{
    Budget, Concurrency, DeviceId, Epoch as Scheduler, Learned, Record, Selection, Source,
};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt::Display;

/// How far batches are from their positions in the order of the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Displacement {
    /// Mean over all batches, in batches.
    pub mean: f64,
    /// Largest, in batches.
    pub max: u32,
}

/// An epoch, finished or aborted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EpochStats {
    /// Its number, from 0.
    pub epoch: u32,
    /// N: batches that the epoch has.
    pub batches: u32,
    /// Whether all of them were consumed.
    pub is_complete: bool,
    /// Samples consumed.
    pub samples: u64,
    /// When it began, on the system's monotonic clock.
    pub begun_ns: u64,
    /// From the beginning of the epoch to the end of the last step.
    pub duration_ns: u64,
    /// Every batch in the order of consumption.
    pub records: Vec<BatchRecord>,
    /// CRC-32C over the indices of the batches consumed, 32 bits each, little-endian.
    pub order_crc32c: u32,
    /// Time that the consumer waited for a batch; with no workers, its preparation included.
    pub wait: Quantiles,
    /// Time in which the host prepared a batch.
    pub prepare: Quantiles,
    /// Time within it that was spent waiting for reads.
    pub read: Quantiles,
    /// Time between the delivery of a batch and the request for the next.
    pub step: Quantiles,
    /// Time from a device's publish to the batch being ready in host memory.
    pub fetch: Quantiles,
    /// Time within it during which a thread fetched the batch and checked it.
    pub bring: Quantiles,
    /// CPU time of this process, all threads.
    pub host_cpu_ns: u64,
    /// Highest resident memory of this process since the epoch began (since the process began, if
    /// the kernel does not allow a reset).
    pub host_peak_resident_bytes: u64,
    /// Bytes of the dataset and of the spool file that the host read.
    pub host_bytes_read: u64,
    /// Bytes that the host wrote to storage.
    pub host_bytes_written: u64,
    /// CPU time spent on the checksums for [`crate::LoaderConfig::verify_samples`].
    pub verify_ns: u64,
    /// The part of each device, by number; empty if none was used.
    pub devices: Vec<DeviceStats>,
    /// The scheduler's result.
    pub schedule: Schedule,
    /// Device batches that were published before the epoch began.
    pub ahead_batches: u32,
    /// Device batches that were retained in their slots from an earlier epoch.
    pub reused_batches: u32,
    /// Distance of batches from the epoch's order, if batches were chosen for devices; `None` if
    /// the order was unchanged.
    pub displacement: Option<Displacement>,
    /// The use of the cache of prepared samples; `None` without one.
    pub cache: Option<CacheUse>,
    /// Statistics of reads from stores; `None` if the dataset is on this machine.
    pub store: Option<RemoteUse>,
    /// The cost of copying batches to a GPU; `None` if they stay on the host.
    pub delivery: Option<DeliveryUse>,
    /// The use of a GPU by the host's preparers; `None` without one.
    pub gpu: Option<GpuUse>,
    /// The use of a tuner; `None` without one.
    pub tuning: Option<TuningUse>,
    /// Faults and the reactions to them.
    pub events: Vec<Event>,
    /// Damaged samples of consumed batches, and how they were handled.
    pub damage: DamageStats,
    /// Checksums of the samples of every consumed batch, in that order; empty unless requested.
    #[serde(skip)]
    pub checks: Vec<BatchCheck>,
}

/// The use that an epoch made of the cache of prepared samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CacheUse {
    /// Samples of the host that were taken from it.
    pub hits: u64,
    /// Samples of the host that were not in it.
    pub misses: u64,
    /// Samples that this process added to it since it was opened.
    pub added: u64,
    /// Samples that this process evicted from it since it was opened.
    pub evicted: u64,
    /// Bytes of samples that this process holds in it at the end of the epoch.
    pub bytes: u64,
    /// The budget in bytes, over all ranks, with its index.
    pub budget_bytes: u64,
    /// Operations of the recipe that are executed before a sample is cached.
    pub operations: u64,
    /// Ranks that share it.
    pub ranks: u64,
    /// Of these, the ranks that have opened it; nothing is cached until all have.
    pub ranks_attached: u64,
}

impl CacheUse {
    /// Share of the host's samples that were taken from it; 0 if the host prepared none.
    pub fn hit_share(&self) -> f64 {
        let all = self.hits + self.misses;
        if all == 0 { 0.0 } else { self.hits as f64 / all as f64 }
    }
}

impl Display for CacheUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.ranks_attached < self.ranks {
            return write!(
                f,
                "The cache is not used: {} of {} ranks have opened it.",
                self.ranks_attached, self.ranks
            );
        }
        write!(
            f,
            "The cache after operation {} had {:.1} % of the host's samples ({} of {}); it holds \
             {} of at most {}.",
            self.operations,
            100.0 * self.hit_share(),
            self.hits,
            self.hits + self.misses,
            show_bytes(self.bytes),
            show_bytes(self.budget_bytes)
        )
    }
}

/// The use of a tuner in an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuningUse {
    /// Workers and batches ahead at the beginning of the epoch.
    pub start: Concurrency,
    /// The same at its end, with which the next epoch begins.
    pub end: Concurrency,
    /// The limits of both.
    pub budget: Budget,
    /// Moves that were tried.
    pub tried: u32,
    /// Moves that were retained because a batch then took less time.
    pub kept: u32,
    /// Moves that were undone because they did not help.
    pub rolled_back: u32,
    /// Moves that could not be applied.
    pub refused: u32,
}

impl TuningUse {
    pub(crate) fn new(start: Concurrency, budget: Budget) -> Self {
        Self { start, end: start, budget, tried: 0, kept: 0, rolled_back: 0, refused: 0 }
    }
}

impl Display for TuningUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { start, end, budget, tried, kept, .. } = self;
        let most = budget.cores.max(start.workers);
        write!(f, "Tuning ended with {} of at most {most} workers ", end.workers)?;
        write!(f, "and {} of at most {} batches ahead", end.ahead, budget.ahead_max)?;
        match tried {
            0 => f.write_str(": nothing was tried."),
            _ => write!(
                f,
                " (at first {} and {}): {tried} tried, {kept} kept.",
                start.workers, start.ahead
            ),
        }
    }
}

/// The end that prepared a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preparer {
    /// The host.
    Host,
    /// The device.
    Device,
}

impl From<Source> for Preparer {
    fn from(source: Source) -> Self {
        match source {
            Source::Host => Self::Host,
            Source::Device(_) => Self::Device,
        }
    }
}

/// The life of one batch; nanoseconds since the epoch began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BatchRecord {
    /// Index in the epoch.
    pub batch: u32,
    /// The end that prepared it.
    pub source: Preparer,
    /// Number of the device, if a device prepared it.
    pub device: Option<u16>,
    /// The memory that contained it when it was ready.
    pub memory: MemoryKind,
    /// Preparation began.
    pub prepare_start_ns: u64,
    /// Preparation ended; for a device: it was published.
    pub prepare_end_ns: u64,
    /// It could be consumed: it was in host memory and checked.
    pub ready_ns: u64,
    /// It was delivered to the consumer.
    pub consume_ns: u64,
    /// The consumer requested the next batch.
    pub step_end_ns: u64,
}

/// The samples of one consumed batch, with their checksums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchCheck {
    /// Index in the epoch.
    pub batch: u32,
    /// The end that prepared it.
    pub source: Preparer,
    /// Number of the device, if a device prepared it.
    pub device: Option<u16>,
    /// Indices in the dataset; for a replacement, the index of the damaged sample.
    pub samples: Vec<u64>,
    /// CRC-32C of each sample's tensor.
    pub crc32c: Vec<u32>,
    /// Damaged samples that were skipped.
    pub left_out: Vec<u64>,
}

/// Quantiles of a time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Quantiles {
    /// Number of recorded values.
    pub count: u64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 90 % of the values are at most this.
    pub p90_ns: u64,
    /// 99 % of the values are at most this.
    pub p99_ns: u64,
    /// Longest.
    pub max_ns: u64,
}

/// A device's part of an epoch, as it reported it; all zero if its link could not be opened.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct DeviceStats {
    /// CPU time of its preparing threads.
    pub cpu_ns: u64,
    /// Time while it had work.
    pub busy_ns: u64,
    /// Bytes of the dataset that it read.
    pub bytes_read: u64,
    /// Bytes of slots that it wrote.
    pub bytes_written: u64,
    /// Batches that it finished, whether or not they were used.
    pub batches: u64,
    /// Highest resident memory of its process.
    pub peak_resident_bytes: u64,
    /// Its speed limits since it was loaded, if it is emulated, as far as they were measured.
    pub limits: Vec<SpeedLimit>,
    /// How its core was used since it was loaded, and what disturbed it; `None` if it is not
    /// emulated, or did not report it.
    pub core_use: Option<CoreUse>,
}

impl DeviceStats {
    /// The difference between `now` and `before`; totals that decreased belong to a restarted
    /// device. `targets` are the limits of an emulated device.
    pub(crate) fn since(
        before: &wire::Meters,
        now: &wire::Meters,
        targets: Option<&Targets>,
    ) -> Self {
        let grown = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        Self {
            cpu_ns: grown(now.cpu_ns, before.cpu_ns),
            busy_ns: grown(now.busy_ns, before.busy_ns),
            bytes_read: grown(now.dataset_bytes_read, before.dataset_bytes_read),
            bytes_written: grown(now.spool_bytes_written, before.spool_bytes_written),
            batches: grown(now.batches, before.batches),
            peak_resident_bytes: now.memory_bytes_max,
            limits: targets.map_or_else(Vec::new, |targets| limits::of_device(targets, now)),
            core_use: now.core_use.map(Into::into),
        }
    }
}

/// The scheduler's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Schedule {
    /// Batches consumed that the host prepared.
    pub host_batches: u32,
    /// Batches consumed that the device prepared.
    pub device_batches: u32,
    /// Device claims that were revoked.
    pub revoked: u32,
    /// Reports that had no effect.
    pub void_reports: u32,
    /// Stalls of the device.
    pub stalls: u32,
    /// Whether the device was declared lost.
    pub device_lost: bool,
    /// The device's share n_s, if `mte` fixed one: it replays the epoch.
    pub split: Option<u32>,
    /// Whether that share would have been larger with more spool slots.
    pub split_limited_by_spool: bool,
    /// t_c: mean of one step on a batch that the host prepared; with workers, the interval between
    /// steps. 0 if there was none.
    pub t_c_ns: u64,
    /// t_s: mean of one batch at the device. 0 if there was none.
    pub t_s_ns: u64,
    /// t_g: mean of one step on a batch that the device had ready. 0 if there was none.
    pub t_g_ns: u64,
    /// The record that replays the epoch, if there is a small one.
    #[serde(serialize_with = "as_text")]
    pub record: Option<Record>,
    /// The selection of `auto`, and its reason.
    #[serde(serialize_with = "as_text")]
    pub selection: Option<Selection>,
    /// The learned times with which the next epoch begins.
    #[serde(skip)]
    pub learned: Learned,
    /// The part of each device, by number.
    pub devices: Vec<DeviceSchedule>,
}

/// The scheduler's result for one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct DeviceSchedule {
    /// Batches consumed that it prepared.
    pub batches: u32,
    /// Its claims that were revoked.
    pub revoked: u32,
    /// Number of times that it had work and sent no message.
    pub stalls: u32,
    /// Whether it was declared lost.
    pub is_lost: bool,
    /// t_s: mean of one of its batches. 0 if there was none.
    pub t_s_ns: u64,
}

fn as_text<T: Display, S: Serializer>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => to.collect_str(value),
        None => to.serialize_none(),
    }
}

impl From<&Scheduler> for Schedule {
    fn from(scheduler: &Scheduler) -> Self {
        let summary = scheduler.summary();
        let devices = (0..=u16::MAX).map_while(|number| {
            let device = scheduler.device_summary(DeviceId(number))?;
            Some(DeviceSchedule {
                batches: device.batches,
                revoked: device.revoked,
                stalls: device.stalls,
                is_lost: device.lost,
                t_s_ns: device.batch_ns,
            })
        });
        Self {
            host_batches: summary.host_batches,
            device_batches: summary.device_batches,
            revoked: summary.revoked,
            void_reports: summary.void_reports,
            stalls: summary.stalls,
            device_lost: summary.device_lost,
            split: summary.split,
            split_limited_by_spool: summary.split_limited_by_spool,
            t_c_ns: summary.measured.host_ns,
            t_s_ns: summary.measured.device_ns,
            t_g_ns: summary.measured.ready_ns,
            record: scheduler.record(),
            selection: scheduler.selection(),
            learned: scheduler.learned(),
            devices: devices.collect(),
        }
    }
}

/// CRC-32C over a sequence of batch indices, 32 bits each, little-endian.
pub fn order_crc32c(batches: impl Iterator<Item = u32>) -> u32 {
    let bytes: Vec<u8> = batches.flat_map(u32::to_le_bytes).collect();
    meetpoint_format::checksum::crc32c(&bytes)
}
