//! Notices of a run, which are not faults: fallbacks, limits that were reached, files that were
//! written.

use crate::events::DeviceLabel;
use crate::split_refusal::SplitRefusal;
use meetpoint_diagnose::{Change, Diagnose, Remedy, Setting, shown};
use meetpoint_format::units::{show_bytes, show_bytes_at_least};
use meetpoint_prepare::gpu::NotOffloaded;
use meetpoint_scheduler::StrategyName;
use meetpoint_storage::EngineNote;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// A notice. `Display` gives the sentence, without the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Notice {
    /// A storage engine works without a feature.
    Storage {
        /// The device that reads with it; `None`: the host.
        device: Option<DeviceLabel>,
        /// The feature.
        #[serde(flatten)]
        note: EngineNote,
    },
    /// The memory budget holds fewer batches than workers would prepare ahead.
    PreparedAhead {
        /// The budget.
        memory_budget_bytes: u64,
        /// Batches that it holds.
        places: u64,
        /// Batches that would be prepared ahead.
        asked: u64,
        /// Batches that are prepared ahead.
        prepared: u64,
    },
    /// No batch of a device is reused in the next epoch.
    NothingReused {
        /// The device.
        device: DeviceLabel,
        /// Slots of its spool.
        slots: u32,
        /// The quota with which spools could hold some; `None`: an epoch has too few batches.
        quota_bytes: Option<u64>,
    },
    /// The file system of a spool cannot reserve blocks.
    SpoolNotReserved {
        /// Folder of the spool.
        directory: PathBuf,
    },
    /// The file system of a spool has less free space than its quota.
    SpoolSpace {
        /// Folder of the spool.
        directory: PathBuf,
        /// The quota.
        quota_bytes: u64,
        /// Free bytes.
        free_bytes: u64,
    },
    /// Batches for a GPU are converted on the host.
    NotConvertedOnGpu {
        /// The GPU.
        device: String,
        /// Element type of the pictures.
        dtype: String,
        /// Why.
        reason: SplitRefusal,
    },
    /// A GPU that should prepare part of each batch prepares nothing.
    NotDecodedOnGpu {
        /// The GPU.
        gpu: String,
        /// Why.
        reason: NotOffloaded,
    },
    /// The program was built without optimisation.
    UnoptimisedBuild,
    /// A strategy was skipped, because it would take too long.
    StrategyLeftOut {
        /// The strategy.
        strategy: StrategyName,
        /// Expected time of an epoch, in nanoseconds.
        expected_ns: u64,
        /// Time of an epoch under `host-only`, in nanoseconds.
        host_only_ns: u64,
    },
    /// A trace was written.
    TraceWritten {
        /// Its file.
        file: PathBuf,
        /// Number of events in it.
        events: u64,
        /// Batches at the beginning that were left out.
        batches_left_out: u64,
    },
    /// The order of recorded epochs was replayed.
    Replayed {
        /// Their number.
        epochs: u64,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Storage { device: None, note } => note.fmt(f),
            Self::Storage { device: Some(device), note } => {
                let device = device.to_string();
                write!(f, "{}: {note}", device.trim_start_matches("the "))
            }
            Self::PreparedAhead { memory_budget_bytes, places, asked, prepared } => write!(
                f,
                "the memory budget of {} holds {places} batches: {prepared} are prepared ahead \
                 instead of the requested {asked}",
                show_bytes(*memory_budget_bytes)
            ),
            Self::NothingReused { device, slots, quota_bytes: Some(_) } => {
                write!(f, "no batch of {device} is reused: its spool has {slots} slots")
            }
            Self::NothingReused { device, quota_bytes: None, .. } => {
                write!(f, "no batch of {device} is reused: an epoch has too few batches")
            }
            Self::SpoolNotReserved { directory } => write!(
                f,
                "the file system of {} cannot reserve blocks: a full disk is noticed only when the \
                 device writes, and the host then prepares those batches",
                shown(directory)
            ),
            Self::SpoolSpace { directory, quota_bytes, free_bytes } => write!(
                f,
                "`spool.quota` is {}, and {} are free in {}: the spool takes only what its \
                 batches need; if that is more than the free space, it is an error",
                show_bytes(*quota_bytes),
                show_bytes(*free_bytes),
                shown(directory)
            ),
            Self::NotConvertedOnGpu { device, dtype, reason } => {
                write!(f, "batches for {device} are prepared as {dtype} on the host: {reason}")
            }
            Self::NotDecodedOnGpu { gpu, reason } => {
                write!(f, "the CPU prepares every sample, and {gpu} none: {reason}")
            }
            Self::UnoptimisedBuild => {
                f.write_str("this is an unoptimised build, so its times are not representative")
            }
            Self::StrategyLeftOut { strategy, expected_ns, host_only_ns } => {
                let ratio = *expected_ns as f64 / (*host_only_ns).max(1) as f64;
                write!(
                    f,
                    "{} is skipped: an epoch would take {:.1} s, {ratio:.0} times as long as \
                     under host-only",
                    strategy.as_str(),
                    *expected_ns as f64 / 1e9
                )
            }
            Self::TraceWritten { file, events, batches_left_out } => {
                write!(f, "{events} events are in {}", shown(file))?;
                match batches_left_out {
                    0 => Ok(()),
                    batches => write!(f, "; the first {batches} batches are not in it"),
                }
            }
            Self::Replayed { epochs } => {
                write!(f, "replayed: the order of {epochs} of {epochs} epochs is the recorded one")
            }
        }
    }
}

impl Diagnose for Notice {
    fn cause(&self) -> &'static str {
        match self {
            Self::Storage { .. } => "storage",
            Self::PreparedAhead { .. } => "prepared_ahead",
            Self::NothingReused { .. } => "nothing_reused",
            Self::SpoolNotReserved { .. } => "spool_not_reserved",
            Self::SpoolSpace { .. } => "spool_space",
            Self::NotConvertedOnGpu { .. } => "not_converted_on_gpu",
            Self::NotDecodedOnGpu { .. } => "not_decoded_on_gpu",
            Self::UnoptimisedBuild => "unoptimised_build",
            Self::StrategyLeftOut { .. } => "strategy_left_out",
            Self::TraceWritten { .. } => "trace_written",
            Self::Replayed { .. } => "replayed",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::PreparedAhead { .. } => Some(Remedy::set(Setting::MemoryBudget, Change::Raise)),
            Self::NothingReused { quota_bytes: Some(bytes), .. } => {
                Some(Remedy::set(Setting::SpoolQuota, Change::AtLeast(show_bytes_at_least(*bytes))))
            }
            Self::UnoptimisedBuild => Some("build with --release".into()),
            Self::StrategyLeftOut { strategy, .. } => {
                let name = strategy.as_str().to_owned();
                Some(Remedy::by("ask for it", Setting::Strategy, Change::To(name)))
            }
            Self::TraceWritten { .. } => Some("open it at https://ui.perfetto.dev".into()),
            Self::Storage { note, .. } => note.remedy(),
            Self::NothingReused { .. }
            | Self::SpoolNotReserved { .. }
            | Self::SpoolSpace { .. }
            | Self::NotConvertedOnGpu { .. }
            | Self::NotDecodedOnGpu { .. }
            | Self::Replayed { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Notice;
    use crate::events::DeviceLabel;
    use meetpoint_diagnose::Diagnose;
    use meetpoint_storage::{EngineNote, RingRefusal, SystemError};
    use serde_json::json;

    #[test]
    fn a_notice_survives_json_and_is_flat() {
        let device = DeviceLabel { number: 0, of: 1 };
        let notice = Notice::NothingReused { device, slots: 2, quota_bytes: Some(1 << 20) };
        let json = serde_json::to_value(&notice).unwrap();
        assert_eq!((&json["kind"], &json["slots"]), (&"nothing_reused".into(), &2.into()));
        assert_eq!(serde_json::from_value::<Notice>(json).unwrap(), notice);
    }

    #[test]
    fn a_notice_of_storage_contains_the_fields_of_its_note() {
        let with = |note| {
            let notice = Notice::Storage { device: None, note };
            let json = serde_json::to_value(&notice).unwrap();
            assert_eq!(serde_json::from_value::<Notice>(json.clone()).unwrap(), notice);
            json
        };
        let refusal = RingRefusal::DisabledForAll;
        let expected = json!({"kind": "storage", "device": null, "missing": "io_uring",
            "refusal": {"kind": "disabled_for_all"}});
        assert_eq!(with(EngineNote::IoUring { refusal }), expected);
        let error = SystemError { errno: Some(12), message: "no memory".to_owned() };
        let expected = json!({"kind": "storage", "device": null, "missing": "registered_buffers",
            "error": {"errno": 12, "message": "no memory"}});
        assert_eq!(with(EngineNote::RegisteredBuffers { error }), expected);
    }

    #[test]
    fn a_notice_of_storage_has_the_remedy_of_its_note() {
        let with = |refusal| {
            let note = EngineNote::IoUring { refusal };
            Notice::Storage { device: None, note }.remedy()
        };
        assert_eq!(with(RingRefusal::NoMemory), RingRefusal::NoMemory.remedy());
        let error = SystemError { errno: None, message: String::new() };
        assert_eq!(with(RingRefusal::Failed { error }), None);
    }
}
