//! Errors of the runtime; `diagnose` has the remedies.

use crate::causes::{Loss, LossCause, ProcessEnd};
use crate::collective::error::CollectiveError;
use crate::conflicts::{ChoiceConflict, ResumeConflict, ReuseConflict};
use crate::job_error::JobError;
use crate::stop::StopHandle;
use meetpoint_diagnose::{Diagnose, Remedy, shown};
use meetpoint_format::batching::BatchingError;
use meetpoint_format::holders::HoldersError;
use meetpoint_format::units::show_bytes;
use meetpoint_link::{AddressFileError, Endpoint};
use meetpoint_prepare::gpu::GpuIndex;
use meetpoint_scheduler::StrategyName;
use meetpoint_storage::{MemoryLimit, OpenFilesLimit};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// `: text`; nothing for an empty text.
fn after_colon(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

/// The words for a part of a budget that is reserved for small samples.
fn besides(small_samples_bytes: u64) -> String {
    match small_samples_bytes {
        0 => String::new(),
        bytes => format!("besides {} for small samples, ", show_bytes(bytes)),
    }
}

/// How much memory is available, and what limits it.
pub(crate) fn memory_of(limit: &MemoryLimit) -> String {
    let bytes = show_bytes(limit.bytes);
    match &limit.file {
        None => format!("the {bytes} of memory that this machine has"),
        Some(file) => format!("the {bytes} of memory that {} allows", shown(file)),
    }
}

/// A device that has no number yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceName {
    /// A process that this program starts.
    Program(PathBuf),
    /// A device that is already running, by its address.
    At(Endpoint),
    /// The device that several ranks of this process share.
    Shared,
    /// A device that another rank of this process has lost.
    OfRank,
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(program) => write!(f, "device program {}", shown(program)),
            Self::At(endpoint) => write!(f, "the device at {endpoint}"),
            Self::Shared => f.write_str("the shared device"),
            Self::OfRank => f.write_str("the device"),
        }
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
    /// An error of the storage.
    #[error(transparent)]
    Storage(#[from] meetpoint_storage::Error),
    /// The job file.
    #[error(transparent)]
    Job(#[from] JobError),
    /// A configuration with which no epoch can run.
    #[error("failed to plan the epoch: {0}")]
    Plan(#[from] meetpoint_scheduler::Error),
    /// A setting out of its range.
    #[error("{field} is {got}")]
    Setting {
        /// Its name.
        field: &'static str,
        /// The given value.
        got: u64,
        /// The expected value.
        expected: &'static str,
    },
    /// The batch size exceeds the dataset.
    #[error(
        "a batch of {batch_size} is larger than an epoch of dataset {}, which has {samples} \
         samples",
        shown(dataset)
    )]
    BatchLargerThanDataset {
        /// The requested value.
        batch_size: u32,
        /// The number of samples.
        samples: u64,
        /// Folder.
        dataset: PathBuf,
    },
    /// A dataset without samples.
    #[error("dataset {} has no samples", shown(dataset))]
    EmptyDataset {
        /// Folder.
        dataset: PathBuf,
    },
    /// More batches than a batch index can represent.
    #[error("{batches} batches are more than the {limit} that an epoch can have")]
    TooManyBatches {
        /// The number of batches that it would have.
        batches: u64,
        /// The limit.
        limit: u32,
    },
    /// A GPU that cannot be used.
    #[error("failed to open GPU {gpu}: {source}")]
    Gpu {
        /// The index of the GPU.
        gpu: GpuIndex,
        /// Cause.
        source: meetpoint_prepare::gpu::OpenError,
    },
    /// A strategy that needs a device, without one.
    #[error("strategy {strategy} needs a device")]
    NoDevice {
        /// Its name.
        strategy: StrategyName,
    },
    /// The ring cannot hold the minimum number of batches.
    #[error(
        "the memory budget of {} is too small: {}it must hold {least} batches, each of which takes \
         {} in whole huge pages",
        show_bytes(*budget_bytes), besides(*small_samples_bytes), show_bytes(*ring_slot_bytes)
    )]
    BudgetTooSmall {
        /// The given value.
        budget_bytes: u64,
        /// Bytes of it that are reserved for small samples.
        small_samples_bytes: u64,
        /// Bytes of a batch, rounded up to huge pages.
        ring_slot_bytes: u64,
        /// Batches that must fit.
        least: u64,
    },
    /// The memory budget exceeds what this process may use.
    #[error("memory budget of {} exceeds {}", show_bytes(*budget_bytes), memory_of(limit))]
    BudgetTooLarge {
        /// The given value.
        budget_bytes: u64,
        /// The available memory.
        limit: MemoryLimit,
    },
    /// The page-locked memory for decoding on a GPU exceeds what this process may use.
    #[error(
        "decoding on the GPU needs {} of page-locked memory; with {} for batches, that exceeds {}",
        show_bytes(*pinned_bytes), show_bytes(*others), memory_of(limit)
    )]
    GpuMemoryTooLarge {
        /// Page-locked memory: an eighth of the given limit.
        pinned_bytes: u64,
        /// The memory budget for batches.
        others: u64,
        /// The available memory.
        limit: MemoryLimit,
    },
    /// The memory of the ring could not be reserved.
    #[error("failed to reserve {} for batches: {source}", show_bytes(*bytes))]
    RingMemory {
        /// The requested value.
        bytes: u64,
        /// Cause.
        source: std::io::Error,
    },
    /// The consumer retains every batch.
    #[error(
        "no memory for the next batch after waiting {waited:?}: the consumer keeps {kept} batches \
         alive and the memory budget holds {places}"
    )]
    AllBatchesKept {
        /// Batches that the consumer retains.
        kept: usize,
        /// Slots of the ring.
        places: usize,
        /// The time waited.
        waited: Duration,
    },
    /// The spool cannot hold the minimum number of slots.
    #[error(
        "the spool quota of {} is too small: it must hold {least} slots of {}",
        show_bytes(*quota_bytes), show_bytes(*slot_bytes)
    )]
    QuotaTooSmall {
        /// The given value.
        quota_bytes: u64,
        /// Bytes of a slot.
        slot_bytes: u64,
        /// Slots that must fit.
        least: u64,
    },
    /// A spool in memory that exceeds the available memory.
    #[error(
        "a spool of {} does not fit in memory: {} are available of {}",
        show_bytes(*bytes), show_bytes(limit.available_bytes), memory_of(limit)
    )]
    SpoolTooLarge {
        /// Its size.
        bytes: u64,
        /// The available memory.
        limit: MemoryLimit,
    },
    /// The spool cannot be created.
    #[error("failed to create a spool of {} in {place}: {source}", show_bytes(*bytes))]
    Spool {
        /// Its size.
        bytes: u64,
        /// Directory, or "memory".
        place: String,
        /// Cause.
        source: std::io::Error,
        /// The remedy.
        remedy: Remedy,
    },
    /// Threads cannot be bound to these cores.
    #[error("failed to bind threads to cores {cores:?}: {source}")]
    Cores {
        /// The given value.
        cores: Vec<usize>,
        /// Cause.
        source: std::io::Error,
    },
    /// A thread cannot be started.
    #[error("failed to start a thread or create its wake-up descriptor: {0}")]
    Thread(std::io::Error),
    /// A thread of the loader panicked.
    #[error("a thread of the loader panicked, a defect of Meetpoint")]
    Panicked,
    /// The socket of a device process cannot be created in any folder.
    #[error("failed to create a folder for the device's socket in {}: {source}", shown(parent))]
    SocketFolder {
        /// The last folder that was tried.
        parent: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The device program cannot be started.
    #[error("failed to start device program {}: {source}", shown(program))]
    DeviceStart {
        /// Program.
        program: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The device program ended before it served.
    #[error(
        "device program {} exited with {} before it was ready{}", shown(program), end.exit,
        after_colon(&end.detail)
    )]
    DeviceEnded {
        /// Program.
        program: PathBuf,
        /// How it ended.
        end: ProcessEnd,
    },
    /// A device that was lost before it had a job; the host continues without it.
    #[error("{device} was lost before it was ready: {loss}")]
    DeviceLost {
        /// The device.
        device: DeviceName,
        /// The cause.
        loss: Loss,
    },
    /// No process answers at the address.
    #[error("no device answers at {endpoint}: {problem}")]
    DeviceUnreachable {
        /// Its address.
        endpoint: Endpoint,
        /// The cause.
        problem: String,
        /// The limit of this process that is the cause, if it is one.
        limit: Option<OpenFilesLimit>,
    },
    /// The path is not a socket.
    #[error("no device answers at {}: it is {what}, not a socket", shown(socket))]
    NotASocket {
        /// Path.
        socket: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// The process that listens sends something that no device sends, or lacks a request.
    #[error("the process that listens at {endpoint} is not a device: {problem}")]
    NotADevice {
        /// Its address.
        endpoint: Endpoint,
        /// The cause.
        problem: String,
    },
    /// The process that listens does not respond, or closes the connection.
    #[error("no device responds at {endpoint}: {problem}")]
    DeviceUnresponsive {
        /// Its address.
        endpoint: Endpoint,
        /// The cause.
        problem: String,
    },
    /// The device took too long.
    #[error("the device at {endpoint} did not finish `{step}` within {limit:?}")]
    DeviceTimeout {
        /// Its address.
        endpoint: Endpoint,
        /// The request.
        step: &'static str,
        /// The time waited.
        limit: Duration,
    },
    /// Another version of the protocol.
    #[error(
        "the device at {endpoint} speaks protocol version {got} (program {program_version}), this \
         program version {expected}"
    )]
    DeviceVersion {
        /// Its address.
        endpoint: Endpoint,
        /// The device's version.
        got: u32,
        /// This program's version.
        expected: u32,
        /// The device's program.
        program_version: String,
    },
    /// The device refused the request.
    #[error("the device at {endpoint} refused `{step}`: {reason}")]
    DeviceRefused {
        /// Its address.
        endpoint: Endpoint,
        /// The request.
        step: &'static str,
        /// Its reason.
        reason: String,
        /// Whether the same request may be accepted later: the device is full or shutting down.
        is_temporary: bool,
        /// The remedy that the device returned.
        remedy: Option<Remedy>,
    },
    /// The file with the address of a device cannot be used.
    #[error(transparent)]
    AddressFile(#[from] AddressFileError),
    /// The ends of a network connection do not trust each other.
    #[error("no connection to the device at {endpoint}: {problem}")]
    DeviceUntrusted {
        /// Its address.
        endpoint: Endpoint,
        /// The cause.
        problem: String,
        /// The remedy.
        remedy: Option<Remedy>,
    },
    /// Fewer parts than devices, each of which needs at least one.
    #[error(
        "dataset {} has {parts} parts, too few for {devices} devices that hold different parts",
        shown(dataset)
    )]
    TooFewParts {
        /// The number of parts.
        parts: usize,
        /// The requested value.
        devices: usize,
        /// Folder.
        dataset: PathBuf,
    },
    /// Parts that cannot be assigned to the devices as requested.
    #[error("failed to assign the parts of {} to the devices: {source}", shown(dataset))]
    Holders {
        /// Folder.
        dataset: PathBuf,
        /// The cause.
        source: HoldersError,
    },
    /// An epoch that cannot be divided into batches.
    #[error("failed to divide the epoch into batches: {0}")]
    Batching(#[from] BatchingError),
    /// A device whose parts have fewer than one batch for every rank.
    #[error("device {device} of {devices} holds less than a batch for each of {ranks} ranks")]
    NoBatchForDevice {
        /// The device.
        device: u16,
        /// The number of devices.
        devices: u32,
        /// Ranks.
        ranks: u32,
    },
    /// Batches that cannot be reused in another epoch.
    #[error("batches cannot be reused in the next epoch: {conflict}")]
    Reuse {
        /// The cause.
        conflict: ReuseConflict,
    },
    /// An epoch that cannot resume.
    #[error("epoch {epoch} cannot be resumed: {conflict}")]
    Resume {
        /// The epoch.
        epoch: u32,
        /// The cause.
        conflict: ResumeConflict,
    },
    /// Batches that cannot be chosen for the devices.
    #[error("`choice = \"saving\"` cannot be used: {conflict}")]
    Choice {
        /// The cause.
        conflict: ChoiceConflict,
    },
    /// The ranks did not agree.
    #[error("failed to agree with the other ranks: {0}")]
    Collective(#[from] CollectiveError),
    /// An error of one of several ranks.
    #[error("rank {rank}: {source}")]
    OfRank {
        /// The rank, from 0.
        rank: u32,
        /// The error.
        source: Box<Error>,
    },
    /// The thread of a rank panicked.
    #[error("the thread of rank {rank} panicked: {message}")]
    RankPanicked {
        /// The rank, from 0.
        rank: u32,
        /// The message.
        message: String,
    },
    /// An error of one of several devices.
    #[error("device {number}: {source}")]
    OfDevice {
        /// Its number, from 0.
        number: usize,
        /// The error.
        source: Box<Error>,
    },
    /// More samples are damaged than allowed.
    #[error(
        "{errors} samples of epoch {epoch} are damaged and max_errors is {limit}; the last is \
         {key} in {file}: {what}"
    )]
    TooManyErrors {
        /// The epoch.
        epoch: u32,
        /// Damaged samples so far.
        errors: u64,
        /// The limit.
        limit: u64,
        /// Key of the last damaged sample.
        key: String,
        /// The file that contains it.
        file: String,
        /// What is wrong with it.
        what: String,
    },
    /// The file of damaged samples could not be written.
    #[error("failed to record damaged samples in {}: {source}", shown(path))]
    Quarantine {
        /// File.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// [`crate::StopHandle::stop`] was called.
    #[error("interrupted")]
    Interrupted,
    /// The epoch already ended with an error.
    #[error("the epoch has already ended with an error")]
    EpochFailed,
}

impl StopHandle {
    /// Returns [`Error::Interrupted`] once it was stopped.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_stopped() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

impl Error {
    /// Why a device is lost whose link was not opened because of this error.
    pub(crate) fn into_loss(self) -> Loss {
        let cause = match &self {
            Self::DeviceLost { device: DeviceName::OfRank, loss } => return loss.clone(),
            // The message of the error also names the device.
            Self::DeviceLost {
                loss: Loss { cause: LossCause::NotOpened { cause, .. }, .. },
                ..
            } => cause.clone(),
            Self::DeviceLost { loss, .. } => return loss.clone(),
            error => error.cause().to_owned(),
        };
        LossCause::NotOpened { cause, detail: self.to_string() }.into()
    }

    /// The same error for a device process that this process has started: it has no address that
    /// the user could correct, so a process that does not respond is lost.
    pub(crate) fn of_process(self, device: impl FnOnce() -> DeviceName) -> Self {
        let cause = self.cause().to_owned();
        let detail = match self {
            Self::DeviceUnresponsive { problem, .. } => problem,
            Self::DeviceTimeout { step, limit, .. } => {
                format!("it did not finish `{step}` within {limit:?}")
            }
            error => return error,
        };
        let loss = LossCause::NotOpened { cause, detail }.into();
        Self::DeviceLost { device: device(), loss }
    }

    /// Whether a device is temporarily lost, which can happen at any time, unlike an invalid
    /// setting. A Unix socket on which no process listens is an invalid setting.
    pub(crate) fn is_loss(&self) -> bool {
        match self {
            Self::DeviceLost { .. }
            | Self::DeviceUnresponsive { .. }
            | Self::DeviceTimeout { .. } => true,
            Self::DeviceUnreachable { endpoint, limit, .. } => {
                limit.is_none() && endpoint.socket().is_none()
            }
            Self::DeviceRefused { is_temporary, .. } => *is_temporary,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meetpoint_link::TcpAddress;

    #[test]
    fn a_device_that_does_not_finish_a_request_is_lost_wherever_it_is() {
        let address = TcpAddress { host: "storage".to_owned(), port: 7000 };
        for endpoint in [Endpoint::Socket("/run/d".into()), Endpoint::Tcp(address)] {
            let limit = Duration::from_secs(20);
            let error = Error::DeviceTimeout { endpoint, step: "load", limit };
            assert!(error.is_loss() && error.remedy().is_some(), "{error}");
        }
    }

    #[test]
    fn a_process_that_this_program_started_is_lost_under_its_own_name() {
        let program = || DeviceName::Program("/bin/device".into());
        let endpoint = Endpoint::Socket("/tmp/private/device.sock".into());
        let limit = Duration::from_secs(20);
        let timeout = Error::DeviceTimeout { endpoint: endpoint.clone(), step: "load", limit };
        let lost = timeout.of_process(program).into_loss();
        let LossCause::NotOpened { cause, detail } = &lost.cause else { panic!("{lost:?}") };
        assert_eq!(cause, "device_timeout");
        assert!(detail.contains("/bin/device") && !detail.contains("private"), "{detail}");
        // Another rank reports the loss as it is.
        let of_rank = Error::DeviceLost { device: DeviceName::OfRank, loss: lost.clone() };
        assert_eq!(of_rank.into_loss(), lost);
        // What the user must correct keeps its error.
        let other = Error::NotADevice { endpoint, problem: String::new() };
        assert!(matches!(other.of_process(program), Error::NotADevice { .. }));
    }
}
