//! Faults of an epoch and the reactions to them, as values; `Display` gives the sentence.

use crate::causes::{BatchFault, Loss};
use meetpoint_diagnose::{Remedy, printable, shown};
use meetpoint_format::units::show_bytes_at_least;
use meetpoint_scheduler::{Concurrency, Tuned, Verdict};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Nanoseconds since the epoch began.
    pub at_ns: u64,
    /// Rank that reported it, if events of several ranks are listed together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened. Reasons and faults are values; `detail` is the message of another error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// The link to a device ended.
    DeviceLost {
        /// The device.
        device: DeviceLabel,
        /// When.
        phase: Phase,
        /// Why.
        reason: Loss,
        /// Who prepares its batches.
        remaining: Remaining,
        /// The remedy, if it was lost at the start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remedy: Option<Remedy>,
    },
    /// A device is shutting down. The batches that it had published are used.
    DeviceLeaving {
        /// The device.
        device: DeviceLabel,
        /// Who prepares its other batches.
        remaining: Remaining,
    },
    /// A lost device works again.
    DeviceReopened {
        /// The device.
        device: DeviceLabel,
        /// How it was opened again.
        attempt: Attempt,
    },
    /// A lost device could not be reopened.
    DeviceNotReopened {
        /// The device.
        device: DeviceLabel,
        /// How it was tried.
        attempt: Attempt,
        /// Why it failed.
        reason: Loss,
        /// Who prepares its batches.
        remaining: Remaining,
    },
    /// A device failed on several batches in a row and gets no more work in the epoch.
    DeviceGivenUp {
        /// The device.
        device: DeviceLabel,
        /// Batches in a row that it failed on.
        failures: u32,
        /// Why it failed on the last one.
        fault: BatchFault,
        /// Who prepares its batches.
        remaining: Remaining,
    },
    /// A device with work published nothing in time; the host took over its unfinished batches.
    DeviceStalled {
        /// The device.
        device: DeviceLabel,
        /// The allowed time without a message, in nanoseconds.
        timeout_ns: u64,
        /// Stalls of this device in this epoch, this one included.
        stalls: u32,
        /// Stalls after which it gets no more work.
        stalls_max: u32,
        /// Whether it gets no more work in this epoch.
        is_given_up: bool,
    },
    /// The host took over batches that a device had not finished.
    BatchesReclaimed {
        /// The device.
        device: DeviceLabel,
        /// Time without a message, in nanoseconds; `None` if the host is faster.
        silent_ns: Option<u64>,
    },
    /// The consumer has been waiting for a batch that a device prepares.
    DeviceAwaited {
        /// The device.
        device: DeviceLabel,
        /// How long, in nanoseconds.
        waited_ns: u64,
        /// Time that the device takes for a batch, in nanoseconds; `None` before its first.
        batch_ns: Option<u64>,
    },
    /// The host took over a batch of a device.
    BatchFailed {
        /// The device.
        device: DeviceLabel,
        /// The index of the batch in the epoch.
        batch: u32,
        /// What went wrong.
        fault: BatchFault,
    },
    /// The host took over further batches of a device, which have no separate events.
    BatchesFailed {
        /// The device.
        device: DeviceLabel,
        /// Their number.
        batches: u32,
        /// What went wrong, if it is the fault of an earlier event; `None` for several others.
        fault: Option<BatchFault>,
    },
    /// Batches with pictures of different sizes exceeded the memory that is reserved for a batch;
    /// the host prepared them in separate memory.
    BatchesOversized {
        /// Their number.
        batches: u64,
        /// Bytes of the largest.
        bytes_max: u64,
    },
    /// The host decoded damaged samples with missing data filled in (`on_error = "lenient"`).
    SamplesFilledIn {
        /// Their number.
        samples: u64,
        /// Whether devices prepared batches too, whose filled-in samples are not counted.
        has_devices: bool,
    },
    /// Damaged samples were replaced or skipped.
    SamplesDamaged {
        /// How many were replaced by another sample.
        replaced: u64,
        /// How many were skipped.
        left_out: u64,
        /// Key of the first.
        key: String,
        /// The file that contains the first.
        file: String,
        /// Stable name of the first error.
        cause: String,
        /// What is wrong with the first.
        detail: String,
    },
    /// The host read further columns repeatedly, because the cache is too small for the requested
    /// columns.
    ColumnsReadAgain {
        /// Number of columns of record batches that were read again.
        reads: u64,
        /// Bytes that were read again.
        bytes: u64,
        /// Bytes of all requested columns.
        needed_bytes: u64,
        /// Maximum bytes in the cache.
        cache_bytes: u64,
    },
    /// A GPU failed; the CPU prepares its share, bit-identically.
    GpuFailed {
        /// Its name.
        gpu: String,
        /// Stable name of the error.
        cause: String,
        /// Its message.
        detail: String,
    },
    /// A tuner tried, retained or undid a change of the numbers of workers or of batches ahead.
    Tuned {
        /// What it decided.
        #[serde(flatten)]
        tuned: Tuned,
    },
    /// A worker that a tuner asked for could not be started.
    WorkerNotStarted {
        /// Stable name of the error.
        cause: String,
        /// Its message.
        detail: String,
    },
    /// Events beyond the maximum that an epoch records.
    NotRecorded {
        /// Their number.
        events: u64,
    },
}

/// A device among those of a loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceLabel {
    /// Its number, from 0.
    pub number: u16,
    /// How many devices the loader has.
    pub of: u16,
}

/// When a device was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before it served its first epoch.
    Start,
    /// Between two epochs.
    BetweenEpochs,
    /// During an epoch.
    Epoch,
}

/// Who prepares batches after a device is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remaining {
    /// The host alone.
    Host,
    /// The host and other devices.
    HostAndDevices,
}

/// How a device is opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attempt {
    /// Its process is started.
    Start,
    /// Its socket is reconnected.
    Connect,
}

impl EventKind {
    /// Whether a device gets no more work, permanently or for now.
    pub fn is_device_loss(&self) -> bool {
        match self {
            Self::DeviceLost { .. }
            | Self::DeviceLeaving { .. }
            | Self::DeviceGivenUp { .. }
            | Self::DeviceStalled { .. } => true,
            Self::DeviceReopened { .. }
            | Self::DeviceNotReopened { .. }
            | Self::BatchesReclaimed { .. }
            | Self::DeviceAwaited { .. }
            | Self::BatchFailed { .. }
            | Self::BatchesFailed { .. }
            | Self::BatchesOversized { .. }
            | Self::SamplesFilledIn { .. }
            | Self::SamplesDamaged { .. }
            | Self::ColumnsReadAgain { .. }
            | Self::GpuFailed { .. }
            | Self::Tuned { .. }
            | Self::WorkerNotStarted { .. }
            | Self::NotRecorded { .. } => false,
        }
    }
}

impl DeviceLabel {
    /// Device `number` of a loader that has `of` devices.
    pub(crate) fn new(number: usize, of: usize) -> Self {
        let bits = |count| u16::try_from(count).expect("devices have 16 bits");
        Self { number: bits(number), of: bits(of) }
    }
}

impl Remaining {
    /// Who prepares batches when `devices` devices remain.
    pub(crate) fn of_devices(devices: usize) -> Self {
        if devices == 0 { Self::Host } else { Self::HostAndDevices }
    }
}

impl fmt::Display for DeviceLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of {
            0 | 1 => f.write_str("the device"),
            _ => write!(f, "device {}", self.number),
        }
    }
}

impl fmt::Display for Remaining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "the host continues alone",
            Self::HostAndDevices => "the host and the other devices continue",
        })
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "started",
            Self::Connect => "connected to",
        })
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeviceLost { device, phase, reason, remaining, .. } => {
                let when = match phase {
                    Phase::Start => " at the start",
                    Phase::BetweenEpochs => " between epochs",
                    Phase::Epoch => "",
                };
                write!(f, "{device} was lost{when}: {reason}; {remaining}")
            }
            Self::DeviceLeaving { device, remaining } => {
                write!(f, "{device} is shutting down; {remaining}")
            }
            Self::DeviceReopened { device, attempt } => write!(f, "{device} was {attempt} again"),
            Self::DeviceNotReopened { device, attempt, reason, remaining } => {
                write!(f, "{device} could not be {attempt} again ({reason}); {remaining}")
            }
            Self::DeviceGivenUp { device, failures, fault, remaining } => write!(
                f,
                "{device} failed on {failures} batches in a row ({fault}) and gets no more work \
                 in this epoch; {remaining}"
            ),
            Self::DeviceStalled { device, timeout_ns, stalls, stalls_max, is_given_up } => {
                let timeout = Duration::from_nanos(*timeout_ns);
                let outlook = match is_given_up {
                    true => "it gets no more work in this epoch",
                    false => "it gets work again when it responds",
                };
                write!(
                    f,
                    "{device} had work and published nothing within {timeout:?}: its unfinished \
                     batches returned to the host, stall {stalls} of {stalls_max}; {outlook}"
                )
            }
            Self::BatchesReclaimed { device, silent_ns } => {
                write!(f, "the host reclaimed the unfinished batches of {device}")?;
                match silent_ns.map(Duration::from_nanos) {
                    Some(silent) => write!(f, ", which had been silent for {silent:.1?}"),
                    None => f.write_str(", because it can finish them sooner"),
                }
            }
            Self::DeviceAwaited { device, waited_ns, batch_ns } => {
                let waited = Duration::from_nanos(*waited_ns);
                write!(f, "waited {waited:.1?} for the next batch, which {device} is preparing; ")?;
                match batch_ns.map(Duration::from_nanos) {
                    None => f.write_str("it has finished none so far")?,
                    Some(each) => write!(f, "its batches take {each:.1?} each")?,
                }
                Ok(())
            }
            Self::BatchFailed { device, batch, fault } => {
                match fault {
                    BatchFault::Damage { .. } => {
                        write!(f, "{device} found a damaged sample in batch {batch}")?;
                    }
                    BatchFault::Preparation { .. } => {
                        write!(f, "{device} could not prepare batch {batch}")?;
                    }
                    BatchFault::Size { .. } => {
                        write!(f, "batch {batch} does not fit a slot of {device}")?;
                    }
                    BatchFault::Refused { .. } => {
                        write!(f, "batch {batch} of {device} was refused")?;
                    }
                }
                write!(f, " ({fault}); the host prepares it")
            }
            Self::BatchesFailed { device, batches, fault } => {
                let noun = if *batches == 1 { "batch" } else { "batches" };
                write!(f, "{batches} more {noun} of {device} went to the host ")?;
                match fault {
                    Some(fault) => write!(f, "for the same reason ({fault})"),
                    None => f.write_str("for other reasons"),
                }
            }
            Self::BatchesOversized { batches, bytes_max } => {
                let (noun, were) =
                    if *batches == 1 { ("batch", "was") } else { ("batches", "were") };
                let most = show_bytes_at_least(*bytes_max);
                write!(
                    f,
                    "{batches} {noun} of the host {were} larger than the memory reserved for a \
                     batch (up to {most}), and took separate memory"
                )
            }
            Self::SamplesFilledIn { samples, has_devices } => {
                let (noun, were) =
                    if *samples == 1 { ("sample", "was") } else { ("samples", "were") };
                let others = match has_devices {
                    true => "; those that a device prepared are not counted",
                    false => "",
                };
                write!(
                    f,
                    "{samples} damaged {noun} {were} decoded by the host with missing data filled \
                     in (on_error = \"lenient\"){others}"
                )
            }
            Self::SamplesDamaged { replaced, left_out, key, file, detail, .. } => {
                let samples = replaced + left_out;
                let noun = if samples == 1 { "sample" } else { "samples" };
                write!(
                    f,
                    "{samples} damaged {noun} ({replaced} replaced, {left_out} left out); the \
                     first is {} in {}: {detail}",
                    printable(key),
                    shown(file.as_ref())
                )
            }
            Self::ColumnsReadAgain { reads, bytes, needed_bytes, cache_bytes } => {
                let [bytes, needed, cache] =
                    [*bytes, *needed_bytes, *cache_bytes].map(|it| it as f64 / f64::from(1 << 20));
                write!(
                    f,
                    "columns of record batches were read again {reads} times, {bytes:.1} MiB, \
                     because the requested columns take {needed:.1} MiB and the cache holds \
                     {cache:.1} MiB"
                )
            }
            Self::GpuFailed { gpu, detail, .. } => {
                write!(f, "{gpu} failed ({detail}); the CPU prepares its share")
            }
            Self::Tuned { tuned } => tuned_in_words(tuned, f),
            Self::WorkerNotStarted { detail, .. } => {
                write!(f, "tuning: another worker could not be started ({detail})")
            }
            Self::NotRecorded { events } => write!(f, "{events} more events were not recorded"),
        }
    }
}

/// The decision of a tuner in words.
fn tuned_in_words(tuned: &Tuned, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Tuned { verdict, before, now, .. } = tuned;
    let numbers = |concurrency: &Concurrency| {
        let noun = if concurrency.workers == 1 { "worker" } else { "workers" };
        format!("{} {noun} and {} batches ahead", concurrency.workers, concurrency.ahead)
    };
    match verdict {
        Verdict::Tried { waited_share } => write!(
            f,
            "tuning tries {} instead of {}: the consumer waits for {:.0} % of the time",
            numbers(now),
            numbers(before),
            100.0 * waited_share
        ),
        Verdict::Kept { time_ratio } => write!(
            f,
            "tuning keeps {}: a batch takes {:.0} % of the time that it took before",
            numbers(now),
            100.0 * time_ratio
        ),
        Verdict::RolledBack { time_ratio } => write!(
            f,
            "tuning returns to {}: the change did not help (a batch took {:.0} % of the time that \
             it took before)",
            numbers(now),
            100.0 * time_ratio
        ),
        Verdict::Refused => write!(f, "tuning stays at {}", numbers(now)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::{Breach, LossCause};

    #[test]
    fn an_event_survives_json_and_is_flat() {
        let device = DeviceLabel { number: 1, of: 2 };
        let (phase, remaining) = (Phase::Epoch, Remaining::HostAndDevices);
        let reason = LossCause::from(Breach::SlotNotOwned { slot: 3 }).into();
        let kind = EventKind::DeviceLost { device, phase, reason, remaining, remedy: None };
        let event = Event { at_ns: 5, rank: None, kind };
        let json = serde_json::to_value(&event).unwrap();
        assert_eq!((&json["at_ns"], &json["kind"]), (&5.into(), &"device_lost".into()));
        assert_eq!(
            (&json["device"]["number"], &json["reason"]["kind"]),
            (&1.into(), &"breach".into())
        );
        assert_eq!(json["reason"]["breach"]["slot"], 3);
        assert_eq!(serde_json::from_value::<Event>(json).unwrap(), event);
    }
}
