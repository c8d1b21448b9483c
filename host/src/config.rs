//! The configuration of a loader.

use crate::causes::Loss;
use crate::collective::Collective;
use crate::gpu_decode::GpuDecode;
use crate::{Notify, StopHandle};
use meetpoint_format::column::ColumnNames;
use meetpoint_format::recipe::Recipe;
use meetpoint_format::sampler::{Sampler, Shuffled};
use meetpoint_link::RemoteDevice;
use meetpoint_prepare::cache::{CacheSettings, CacheSlot};
use meetpoint_prepare::gpu::GpuIndex;
use meetpoint_prepare::{CpuPreparers, DatasetPaths, OnError, PreparerFactory};
use meetpoint_scheduler::{AnyStrategy, Costs, HostOnly, Learned, Record};
use meetpoint_storage::{EngineKind, MemoryLimit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Everything that [`crate::Loader::open`] needs. [`LoaderConfig::new`] gives the defaults.
#[derive(Debug, Clone)]
pub struct LoaderConfig {
    /// Folder of the dataset, or several that are served as one.
    pub dataset: DatasetPaths,
    /// The operations on every sample.
    pub recipe: Arc<Recipe>,
    /// The columns of a batch: names of columns of the dataset, in the order in which a batch
    /// contains them. Default: `image` and `label`.
    pub columns: ColumnNames,
    /// Samples in a batch.
    pub batch_size: u32,
    /// Whether a last batch that is not full is dropped. Default: false.
    pub drop_last: bool,
    /// Which samples an epoch has, and in which order. Default: `shuffled`.
    pub sampler: Sampler,
    /// Seed of order and augmentation. Default: 0.
    pub seed: u64,
    /// The strategy, which decides which end prepares each batch. Default: `host-only`.
    pub strategy: AnyStrategy,
    /// Number of background threads that prepare; 0: the consumer's thread does, inside
    /// [`crate::Epoch::next_batch`]. Default: 0.
    pub workers: u32,
    /// Batches prepared ahead per worker, like PyTorch's `prefetch_factor`. Default: 2.
    pub prefetch: u32,
    /// Whether the numbers of workers and of batches ahead adapt while epochs run. They then start
    /// at `workers`, at least 1, and `prefetch`. Default: off.
    pub tune: Tune,
    /// Maximum memory of the ring of batches. A second budget of the same size, but at most half of
    /// the memory that this process may use, limits the memory for decoding pictures that take more
    /// than 16 MiB each: it is divided equally among the host, all of whose workers share its part,
    /// and each device on this machine. A spool in memory has its own limit,
    /// [`SpoolConfig::quota_bytes`]. Default: [`LoaderConfig::memory_budget_default`]. Must not
    /// exceed the memory that this process may use.
    pub memory_budget_bytes: u64,
    /// Maximum memory for the stored bytes of small samples (of at most 4 KiB on average), which
    /// the host's preparers then read once; a part of [`LoaderConfig::memory_budget_bytes`]. 0 for
    /// none. `None`: what batches leave of that budget, at most 256 MiB and a sixteenth of the
    /// memory of this process. With a cache of prepared samples, none. Default: `None`.
    pub small_samples_bytes: Option<u64>,
    /// Prepared samples in memory, used by the host's preparers. Default: none.
    pub cache: Option<CacheSettings>,
    /// The cache itself, opened with the first loader. Ranks that are threads of one process get
    /// clones of one configuration, and so share the cache.
    pub cache_slot: CacheSlot,
    /// Makes the preparer of each thread. Default: [`CpuPreparers`].
    pub preparers: Arc<dyn PreparerFactory>,
    /// A GPU that prepares a share of each batch of the host, with its own preparers instead of
    /// [`LoaderConfig::preparers`]. Default: none.
    pub gpu_decode: Option<GpuDecode>,
    /// The GPU to which the consumer delivers every batch with a
    /// [`DeliveryStage`](crate::delivery::DeliveryStage). Tensors that
    /// [`LoaderConfig::gpu_decode`] prepares on the same GPU then stay there, and are missing in
    /// the host memory of the batch. Default: none; batches are complete in host memory.
    pub delivers_to: Option<GpuIndex>,
    /// Folders of Python packages, one of which may have the run-time compiler for that GPU.
    /// Default: none.
    pub package_folders: Vec<PathBuf>,
    /// How blocks are read. Default: `Auto`.
    pub engine: EngineKind,
    /// Reads in flight per worker. Default: 32.
    pub read_depth: usize,
    /// The devices, by number. A strategy that uses no devices does not start them. Default: none.
    pub devices: Vec<DeviceSource>,
    /// The spool for the batches of each device; every device has a separate spool with this quota.
    /// Default: memory, 256 MiB, or an eighth of what this process may use if that is less.
    pub spool: SpoolConfig,
    /// Spools of devices, by number, that differ from [`LoaderConfig::spool`]. Default: none.
    pub spools: BTreeMap<u16, SpoolConfig>,
    /// A device with work that sends no message for this long is fenced off. Default: 2 s.
    pub stall_timeout: Duration,
    /// How long to wait for memory while the consumer retains every batch before returning an
    /// error. Default: 5 s.
    pub place_timeout: Duration,
    /// Whether every device holds the whole dataset and may prepare any batch. Otherwise, each of
    /// several devices holds different parts. Default: false.
    pub shared_dataset: bool,
    /// The device that holds each part of the dataset, by the part's number; empty: part p is on
    /// device p mod D. No effect with one device or with a shared dataset. Default: empty.
    pub part_holders: Vec<u32>,
    /// Times known before the first epoch; each later epoch begins with the times learned in the
    /// previous one. Default: nothing.
    pub learned: Learned,
    /// A recorded epoch whose order is replayed in every epoch. Default: none.
    pub replay: Option<Record>,
    /// Power consumption, for strategy `auto` with a goal other than throughput. Default: unknown.
    pub costs: Option<Costs>,
    /// Batches of each source that `mte` measures if the times are not known. Default: 3.
    pub profile_batches: u32,
    /// Devices that have finished their part of an epoch begin the next one, if its number is below
    /// this. Default: 0, never.
    pub run_ahead: u32,
    /// Whether device batches are retained in their slots for the next epoch, as far as the spool's
    /// quota allows. Requires a deterministic recipe and an order without shuffling; cannot be
    /// combined with running ahead. Default: false.
    pub reuse: bool,
    /// Whether devices get the batches that save the most host time per device time, as estimated
    /// from earlier epochs, instead of the end of the order. The order then differs from the host's
    /// own and is not reproduced by a record. Default: false.
    pub choose_by_saving: bool,
    /// The rank, from 0. Default: 0.
    pub rank: u32,
    /// G: number of ranks that share the dataset and step together. Default: 1.
    pub ranks: u32,
    /// Number of loaders that share [`LoaderConfig::memory_budget_bytes`] and the quota of every
    /// spool equally: ranks of one process. Default: 1.
    pub shares: u32,
    /// Exchanges the ranks' proposals; required with more than one rank. Default: none.
    pub collective: Option<Arc<dyn Collective>>,
    /// How long a rank waits in a step without a message from another rank, before it returns an
    /// error that names the missing ranks. A rank that prepares a batch or waits for its devices
    /// sends heartbeats. Default: 60 s.
    pub rank_timeout: Duration,
    /// Cores for the threads of the host; also for the consumer's thread while an epoch runs
    /// without workers. Default: all that the process may use.
    pub host_cores: Option<Vec<usize>>,
    /// How to handle samples that cannot be read or decoded. Default: the epoch ends with an error.
    pub on_error: OnError,
    /// Maximum number of samples of an epoch that may be skipped or replaced; one more is an error.
    /// Default: any number.
    pub errors_max: Option<u64>,
    /// File to which a line of JSON is appended for every damaged sample that it does not list yet.
    /// Default: none.
    pub quarantine: Option<PathBuf>,
    /// Whether the checksum of every sample of every consumed batch is recorded, for
    /// [`crate::verify`]. Default: false.
    pub verify_samples: bool,
    /// Called at once when a device was not reached at the start, and when the consumer has waited
    /// long for a device. Default: none.
    pub notify: Option<Notify>,
    /// Ends every wait; share a clone to be able to interrupt even [`crate::Loader::open`].
    pub stop: StopHandle,
}

impl LoaderConfig {
    /// Maximum default of [`LoaderConfig::memory_budget_bytes`]: 512 MiB.
    const MEMORY_BUDGET_BYTES: u64 = 512 << 20;

    /// Default of [`LoaderConfig::memory_budget_bytes`] in a process with this limit: 512 MiB, or
    /// a quarter of what the process may use if that is less.
    pub fn memory_budget_default(limit: &MemoryLimit) -> u64 {
        limit.for_batches().min(Self::MEMORY_BUDGET_BYTES)
    }

    /// A configuration with defaults: host only, no workers. Reads this process's memory limit.
    pub fn new(dataset: impl Into<DatasetPaths>, recipe: Arc<Recipe>, batch_size: u32) -> Self {
        let limit = MemoryLimit::of_this_process();
        Self {
            dataset: dataset.into(),
            columns: ColumnNames::of(&recipe),
            recipe,
            batch_size,
            drop_last: false,
            sampler: Shuffled.into(),
            seed: 0,
            strategy: AnyStrategy::HostOnly(HostOnly),
            workers: 0,
            prefetch: 2,
            tune: Tune::Off,
            memory_budget_bytes: Self::memory_budget_default(&limit),
            small_samples_bytes: None,
            cache: None,
            cache_slot: CacheSlot::default(),
            preparers: Arc::new(CpuPreparers::default()),
            gpu_decode: None,
            delivers_to: None,
            package_folders: Vec::new(),
            engine: EngineKind::Auto,
            read_depth: 32,
            devices: Vec::new(),
            spool: SpoolConfig::within(&limit),
            spools: BTreeMap::new(),
            stall_timeout: Duration::from_secs(2),
            place_timeout: Duration::from_secs(5),
            shared_dataset: false,
            part_holders: Vec::new(),
            learned: Learned::nothing(),
            replay: None,
            costs: None,
            profile_batches: 3,
            run_ahead: 0,
            reuse: false,
            choose_by_saving: false,
            rank: 0,
            ranks: 1,
            shares: 1,
            collective: None,
            rank_timeout: Duration::from_secs(60),
            host_cores: None,
            on_error: OnError::default(),
            errors_max: None,
            quarantine: None,
            verify_samples: false,
            notify: None,
            stop: StopHandle::new(),
        }
    }

    /// The spool of a device.
    pub(crate) fn spool_of(&self, device: usize) -> &SpoolConfig {
        let number = u16::try_from(device).ok();
        number.and_then(|number| self.spools.get(&number)).unwrap_or(&self.spool)
    }

    /// Number of background threads at first: a tuner needs at least one.
    pub(crate) fn workers_at_start(&self) -> u32 {
        match self.tune {
            Tune::Off => self.workers,
            Tune::Auto => self.workers.max(1),
        }
    }

    /// Maximum number of threads that prepare, the consumer's included.
    pub(crate) fn threads_max(&self) -> u32 {
        let tuned = match self.tune {
            Tune::Off => 1,
            Tune::Auto => self.cores_to_use(),
        };
        self.workers_at_start().max(tuned)
    }

    /// Cores that a tuner may use: those given to the host, or those that affinity and the cgroup's
    /// quota leave to the process, shared equally by ranks of one process.
    pub(crate) fn cores_to_use(&self) -> u32 {
        let allowed = std::thread::available_parallelism().map_or(1, usize::from);
        let cores = self.host_cores.as_ref().map_or(allowed, |cores| cores.len().min(allowed));
        let cores = u32::try_from(cores).unwrap_or(u32::MAX) / self.shares.max(1);
        cores.clamp(1, WORKERS_MAX)
    }

    /// Whether there are devices and the strategy uses them.
    pub fn uses_devices(&self) -> bool {
        self.strategy.uses_devices() && !self.devices.is_empty()
    }
}

/// Maximum number of background threads that prepare.
pub(crate) const WORKERS_MAX: u32 = 1024;

/// Whether the numbers of workers and of batches ahead adapt while epochs run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tune {
    /// They adapt to measurements, within the cores of the process and the memory budget.
    Auto,
    /// They are not changed.
    #[default]
    Off,
}

impl Tune {
    /// Every value, in the order in which help lists them.
    pub const ALL: [Self; 2] = [Self::Auto, Self::Off];

    /// Its name in job files and in Python.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Off => "off",
        }
    }
}

/// How to reach a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceSource {
    /// A child process that is started and ended with the loader.
    Spawn(SpawnDevice),
    /// A device that is already running.
    Connect {
        /// Its socket.
        socket: PathBuf,
    },
    /// A device on another machine.
    Remote(Box<RemoteDevice>),
    /// A device that was started for several loaders, but was lost before it was ready.
    Lost {
        /// How it was lost.
        loss: Loss,
    },
}

/// A device process: `program arguments… --socket S --root DATASET --once`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnDevice {
    /// Program.
    pub program: PathBuf,
    /// Arguments that precede those that the loader adds.
    pub arguments: Vec<OsString>,
}

/// The spool for device batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolConfig {
    /// The kind of memory.
    pub kind: SpoolKind,
    /// Maximum bytes of slots.
    pub quota_bytes: u64,
}

impl SpoolConfig {
    /// Maximum default of [`Self::quota_bytes`]: 256 MiB.
    const QUOTA_BYTES: u64 = 256 << 20;

    /// The default in a process with this limit.
    pub fn within(limit: &MemoryLimit) -> Self {
        let kind = SpoolKind::Memory;
        Self { quota_bytes: Self::quota_default(&kind, limit), kind }
    }

    /// The default of [`Self::quota_bytes`] in a process with this limit: 256 MiB, or, in memory,
    /// an eighth of what the process may use if that is less.
    pub fn quota_default(kind: &SpoolKind, limit: &MemoryLimit) -> u64 {
        match kind {
            SpoolKind::Memory => limit.for_spool().min(Self::QUOTA_BYTES),
            SpoolKind::File { .. } => Self::QUOTA_BYTES,
        }
    }
}

/// The default in this process.
impl Default for SpoolConfig {
    fn default() -> Self {
        Self::within(&MemoryLimit::of_this_process())
    }
}

/// The kind of memory of a spool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpoolKind {
    /// An anonymous memory file that both processes map: batches are used in place.
    Memory,
    /// A preallocated file without a name: batches are read into the ring.
    File {
        /// Folder on the file system to use.
        directory: PathBuf,
    },
}
