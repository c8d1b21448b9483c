//! The result of a simulated run. All times are virtual; nothing here was measured.

use meetpoint_scheduler::{BatchIndex, Level, Source, Time};
use serde::Serialize;

/// What to record in addition to the sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recording {
    /// Which batch was consumed from which source, in order, at each rank. Memory is proportional
    /// to the number of batches.
    pub sequence: bool,
    /// Every span of work. Memory is proportional to the number of batches.
    pub timeline: bool,
}

/// The result of all epochs of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// From the beginning of the first epoch to the end of the last, in nanoseconds.
    pub total_ns: u64,
    /// The epochs, in order. If a rank was lost, the last one is incomplete.
    pub epochs: Vec<EpochOutcome>,
    /// The rank that was lost, which ended the run.
    pub lost_rank: Option<LostRank>,
    /// Ranks that came late, but in time.
    pub late_ranks: Vec<u32>,
    /// Events that were simulated.
    pub events: u64,
    /// Maximum number of pending events at any time.
    pub events_waiting_max: usize,
}

/// A rank that did not arrive in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LostRank {
    /// The rank, from 0.
    pub rank: u32,
    /// In which epoch, from 0.
    pub epoch: u32,
    /// Before which step of the epoch, from 1.
    pub step: u32,
    /// When the others stopped waiting for it.
    pub at_ns: u64,
}

/// An epoch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EpochOutcome {
    /// From its beginning to the end of the last step of the last rank.
    pub total_ns: u64,
    /// One for each rank.
    pub ranks: Vec<RankOutcome>,
    /// One for each device.
    pub devices: Vec<DeviceOutcome>,
    /// Bytes over each leg.
    pub bytes: LegBytes,
}

/// The result of an epoch at one rank.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RankOutcome {
    /// From the epoch's beginning to the end of this rank's last step.
    pub total_ns: u64,
    /// Steps taken.
    pub steps: u32,
    /// Batches consumed that the host prepared.
    pub host_batches: u32,
    /// Batches consumed that a device prepared.
    pub device_batches: u32,
    /// Device batches that were published before the epoch began.
    pub ahead_batches: u32,
    /// Device batches that were retained from an earlier epoch.
    pub reused_batches: u32,
    /// Steps before which the accelerator waited.
    pub waits: u32,
    /// How long it waited; without workers, the consumer's own preparation does not count.
    pub wait_ns: u64,
    /// Core time of the host's preparation.
    pub host_busy_ns: u64,
    /// Batches that the host prepared, consumed or not.
    pub host_prepared: u32,
    /// Time that the accelerator spent in steps.
    pub accelerator_busy_ns: u64,
    /// Device claims that were revoked.
    pub revoked: u32,
    /// Batches that a device began but that were consumed from the host: work done twice.
    pub redone: u32,
    /// Reports that had no effect.
    pub void_reports: u32,
    /// Stalls of devices that were detected.
    pub stalls: u32,
    /// Devices that this rank considers lost.
    pub devices_lost: u32,
    /// The record with which the scheduler replays the epoch's order, if it has one.
    pub record: Option<String>,
    /// The strategy that `auto` selected, and why.
    pub picked: Option<String>,
    /// Consistency levels that the strategy gives.
    pub levels: Vec<Level>,
    /// Share of the devices under `mte`, once fixed.
    pub split: Option<u32>,
    /// The consumed batches, in order, if they were recorded.
    pub sequence: Option<Vec<(BatchIndex, Source)>>,
    /// Spans of work, if they were recorded.
    pub timeline: Option<Vec<Interval>>,
}

/// The result of an epoch at one device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct DeviceOutcome {
    /// Time that it worked, including discarded batches.
    pub busy_ns: u64,
    /// Batches that it published.
    pub published: u32,
    /// Batches that it dropped because they were revoked.
    pub dropped: u32,
    /// Maximum number of slots of its spool in use.
    pub slots_max: u32,
}

/// Bytes over each leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LegBytes {
    /// Samples, from storage to the host.
    pub host_read: u64,
    /// Samples, from flash to device.
    pub device_read: u64,
    /// Prepared batches, from device to spool.
    pub spool_write: u64,
    /// Prepared batches, from spool to host.
    pub spool_read: u64,
}

/// A span of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// The kind of work.
    pub what: WorkKind,
    /// The batch.
    pub batch: BatchIndex,
    /// From the run's beginning.
    pub start_ns: Time,
    /// From the run's beginning.
    pub end_ns: Time,
}

/// What an interval is spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkKind {
    /// The host prepares.
    Preparing,
    /// A device (numbered over the whole scenario) prepares and writes.
    AtDevice(u32),
    /// A slot is copied into host memory.
    Fetching,
    /// A step on a batch of this source.
    Step(Source),
}

impl Outcome {
    /// A sum over all epochs and ranks.
    pub fn sum(&self, of: impl Fn(&RankOutcome) -> u64) -> u64 {
        self.epochs.iter().flat_map(|epoch| &epoch.ranks).map(of).sum()
    }

    /// A sum over all epochs and devices.
    pub fn sum_devices(&self, of: impl Fn(&DeviceOutcome) -> u64) -> u64 {
        self.epochs.iter().flat_map(|epoch| &epoch.devices).map(of).sum()
    }

    /// Bytes over all epochs.
    pub fn bytes(&self) -> LegBytes {
        self.epochs.iter().fold(LegBytes::default(), |sum, epoch| LegBytes {
            host_read: sum.host_read + epoch.bytes.host_read,
            device_read: sum.device_read + epoch.bytes.device_read,
            spool_write: sum.spool_write + epoch.bytes.spool_write,
            spool_read: sum.spool_read + epoch.bytes.spool_read,
        })
    }

    /// Batches consumed.
    pub fn batches(&self) -> u64 {
        self.sum(|rank| u64::from(rank.host_batches) + u64::from(rank.device_batches))
    }

    /// Share of the batches that devices prepared, from 0 to 1.
    pub fn device_share(&self) -> f64 {
        self.sum(|rank| u64::from(rank.device_batches)) as f64 / self.batches().max(1) as f64
    }

    /// Names of [`Outcome::cells`], in their order: the columns of a sweep's CSV.
    pub const COLUMNS: [&'static str; 22] = [
        "total_s",
        "per_batch_s",
        "host_batches",
        "device_batches",
        "ahead_batches",
        "reused_batches",
        "waits",
        "wait_s",
        "host_busy_core_s",
        "device_busy_s",
        "accelerator_busy_s",
        "host_read_bytes",
        "device_read_bytes",
        "spool_write_bytes",
        "spool_read_bytes",
        "slots_max",
        "revoked",
        "redone",
        "stalls",
        "devices_lost",
        "lost_rank",
        "picked",
    ];

    /// The outcome as a row of a table: sums over epochs, ranks and devices.
    pub fn cells(&self) -> Vec<String> {
        let seconds = |ns: u64| format!("{:.9}", ns as f64 / 1e9);
        let ranks = self.epochs.iter().flat_map(|epoch| &epoch.ranks);
        let picked = ranks.filter_map(|rank| rank.picked.clone()).next_back();
        let slots = self.epochs.iter().flat_map(|epoch| &epoch.devices).map(|it| it.slots_max);
        let (bytes, steps) = (self.bytes(), self.steps().max(1));
        vec![
            seconds(self.total_ns),
            seconds((self.total_ns as f64 / steps as f64).round() as u64),
            self.sum(|rank| rank.host_batches.into()).to_string(),
            self.sum(|rank| rank.device_batches.into()).to_string(),
            self.sum(|rank| rank.ahead_batches.into()).to_string(),
            self.sum(|rank| rank.reused_batches.into()).to_string(),
            self.sum(|rank| rank.waits.into()).to_string(),
            seconds(self.sum(|rank| rank.wait_ns)),
            seconds(self.sum(|rank| rank.host_busy_ns)),
            seconds(self.sum_devices(|device| device.busy_ns)),
            seconds(self.sum(|rank| rank.accelerator_busy_ns)),
            bytes.host_read.to_string(),
            bytes.device_read.to_string(),
            bytes.spool_write.to_string(),
            bytes.spool_read.to_string(),
            slots.max().unwrap_or(0).to_string(),
            self.sum(|rank| rank.revoked.into()).to_string(),
            self.sum(|rank| rank.redone.into()).to_string(),
            self.sum(|rank| rank.stalls.into()).to_string(),
            self.sum(|rank| rank.devices_lost.into()).to_string(),
            self.lost_rank.map(|lost| lost.rank.to_string()).unwrap_or_default(),
            picked.unwrap_or_default(),
        ]
    }

    /// Steps over all epochs; ranks take theirs together.
    pub fn steps(&self) -> u64 {
        let most = |epoch: &EpochOutcome| epoch.ranks.iter().map(|rank| rank.steps).max();
        self.epochs.iter().filter_map(most).map(u64::from).sum()
    }
}
