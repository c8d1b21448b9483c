//! What can go wrong in the runtime; `diagnose` has the remedies.

use crate::collective::error::CollectiveError;
use crate::job::JobError;
use meetpoint_diagnose::Remedy;
use meetpoint_format::batching::BatchingError;
use meetpoint_format::holders::HoldersError;
use meetpoint_format::units::show_bytes;
use meetpoint_scheduler::StrategyName;
use meetpoint_storage::MemoryLimit;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How much memory there is, and what limits it.
pub(crate) fn memory_of(limit: &MemoryLimit) -> String {
    let bytes = show_bytes(limit.bytes);
    match &limit.file {
        None => format!("the {bytes} of memory that this machine has"),
        Some(file) => format!("the {bytes} of memory that {} allows", file.display()),
    }
}

/// A device as it is known before it has a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceName {
    /// A process that this program starts.
    Program(PathBuf),
    /// A process that listens on a socket.
    Socket(PathBuf),
    /// The device that several ranks of this process share.
    Shared,
    /// A device that another rank of this process has lost.
    OfRank,
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(program) => write!(f, "device program {}", program.display()),
            Self::Socket(socket) => write!(f, "the device at {}", socket.display()),
            Self::Shared => f.write_str("the shared device"),
            Self::OfRank => f.write_str("the device"),
        }
    }
}

/// Why batches cannot be kept for the next epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReuseConflict {
    /// Every epoch has other batches.
    Shuffle,
    /// The recipe has random parameters.
    RandomRecipe,
    /// Devices that run ahead need the slots.
    RunAhead,
}

impl fmt::Display for ReuseConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shuffle => "every epoch is shuffled",
            Self::RandomRecipe => "the recipe has random parameters in every epoch",
            Self::RunAhead => "devices that run ahead need the slots",
        })
    }
}

/// Why an epoch cannot resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeConflict {
    /// Its devices hold parts of their own.
    PartsOfTheirOwn,
    /// Its batches are chosen for the devices at its start.
    ChosenAtStart,
    /// It does not have the batches that were consumed.
    OtherBatches,
    /// Nothing of it is left.
    AllConsumed,
}

impl fmt::Display for ResumeConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PartsOfTheirOwn => "its devices hold different parts",
            Self::ChosenAtStart => "its batches are chosen for the devices at its start",
            Self::OtherBatches => "it does not have the batches that were consumed",
            Self::AllConsumed => "all of its batches were consumed",
        })
    }
}

/// Why batches cannot be chosen for the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChoiceConflict {
    /// Devices that run ahead begin before the choice is made.
    RunAhead,
    /// A record replays an order without a choice.
    Replay,
}

impl fmt::Display for ChoiceConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RunAhead => "devices that run ahead begin before the choice is made",
            Self::Replay => "a record replays an order without a choice",
        })
    }
}

/// A loader that cannot be opened, or an epoch that cannot continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The dataset or one of its samples.
    #[error(transparent)]
    Prepare(#[from] meetpoint_prepare::Error),
    /// The cache of prepared samples.
    #[error(transparent)]
    Cache(#[from] meetpoint_prepare::cache::CacheError),
    /// Blocks.
    #[error(transparent)]
    Storage(#[from] meetpoint_storage::Error),
    /// The job file.
    #[error(transparent)]
    Job(#[from] JobError),
    /// Numbers that no epoch can be run with.
    #[error("failed to plan the epoch: {0}")]
    Plan(#[from] meetpoint_scheduler::Error),
    /// A setting out of its range.
    #[error("{field} is {got}")]
    Setting {
        /// Its name.
        field: &'static str,
        /// As given.
        got: u64,
        /// What would be right.
        expected: &'static str,
    },
    /// Not one batch.
    #[error(
        "a batch of {batch_size} is larger than an epoch of dataset {}, which has {samples} \
         samples",
        dataset.display()
    )]
    BatchLargerThanDataset {
        /// Asked for.
        batch_size: u32,
        /// There are.
        samples: u64,
        /// Folder.
        dataset: PathBuf,
    },
    /// A dataset without samples.
    #[error("dataset {} has no samples", dataset.display())]
    EmptyDataset {
        /// Folder.
        dataset: PathBuf,
    },
    /// More batches than an index holds.
    #[error("{batches} batches are more than the {limit} that an epoch can have")]
    TooManyBatches {
        /// There would be.
        batches: u64,
        /// Most.
        limit: u32,
    },
    /// A strategy that needs a device, without one.
    #[error("strategy {strategy} needs a device")]
    NoDevice {
        /// Its name.
        strategy: StrategyName,
    },
    /// The ring cannot hold what is needed at the least.
    #[error(
        "the memory budget of {} is too small: it must hold {least} batches, each of which takes \
         {} in whole huge pages",
        show_bytes(*budget_bytes), show_bytes(*ring_slot_bytes)
    )]
    BudgetTooSmall {
        /// As given.
        budget_bytes: u64,
        /// Bytes of a batch, rounded up to huge pages.
        ring_slot_bytes: u64,
        /// Batches that must fit.
        least: u64,
    },
    /// The memory budget exceeds what this process may use.
    #[error("memory budget of {} exceeds {}", show_bytes(*budget_bytes), memory_of(limit))]
    BudgetTooLarge {
        /// As given.
        budget_bytes: u64,
        /// What there is.
        limit: MemoryLimit,
    },
    /// The machine does not give the memory of the ring.
    #[error("failed to reserve {} for batches: {source}", show_bytes(*bytes))]
    RingMemory {
        /// Asked for.
        bytes: u64,
        /// Cause.
        source: std::io::Error,
    },
    /// The consumer keeps every batch alive.
    #[error(
        "no memory for the next batch after waiting {waited:?}: the consumer keeps {kept} batches \
         alive and the memory budget holds {places}"
    )]
    AllBatchesKept {
        /// Alive in the consumer's hands.
        kept: usize,
        /// Places of the ring.
        places: usize,
        /// How long was waited.
        waited: Duration,
    },
    /// The spool cannot hold what is needed at the least.
    #[error(
        "the spool quota of {} is too small: it must hold {least} slots of {}",
        show_bytes(*quota_bytes), show_bytes(*slot_bytes)
    )]
    QuotaTooSmall {
        /// As given.
        quota_bytes: u64,
        /// Bytes of a slot.
        slot_bytes: u64,
        /// Slots that must fit.
        least: u64,
    },
    /// A spool in memory that does not fit what is left of it.
    #[error(
        "a spool of {} does not fit in memory: {} are available of {}",
        show_bytes(*bytes), show_bytes(limit.available_bytes), memory_of(limit)
    )]
    SpoolTooLarge {
        /// Its size.
        bytes: u64,
        /// What there is.
        limit: MemoryLimit,
    },
    /// The spool cannot be made.
    #[error("failed to create a spool of {} in {place}: {source}", show_bytes(*bytes))]
    Spool {
        /// Its size.
        bytes: u64,
        /// Directory, or "memory".
        place: String,
        /// Cause.
        source: std::io::Error,
        /// What helps.
        remedy: Remedy,
    },
    /// Threads cannot be bound to these cores.
    #[error("failed to bind threads to cores {cores:?}: {source}")]
    Cores {
        /// As given.
        cores: Vec<usize>,
        /// Cause.
        source: std::io::Error,
    },
    /// The system gives no thread.
    #[error("failed to start a thread or create its wake-up descriptor: {0}")]
    Thread(std::io::Error),
    /// A thread of the loader panicked.
    #[error("a thread of the loader panicked, a defect of Meetpoint")]
    Panicked,
    /// There is no place for the socket of a device of our own.
    #[error(
        "failed to create a folder for the device's socket in {}: {source}", parent.display()
    )]
    SocketFolder {
        /// Where it was tried last.
        parent: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The device program cannot be started.
    #[error("failed to start device program {}: {source}", program.display())]
    DeviceStart {
        /// Program.
        program: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The device program ended before it served.
    #[error("device program {} exited with {status} before it was ready{said}", program.display())]
    DeviceEnded {
        /// Program.
        program: PathBuf,
        /// How it ended.
        status: String,
        /// `: ` and the end of what it wrote to standard error; empty when that was nothing.
        said: String,
    },
    /// A device that was lost before it had a job; the host continues without it.
    #[error("{device} was lost before it was ready: {why}")]
    DeviceLost {
        /// Which.
        device: DeviceName,
        /// What happened.
        why: String,
    },
    /// Nobody answers at the socket.
    #[error("no device answers at {}: {problem}", socket.display())]
    DeviceUnreachable {
        /// Socket.
        socket: PathBuf,
        /// What happened.
        problem: String,
    },
    /// The path is not a socket.
    #[error("no device answers at {}: it is {what}, not a socket", socket.display())]
    NotASocket {
        /// Path.
        socket: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// The listening process does not answer as a device does.
    #[error(
        "the process that listens at {} is not a device, hangs or accepts no more hosts: \
         {problem}", socket.display()
    )]
    NotADevice {
        /// Socket.
        socket: PathBuf,
        /// What happened.
        problem: String,
    },
    /// The device took too long.
    #[error("the device at {} did not finish `{step}` within {limit:?}", socket.display())]
    DeviceTimeout {
        /// Socket.
        socket: PathBuf,
        /// What was asked of it.
        step: &'static str,
        /// How long was waited.
        limit: Duration,
    },
    /// Another version of the protocol.
    #[error(
        "the device at {} speaks protocol version {got} (program {program_version}), this program \
         version {expected}", socket.display()
    )]
    DeviceVersion {
        /// Socket.
        socket: PathBuf,
        /// The device's.
        got: u32,
        /// Ours.
        expected: u32,
        /// The device's program.
        program_version: String,
    },
    /// The device will not do it.
    #[error("the device at {} refused `{step}`: {reason}", socket.display())]
    DeviceRefused {
        /// Socket.
        socket: PathBuf,
        /// What was asked of it.
        step: &'static str,
        /// Its own words.
        reason: String,
        /// What helps, as the device says.
        remedy: Option<Remedy>,
    },
    /// Fewer parts than devices, each of which is to hold parts of its own.
    #[error(
        "dataset {} has {parts} parts, too few for {devices} devices that hold different parts",
        dataset.display()
    )]
    TooFewParts {
        /// There are.
        parts: usize,
        /// Asked for.
        devices: usize,
        /// Folder.
        dataset: PathBuf,
    },
    /// Parts that cannot be spread over the devices as asked for.
    #[error("failed to assign the parts of {} to the devices: {source}", dataset.display())]
    Holders {
        /// Folder.
        dataset: PathBuf,
        /// Why not.
        source: HoldersError,
    },
    /// An epoch that cannot be cut into batches.
    #[error("failed to divide the epoch into batches: {0}")]
    Batching(#[from] BatchingError),
    /// A device whose parts do not make a batch for every rank.
    #[error("device {device} of {devices} holds less than a batch for each of {ranks} ranks")]
    NoBatchForDevice {
        /// Which.
        device: u16,
        /// How many there are.
        devices: u32,
        /// Ranks.
        ranks: u32,
    },
    /// Batches that cannot serve another epoch.
    #[error("batches cannot be reused in the next epoch: {conflict}")]
    Reuse {
        /// Why not.
        conflict: ReuseConflict,
    },
    /// An epoch that cannot resume.
    #[error("epoch {epoch} cannot be resumed: {conflict}")]
    Resume {
        /// Which.
        epoch: u32,
        /// Why not.
        conflict: ResumeConflict,
    },
    /// Batches that cannot be chosen for the devices.
    #[error("batches cannot be chosen by the time that they save: {conflict}")]
    Choice {
        /// Why not.
        conflict: ChoiceConflict,
    },
    /// The ranks came to no decision.
    #[error("failed to agree with the other ranks: {0}")]
    Collective(#[from] CollectiveError),
    /// What went wrong at one of several ranks.
    #[error("rank {rank}: {source}")]
    OfRank {
        /// Which, from 0.
        rank: u32,
        /// What.
        source: Box<Error>,
    },
    /// The thread of a rank panicked.
    #[error("the thread of rank {rank} panicked: {message}")]
    RankPanicked {
        /// Which, from 0.
        rank: u32,
        /// Its own words.
        message: String,
    },
    /// What is wrong with one of several devices.
    #[error("device {number}: {source}")]
    OfDevice {
        /// Which, from 0.
        number: usize,
        /// What.
        source: Box<Error>,
    },
    /// More samples are damaged than may be.
    #[error(
        "{errors} samples of epoch {epoch} are damaged and max_errors is {limit}; the last is \
         {key} in {file}: {what}"
    )]
    TooManyErrors {
        /// Which.
        epoch: u32,
        /// Met so far.
        errors: u64,
        /// Allowed.
        limit: u64,
        /// Key of the last.
        key: String,
        /// File that it lies in.
        file: String,
        /// What is wrong with it.
        what: String,
    },
    /// The file of damaged samples.
    #[error("failed to record damaged samples in {}: {source}", path.display())]
    Quarantine {
        /// File.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// [`crate::StopHandle::stop`] was called.
    #[error("interrupted")]
    Interrupted,
    /// The epoch ended with an error before.
    #[error("the epoch has already ended with an error")]
    EpochFailed,
}

impl Error {
    /// Whether a device was lost, which can happen at any time, unlike a wrong setting.
    pub(crate) fn is_loss(&self) -> bool {
        matches!(self, Self::DeviceLost { .. })
    }
}
