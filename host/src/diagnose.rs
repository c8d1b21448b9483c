//! Causes and remedies of errors and events of the runtime.

use crate::collective::error::CollectiveError;
use crate::conflicts::{ChoiceConflict, ResumeConflict, ReuseConflict};
use crate::error::Error;
use crate::events::EventKind;
use meetpoint_diagnose::{Change, Command, Diagnose, Remedy, Setting};
use meetpoint_format::units::{show_bytes, show_bytes_at_least};
use meetpoint_link::Endpoint;
use meetpoint_storage::{open_files_limit, open_files_limit_behind};

impl Diagnose for Error {
    fn cause(&self) -> &'static str {
        match self {
            Self::Prepare(source) => source.cause(),
            Self::Cache(source) => source.cause(),
            Self::Storage(source) => source.cause(),
            Self::Job(source) => source.cause(),
            Self::Plan(_) => "epoch_not_planned",
            Self::Setting { .. } => "setting_out_of_range",
            Self::BatchLargerThanDataset { .. } => "batch_larger_than_dataset",
            Self::EmptyDataset { .. } => "empty_dataset",
            Self::TooManyBatches { .. } => "too_many_batches",
            Self::Gpu { source, .. } => source.cause(),
            Self::NoDevice { .. } => "no_device",
            Self::BudgetTooSmall { .. } => "memory_budget_too_small",
            Self::BudgetTooLarge { .. } => "memory_budget_too_large",
            Self::GpuMemoryTooLarge { .. } => "gpu_memory_too_large",
            Self::RingMemory { .. } => "ring_memory",
            Self::AllBatchesKept { .. } => "all_batches_kept",
            Self::QuotaTooSmall { .. } => "spool_quota_too_small",
            Self::SpoolTooLarge { .. } => "spool_too_large",
            Self::Spool { .. } => "spool",
            Self::Cores { .. } => "cores",
            Self::Thread(_) => "thread",
            Self::Panicked => "defect",
            Self::SocketFolder { .. } => "socket_folder",
            Self::DeviceStart { .. } => "device_not_started",
            Self::DeviceEnded { .. } => "device_ended",
            Self::DeviceLost { .. } => "device_lost",
            Self::DeviceUnreachable { .. } => "device_unreachable",
            Self::NotASocket { .. } => "not_a_socket",
            Self::NotADevice { .. } => "not_a_device",
            Self::DeviceUnresponsive { .. } => "device_unresponsive",
            Self::DeviceTimeout { .. } => "device_timeout",
            Self::DeviceVersion { .. } => "device_version",
            Self::DeviceRefused { .. } => "device_refused",
            Self::AddressFile(source) => source.cause(),
            Self::DeviceUntrusted { .. } => "device_untrusted",
            Self::TooFewParts { .. } => "too_few_parts",
            Self::Holders { .. } => "holders",
            Self::Batching(_) => "batching",
            Self::NoBatchForDevice { .. } => "no_batch_for_device",
            Self::Reuse { .. } => "reuse_conflict",
            Self::Resume { .. } => "resume_conflict",
            Self::Choice { .. } => "choice_conflict",
            Self::Collective(source) => source.cause(),
            Self::OfRank { source, .. } | Self::OfDevice { source, .. } => source.cause(),
            Self::RankPanicked { .. } => "rank_panicked",
            Self::TooManyErrors { .. } => "too_many_errors",
            Self::Quarantine { .. } => "quarantine",
            Self::Interrupted => "interrupted",
            Self::EpochFailed => "epoch_failed",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        // Any process, socket, pipe or file may have been the one too many.
        if let Some(limit) = open_files_limit_behind(self) {
            return Some(limit.into());
        }
        let smaller_batches = |remedy: Remedy| remedy.or_set(Setting::BatchSize, Change::Lower);
        Some(match self {
            Self::Prepare(source) => return source.remedy(),
            Self::Cache(source) => return source.remedy(),
            Self::Gpu { source, .. } => {
                let on_cpu = Remedy::by("use the CPU alone", Setting::GpuDecode, Change::Off);
                match source.remedy() {
                    Some(remedy) => remedy.or_all(on_cpu),
                    None => on_cpu,
                }
            }
            Self::Storage(source) => return source.remedy(),
            Self::Job(source) => return source.remedy(),
            Self::AddressFile(source) => return source.remedy(),
            Self::Collective(source) => return source.remedy(),
            Self::OfRank { source, .. } | Self::OfDevice { source, .. } => return source.remedy(),
            Self::Setting { field, expected, .. } => format!("set {field} to {expected}").into(),
            Self::BatchLargerThanDataset { samples, .. } => {
                Remedy::set(Setting::BatchSize, Change::AtMost(samples.to_string()))
            }
            Self::EmptyDataset { .. } => Remedy::run(Command::Pack),
            Self::TooManyBatches { .. } => Remedy::set(Setting::BatchSize, Change::Raise),
            Self::NoDevice { .. } => Remedy::advice("add a device")
                .or_set(Setting::Strategy, Change::To("host-only".to_owned())),
            Self::BudgetTooSmall { ring_slot_bytes, least, small_samples_bytes, .. } => {
                let bytes = least * ring_slot_bytes + small_samples_bytes;
                let change = Change::AtLeast(show_bytes_at_least(bytes));
                let budget = Remedy::set(Setting::MemoryBudget, change);
                smaller_batches(match small_samples_bytes {
                    0 => budget,
                    _ => budget.or_set(Setting::SmallSamples, Change::Lower),
                })
            }
            Self::BudgetTooLarge { limit, .. } => {
                Remedy::set(Setting::MemoryBudget, Change::AtMost(show_bytes(limit.bytes)))
            }
            Self::GpuMemoryTooLarge { .. } => Remedy::set(Setting::GpuMemory, Change::Lower)
                .or_set(Setting::MemoryBudget, Change::Lower),
            Self::RingMemory { .. } => Remedy::set(Setting::MemoryBudget, Change::Lower)
                .or("raise the limit of address space (ulimit -v)"),
            Self::AllBatchesKept { .. } => Remedy::advice("drop batches after use")
                .or_set(Setting::MemoryBudget, Change::Raise),
            Self::QuotaTooSmall { slot_bytes, least, .. } => smaller_batches(Remedy::set(
                Setting::SpoolQuota,
                Change::AtLeast(show_bytes_at_least(least * slot_bytes)),
            )),
            Self::SpoolTooLarge { .. } => {
                Remedy::set(Setting::SpoolQuota, Change::Lower).or("keep the spool in a file")
            }
            Self::Spool { remedy, .. } => remedy.clone(),
            Self::Cores { .. } => {
                Remedy::advice("name cores that this process may use").or_run(Command::Doctor)
            }
            Self::Thread(source) => open_files_limit(source).map_or_else(
                || "raise the limits of threads, open files and memory (ulimit -u, -n, -v)".into(),
                Remedy::from,
            ),
            Self::Panicked | Self::RankPanicked { .. } => "report it with the message".into(),
            Self::SocketFolder { .. } => "set XDG_RUNTIME_DIR to a writable folder".into(),
            Self::DeviceStart { .. } => "name a program that can be executed".into(),
            Self::DeviceUnreachable { limit: Some(limit), .. } => (*limit).into(),
            Self::DeviceUnreachable { endpoint: Endpoint::Socket(socket), .. } => {
                let socket = Some(socket.clone());
                Remedy::run(Command::ServeDevice { socket }).or("correct the path of the socket")
            }
            Self::DeviceUnreachable { endpoint: Endpoint::Tcp(address), .. } => {
                let address = address.to_string();
                Remedy::run(Command::ListenDevice { address }).or("correct the address")
            }
            Self::NotASocket { .. } => "correct the path of the socket".into(),
            Self::NotADevice { endpoint: Endpoint::Tcp(_), .. } => {
                Remedy::advice("correct the address")
                    .or("give the certificates with which the device was started")
            }
            Self::NotADevice { endpoint: Endpoint::Socket(_), .. } => {
                Remedy::run(Command::ServeDevice { socket: None })
                    .or("correct the path of the socket")
            }
            Self::DeviceTimeout { endpoint, .. } | Self::DeviceUnresponsive { endpoint, .. } => {
                let (probe, correct) = match endpoint {
                    Endpoint::Socket(socket) => {
                        let probe = Command::ProbeDevice { socket: socket.clone() };
                        (probe, "correct the path of the socket")
                    }
                    Endpoint::Tcp(address) => {
                        let probe = Command::ProbeRemote { address: address.to_string() };
                        (probe, "correct the address")
                    }
                };
                Remedy::run(probe).or("restart the device").or(correct)
            }
            Self::DeviceVersion { .. } => "run the same version of Meetpoint at both ends".into(),
            Self::DeviceRefused { remedy, .. } | Self::DeviceUntrusted { remedy, .. } => {
                return remedy.clone();
            }
            Self::TooFewParts { parts, .. } => Remedy::run(Command::PackSmallerParts)
                .or(format!("use {parts} devices or fewer"))
                .or_set(Setting::Shared, Change::On),
            Self::NoBatchForDevice { .. } => {
                smaller_batches("give the device other parts".into()).or("leave the device out")
            }
            Self::Reuse { conflict } => {
                let change = match conflict {
                    ReuseConflict::Shuffle => Remedy::set(Setting::Shuffle, Change::Off),
                    ReuseConflict::RandomRecipe => "use deterministic operations".into(),
                    ReuseConflict::RunAhead => Remedy::set(Setting::RunAhead, Change::Off),
                };
                change.or_set(Setting::Reuse, Change::Off)
            }
            Self::Resume { conflict, .. } => match conflict {
                ResumeConflict::PartsOfTheirOwn => {
                    Remedy::advice("restart the epoch").or("use one device")
                }
                ResumeConflict::ChosenAtStart => "restart the epoch".into(),
                ResumeConflict::OtherBatches => "resume with the dataset of the state".into(),
                ResumeConflict::AllConsumed => "begin the next epoch".into(),
            },
            Self::Choice { conflict } => match conflict {
                ChoiceConflict::RunAhead => {
                    Remedy::set(Setting::RunAhead, Change::Off).or("turn the choice of batches off")
                }
                ChoiceConflict::Replay => "use either the choice of batches or a record".into(),
            },
            Self::TooManyErrors { .. } => {
                Remedy::run(Command::Verify).or_set(Setting::MaxErrors, Change::Raise)
            }
            Self::Quarantine { .. } => "name a file that can be written".into(),
            Self::EpochFailed => "start another epoch".into(),
            // The message contains the reason of another party, or nothing is wrong.
            Self::Plan(_)
            | Self::Holders { .. }
            | Self::Batching(_)
            | Self::DeviceEnded { .. }
            | Self::Interrupted => return None,
            Self::DeviceLost { loss, .. } => return loss.remedy(),
        })
    }
}

impl Diagnose for CollectiveError {
    fn cause(&self) -> &'static str {
        match self {
            Self::NotMet { .. } => "ranks_did_not_meet",
            Self::NoToken { .. } => "ranks_without_token",
            Self::OtherToken { .. } => "ranks_token_differs",
            Self::Version { .. } => "ranks_version",
            Self::OtherAttempt { .. } => "ranks_other_attempt",
            Self::Superseded { .. } => "ranks_superseded",
            Self::Claimed { .. } => "rank_claimed_twice",
            Self::OtherWorld { .. } => "ranks_other_world",
            Self::Differs { .. } => "ranks_differ",
            Self::Place { .. } => "no_place_to_meet",
            Self::Missing { .. } => "ranks_missing",
            Self::Left { .. } => "rank_left",
            Self::Late { .. } => "rank_late",
            Self::OutOfStep { .. } => "ranks_out_of_step",
            Self::NoTurn { .. } => "no_turn",
            Self::Interrupted => "interrupted",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::NotMet { .. } => {
                Remedy::advice("start all ranks with the same world size and rendezvous")
                    .or_set(Setting::RankTimeout, Change::Raise)
            }
            Self::NoToken { .. } => "give all ranks the same file with a token: `openssl rand \
                                     -hex 32 > token`"
                .into(),
            Self::OtherToken { .. } => "give all ranks the same token".into(),
            Self::Version { .. } => "run the same version of Meetpoint on all hosts".into(),
            Self::OtherAttempt { .. } | Self::Superseded { .. } => {
                "end the processes of the earlier attempt, or give each run an address of its own"
                    .into()
            }
            Self::Claimed { .. } => "give every process a rank of its own".into(),
            Self::OtherWorld { .. } => "give all ranks the same world size".into(),
            Self::Differs { .. } => {
                "create the loaders of all ranks with the same arguments".into()
            }
            Self::Missing { .. } => Remedy::advice("check in that process why the rank waits")
                .or_set(Setting::RankTimeout, Change::Raise),
            Self::Late { .. } => Remedy::set(Setting::RankTimeout, Change::Raise),
            Self::OutOfStep { .. } => {
                "give all ranks the same dataset, batch size and strategy".into()
            }
            Self::Place { remedy, .. } => return remedy.clone(),
            Self::Left { .. } | Self::NoTurn { .. } | Self::Interrupted => return None,
        })
    }
}

impl Diagnose for EventKind {
    fn cause(&self) -> &'static str {
        match self {
            Self::DeviceLost { .. } => "device_lost",
            Self::DeviceLeaving { .. } => "device_leaving",
            Self::DeviceReopened { .. } => "device_reopened",
            Self::DeviceNotReopened { .. } => "device_not_reopened",
            Self::DeviceGivenUp { .. } => "device_given_up",
            Self::DeviceStalled { .. } => "device_stalled",
            Self::BatchesReclaimed { .. } => "batches_reclaimed",
            Self::DeviceAwaited { .. } => "device_awaited",
            Self::BatchFailed { .. } => "batch_failed",
            Self::BatchesFailed { .. } => "batches_failed",
            Self::BatchesOversized { .. } => "batches_oversized",
            Self::SamplesFilledIn { .. } => "samples_filled_in",
            Self::SamplesDamaged { .. } => "samples_damaged",
            Self::ColumnsReadAgain { .. } => "columns_read_again",
            Self::GpuFailed { .. } => "gpu_failed",
            Self::Tuned { .. } => "tuned",
            Self::WorkerNotStarted { .. } => "worker_not_started",
            Self::NotRecorded { .. } => "not_recorded",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::DeviceAwaited { .. } => {
                Some(Remedy::set(Setting::Strategy, Change::To("auto".to_owned())))
            }
            Self::BatchesOversized { .. } => {
                Some("raise `max_size` of `collate`, or leave it out".into())
            }
            Self::SamplesFilledIn { .. } => Some(Remedy::run(Command::VerifyDeep)),
            Self::SamplesDamaged { .. } => Some(Remedy::run(Command::Verify)),
            Self::ColumnsReadAgain { .. } => {
                Some(Remedy::advice("request fewer or smaller columns").or(
                    "use an order that reads neighbouring samples together, such as `sequential`",
                ))
            }
            Self::DeviceLost { remedy, reason, .. } => remedy.clone().or_else(|| reason.remedy()),
            Self::DeviceNotReopened { reason, .. } => reason.remedy(),
            // The runtime has acted already.
            Self::DeviceLeaving { .. }
            | Self::DeviceReopened { .. }
            | Self::DeviceGivenUp { .. }
            | Self::DeviceStalled { .. }
            | Self::BatchesReclaimed { .. }
            | Self::BatchFailed { .. }
            | Self::BatchesFailed { .. }
            | Self::GpuFailed { .. }
            | Self::Tuned { .. }
            | Self::WorkerNotStarted { .. }
            | Self::NotRecorded { .. } => None,
        }
    }
}
