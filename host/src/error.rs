//! What can go wrong in the runtime, each with its remedy.

use crate::collective::error::CollectiveError;
use crate::job::JobError;
use meetpoint_format::batching::BatchingError;
use meetpoint_format::holders::HoldersError;
use meetpoint_format::units::{show_bytes, show_bytes_at_least};
use meetpoint_scheduler::StrategyName;
use meetpoint_storage::MemoryLimit;
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

/// A loader that cannot be opened, or an epoch that cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The dataset or one of its samples.
    #[error(transparent)]
    Prepare(#[from] meetpoint_prepare::Error),
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
    #[error("{field} is {got}, must be {expected}")]
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
        "a batch of {batch_size} does not fit an epoch of dataset {}, which has {samples} samples; \
         set batch_size to {samples} or less", dataset.display()
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
    #[error("{batches} batches are more than the {limit} that an epoch can have; use larger ones")]
    TooManyBatches {
        /// There would be.
        batches: u64,
        /// Most.
        limit: u32,
    },
    /// A strategy that needs a device, without one.
    #[error("strategy {strategy} needs a device; add one, or use host-only")]
    NoDevice {
        /// Its name.
        strategy: StrategyName,
    },
    /// The ring cannot hold what is needed at the least.
    #[error(
        "memory budget of {} is too small: a batch takes {} and {least} are needed at the least; \
         set memory_budget to {} or more, or make batches smaller",
        show_bytes(*budget_bytes), show_bytes(*place_bytes), show_bytes(least * place_bytes)
    )]
    BudgetTooSmall {
        /// As given.
        budget_bytes: u64,
        /// Bytes of a batch, rounded up to huge pages.
        place_bytes: u64,
        /// Batches that must fit.
        least: u64,
    },
    /// The memory budget exceeds what this process may use.
    #[error(
        "memory budget of {} exceeds {}; set memory_budget to less than that",
        show_bytes(*budget_bytes), memory_of(limit)
    )]
    BudgetTooLarge {
        /// As given.
        budget_bytes: u64,
        /// What there is.
        limit: MemoryLimit,
    },
    /// The machine does not give the memory of the ring.
    #[error(
        "failed to reserve {} for batches: {source}; set memory_budget to less, or raise the \
         limit of address space (ulimit -v)", show_bytes(*bytes)
    )]
    RingMemory {
        /// Asked for.
        bytes: u64,
        /// Cause.
        source: std::io::Error,
    },
    /// The consumer keeps every batch alive.
    #[error(
        "no memory for the next batch after waiting {waited:?}: the consumer keeps {kept} batches \
         alive and the memory budget holds {places}; drop batches after use or raise memory_budget"
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
        "spool quota of {} is too small: a slot takes {} and {least} are needed at the least; \
         set the quota to {} or more, or make batches smaller",
        show_bytes(*quota_bytes), show_bytes(*slot_bytes),
        show_bytes_at_least(least * slot_bytes)
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
        "a spool of {} does not fit in memory: {} are available of {}; set the spool's quota to \
         less, or keep it in a file",
        show_bytes(*bytes), show_bytes(limit.available_bytes), memory_of(limit)
    )]
    SpoolTooLarge {
        /// Its size.
        bytes: u64,
        /// What there is.
        limit: MemoryLimit,
    },
    /// The spool cannot be made.
    #[error("failed to make a spool of {} in {place}: {source}; {remedy}", show_bytes(*bytes))]
    Spool {
        /// Its size.
        bytes: u64,
        /// Directory, or "memory".
        place: String,
        /// Cause.
        source: std::io::Error,
        /// What would be right.
        remedy: String,
    },
    /// Threads cannot be bound to these cores.
    #[error(
        "failed to bind threads to cores {cores:?}: {source}; name cores that this process may \
         use, `meetpoint doctor` counts them"
    )]
    Cores {
        /// As given.
        cores: Vec<usize>,
        /// Cause.
        source: std::io::Error,
    },
    /// The system gives no thread.
    #[error(
        "failed to start a thread or what it waits with: {0}; raise the limits of threads, open \
         files and memory (ulimit -u, -n, -v)"
    )]
    Thread(std::io::Error),
    /// A thread of the loader panicked.
    #[error("a preparing thread panicked; this is a defect of Meetpoint, please report it")]
    Panicked,
    /// There is no place for the socket of a device of our own.
    #[error(
        "failed to make a folder for the device's socket in {}: {source}; set XDG_RUNTIME_DIR to \
         a folder that can be written", parent.display()
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
    #[error("device program {} ended with {status} before it served{said}", program.display())]
    DeviceEnded {
        /// Program.
        program: PathBuf,
        /// How it ended.
        status: String,
        /// `: ` and the end of what it wrote to standard error; empty when that was nothing.
        said: String,
    },
    /// A device that was lost before it had a job; the host continues without it.
    #[error("{device} was lost before it served: {why}")]
    DeviceLost {
        /// Its program, or its socket.
        device: String,
        /// What happened.
        why: String,
    },
    /// Nobody answers at the socket.
    #[error(
        "no device answers at {}: {problem}; start one with \
         `meetpoint device serve --socket {} --root …`, or correct the path",
        socket.display(), socket.display()
    )]
    DeviceUnreachable {
        /// Socket.
        socket: PathBuf,
        /// What happened.
        problem: String,
    },
    /// A path that is no socket.
    #[error("no device answers at {}: it is {what}, no socket; correct the path", socket.display())]
    NotASocket {
        /// Path.
        socket: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// Whoever listens does not answer as a device does.
    #[error(
        "what listens at {} is no device, hangs or is full: {problem}; start a device on a socket \
         of its own with `meetpoint device serve`, correct the path, or try again when its other \
         hosts have ended", socket.display()
    )]
    NotADevice {
        /// Socket.
        socket: PathBuf,
        /// What happened.
        problem: String,
    },
    /// The device took too long.
    #[error(
        "the device at {} did not finish `{step}` within {limit:?}; see what `meetpoint device \
         probe --socket {}` says, or start it anew", socket.display(), socket.display()
    )]
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
         version {expected}; run the same version of Meetpoint at both ends", socket.display()
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
    },
    /// Fewer parts than devices, each of which is to hold parts of its own.
    #[error(
        "dataset {} has {parts} parts, too few for {devices} devices that hold parts of their \
         own: pack it again with smaller parts (meetpoint pack --part-size), use {parts} devices \
         or fewer, or let every device hold all of it (shared = true)", dataset.display()
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
    #[error("failed to spread the parts of {} over the devices: {source}", dataset.display())]
    Holders {
        /// Folder.
        dataset: PathBuf,
        /// Why not.
        source: HoldersError,
    },
    /// An epoch that cannot be cut into batches.
    #[error("failed to cut the epoch into batches: {0}")]
    Batching(#[from] BatchingError),
    /// A device whose parts do not make a batch for every rank.
    #[error(
        "device {device} of {devices} holds less than a batch for each of {ranks} ranks: give it \
         other parts, make batches smaller, or leave it out"
    )]
    NoBatchForDevice {
        /// Which.
        device: u16,
        /// How many there are.
        devices: u32,
        /// Ranks.
        ranks: u32,
    },
    /// Batches that cannot serve another epoch.
    #[error("batches cannot be kept for the next epoch: {why}")]
    Reuse {
        /// Why not.
        why: &'static str,
    },
    /// An epoch that cannot be gone on with.
    #[error("epoch {epoch} cannot be resumed: {why}")]
    Resume {
        /// Which.
        epoch: u32,
        /// Why not.
        why: &'static str,
    },
    /// Batches that cannot be chosen for the devices.
    #[error("batches cannot be chosen by what they save: {why}")]
    Choice {
        /// Why not.
        why: &'static str,
    },
    /// The ranks came to no decision.
    #[error("failed to decide with the other ranks: {0}")]
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
         {key} in {file}: {what}; repair the dataset (`meetpoint verify` names what is damaged), \
         or raise max_errors"
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
    #[error(
        "failed to keep damaged samples in {}: {source}; name a file that can be written",
        path.display()
    )]
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
    #[error("the epoch ended with an error before; start another")]
    EpochFailed,
}

impl Error {
    /// Whether a device was lost, which can happen at any time, unlike a wrong setting.
    pub(crate) fn is_loss(&self) -> bool {
        matches!(self, Self::DeviceLost { .. })
    }
}
