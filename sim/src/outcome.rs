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
    /// The middle half of the last epoch by itself, which its start and end hardly affect.
    pub middle_half: bool,
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
    /// How busy each kind of resource was, over all epochs.
    pub uses: Vec<ResourceUse>,
    /// The middle half of the last epoch, if it was recorded.
    pub middle_half: Option<MiddleHalf>,
    /// Requests that stores rejected.
    pub throttled: u64,
    /// Failures of hosts.
    pub host_failures: u32,
    /// Events that were simulated.
    pub events: u64,
    /// Maximum number of pending events at any time.
    pub events_waiting_max: usize,
}

/// The middle half of the steps of an epoch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MiddleHalf {
    /// How long it took.
    pub total_ns: u64,
    /// Steps of all trainings.
    pub steps: u64,
    /// How busy each kind of resource was.
    pub uses: Vec<ResourceUse>,
}

/// A kind of resource, and how busy its members were.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ResourceUse {
    /// The kind.
    pub resource: Resource,
    /// Number of members with a limit.
    pub count: u32,
    /// Mean utilisation over the members and the whole run, from 0 to 1.
    pub mean: f64,
    /// Utilisation of the busiest member.
    pub max: f64,
}

/// A kind of resource that limits throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// The accelerators.
    Accelerators,
    /// Workers and cores of the hosts.
    Hosts,
    /// Cores of the devices.
    Devices,
    /// What hosts receive.
    HostLinks,
    /// What devices send or receive.
    DeviceLinks,
    /// The core of the network.
    Core,
    /// Bandwidth of the stores.
    Stores,
    /// Requests that the stores accept.
    StoreRequests,
    /// Drives of devices, reads of samples and of slots.
    Drives,
    /// Caches of the hosts.
    Caches,
}

impl Resource {
    /// Its name, as in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accelerators => "accelerators",
            Self::Hosts => "hosts",
            Self::Devices => "devices",
            Self::HostLinks => "host-links",
            Self::DeviceLinks => "device-links",
            Self::Core => "core",
            Self::Stores => "stores",
            Self::StoreRequests => "store-requests",
            Self::Drives => "drives",
            Self::Caches => "caches",
        }
    }
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
    /// Time that its cores worked, all together, including discarded batches.
    pub busy_ns: u64,
    /// Batches that it published.
    pub published: u32,
    /// Batches that it dropped because they were revoked.
    pub dropped: u32,
    /// Maximum number of slots of its spool in use.
    pub slots_max: u32,
    /// How often it failed.
    pub failures: u32,
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
    /// Prepared batches, over links from devices to hosts.
    pub network_send: u64,
    /// Samples, from stores to hosts and devices.
    pub store_read: u64,
    /// Samples, from the caches of hosts.
    pub cache_read: u64,
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
            network_send: sum.network_send + epoch.bytes.network_send,
            store_read: sum.store_read + epoch.bytes.store_read,
            cache_read: sum.cache_read + epoch.bytes.cache_read,
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
    pub const COLUMNS: [&'static str; 30] = [
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
        "network_send_bytes",
        "store_read_bytes",
        "cache_read_bytes",
        "throttled",
        "device_failures",
        "host_failures",
        "binding",
        "binding_use",
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
            bytes.network_send.to_string(),
            bytes.store_read.to_string(),
            bytes.cache_read.to_string(),
            self.throttled.to_string(),
            self.sum_devices(|device| device.failures.into()).to_string(),
            self.host_failures.to_string(),
            self.binding().map(|it| it.resource.name().to_owned()).unwrap_or_default(),
            self.binding().map(|it| format!("{:.4}", it.mean)).unwrap_or_default(),
        ]
    }

    /// The resource with the highest mean utilisation: the one that limits the throughput.
    pub fn binding(&self) -> Option<ResourceUse> {
        self.uses.iter().copied().max_by(|a, b| a.mean.total_cmp(&b.mean))
    }

    /// Steps over all epochs; ranks take theirs together.
    pub fn steps(&self) -> u64 {
        let most = |epoch: &EpochOutcome| epoch.ranks.iter().map(|rank| rank.steps).max();
        self.epochs.iter().filter_map(most).map(u64::from).sum()
    }
}
