//! Findings of the verification of a consistency level, as values; `Display` is the sentence.

use crate::events::DeviceLabel;
use crate::stats::Preparer;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A fact, and the epoch and ranks that it applies to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The epoch that it concerns; `None`: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u32>,
    /// The rank that it concerns; `None`: all of them, or the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Number of ranks, if it applies to each of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<u32>,
    /// The fact.
    #[serde(flatten)]
    pub fact: Fact,
}

/// The source of the tensors with which a run is compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reference", rename_all = "snake_case")]
pub enum Origin {
    /// A separate preparation.
    Prepared {
        /// Instruction set of its kernels.
        kernels: String,
    },
    /// A run of the host alone.
    HostAlone,
}

/// What was compared, where a level is violated, or why it was not checked.
///
/// No field has the name of one of [`Finding`], whose fields are in the same JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields are the numbers of the sentence above them")]
#[non_exhaustive]
pub enum Fact {
    /// Each batch was consumed once.
    EachConsumedOnce { batches: u32 },
    /// Every batch has the samples that seed, epoch and index determine.
    SamplesAsGiven,
    /// Every tensor equals that of the reference.
    TensorsEqual {
        samples: u64,
        of_devices: u64,
        #[serde(flatten)]
        origin: Origin,
    },
    /// The order is that of a split.
    OrderOfSplit { split: u32, batches: u32 },
    /// The order is the one that the record of the epoch replays.
    OrderOfRecord { record: String },
    /// The order is ascending.
    OrderAscending { batches: u32 },
    /// The tensors have the random parameters of the epoch.
    DrawsOfEpoch,
    /// Batches were reused from an earlier epoch, since every epoch has the same batches.
    BatchesReused { batches: u32 },
    /// Each slot had the number and generation of the epoch.
    SlotsOfEpoch { slots: u32 },
    /// The ranks took equal steps, each from the same kind of source.
    EqualSteps { of_ranks: u32, steps: u64, of_devices: u64 },
    /// The ranks consumed each sample once.
    SamplesOnce { samples: u64, padded: u64 },
    /// The level is not claimed.
    NotClaimed,

    /// A batch was consumed that does not exist.
    NoSuchBatch { batch: u32 },
    /// A batch was not consumed exactly once.
    ConsumedTimes { batch: u32, times: u32 },
    /// A batch contains other samples.
    OtherSamples { batch: u32 },
    /// A batch is incomplete.
    NotWhole { batch: u32 },
    /// A tensor differs from that of the reference.
    OtherTensor {
        batch: u32,
        /// The device that prepared it; `None`: the host.
        device: Option<DeviceLabel>,
        row: u64,
        sample: u64,
        got_crc32c: u32,
        expected_crc32c: u32,
    },
    /// A step consumed another batch than expected, or none.
    OtherBatch { step: u64, got: Option<u32>, expected: u32 },
    /// A batch was consumed after the last.
    BehindTheLast { batch: u32 },
    /// A batch was consumed before it was ready.
    NotReady { batch: u32 },
    /// A rank ran fewer epochs than another.
    FewerEpochs { of_rank: u32, epochs: u64, most: u64 },
    /// A rank took a different number of steps than rank 0.
    OtherSteps { of_rank: u32, steps: u64, expected: u64 },
    /// A rank took a batch from another kind of source than rank 0.
    OtherSource { of_rank: u32, step: u64, source: Preparer, expected: Preparer },
    /// A sample was consumed by two ranks.
    SampleTwice { sample: u64, batch: u32, of_rank: u32 },
    /// The ranks consumed a different number of samples.
    OtherCount { samples: u64, expected: u64 },

    /// No epoch was run.
    NoEpoch,
    /// There is one rank, but the level is about several.
    OneRank,
    /// The reference lacks an epoch.
    NoReferenceEpoch { missing: u32 },
    /// The reference lacks a sample.
    NoReferenceSample { sample: u64 },
    /// The share in the record of an epoch exceeds the epoch.
    ShareTooLarge { record: String, batches: u32 },
    /// The record of an epoch cannot be replayed.
    NotReplayed { record: String, reason: ReplayProblem },
    /// The run recorded no checksums of samples.
    NoChecksums,
    /// Verification was turned off.
    TurnedOff,
    /// The reference could not be prepared.
    NoReference,
}

/// Why an epoch cannot be replayed from a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ReplayProblem {
    /// The scheduler does not accept it for the epoch.
    #[error("{detail}")]
    Refused {
        /// The message of the scheduler.
        detail: String,
    },
    /// It does not determine the order of all steps.
    #[error("it determines the order of only {step} steps")]
    EndsEarly {
        /// Number of steps.
        step: usize,
    },
}

impl From<Fact> for Finding {
    fn from(fact: Fact) -> Self {
        Self { epoch: None, rank: None, ranks: None, fact }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(ranks) = self.ranks {
            write!(f, "on each of {ranks} ranks: ")?;
        }
        if let Some(rank) = self.rank {
            write!(f, "rank {rank}: ")?;
        }
        if let Some(epoch) = self.epoch {
            write!(f, "epoch {epoch}: ")?;
        }
        self.fact.fmt(f)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prepared { kernels } => {
                write!(f, "a separate preparation with {kernels} kernels")
            }
            Self::HostAlone => f.write_str("the preparation by the host alone"),
        }
    }
}

fn source(source: Preparer) -> &'static str {
    match source {
        Preparer::Host => "the host",
        Preparer::Device => "a device",
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EachConsumedOnce { batches } => {
                write!(f, "each of {batches} batches was consumed once")
            }
            Self::SamplesAsGiven => f.write_str(
                "every batch has the samples that seed, epoch and index determine, each with the \
                 tensor that C2 checks",
            ),
            Self::TensorsEqual { samples, of_devices, origin } => write!(
                f,
                "the CRC-32C of each of {samples} tensors, {of_devices} of them by the device, \
                 equals {origin}"
            ),
            Self::OrderOfSplit { split, batches } => {
                write!(f, "the order is that of a split of {split} of {batches} batches")
            }
            Self::OrderOfRecord { record } => {
                write!(f, "the order is the one that the record {record} replays")
            }
            Self::OrderAscending { batches } => {
                write!(f, "the order is 0 to {}", batches.saturating_sub(1))
            }
            Self::DrawsOfEpoch => {
                f.write_str("the tensors have the random parameters of this epoch and of no other")
            }
            Self::BatchesReused { batches } => write!(
                f,
                "{batches} batches were reused from an earlier epoch, since recipe and order are \
                 the same in every epoch; each slot had the numbers with which it was published"
            ),
            Self::SlotsOfEpoch { slots } => write!(
                f,
                "each of {slots} used slots had this epoch's number and generation, and the \
                 tensors are this epoch's"
            ),
            Self::EqualSteps { of_ranks: ranks, steps, of_devices } => write!(
                f,
                "{ranks} ranks took {steps} steps each, {of_devices} of them on batches of \
                 devices, and the same kind of source in every step"
            ),
            Self::SamplesOnce { samples, padded } => {
                write!(f, "the ranks consumed each of {samples} samples once")?;
                match padded {
                    0 => Ok(()),
                    padded => {
                        write!(
                            f,
                            ", apart from {padded} batches that are repeated to complete steps"
                        )
                    }
                }
            }
            Self::NotClaimed => f.write_str("the strategy does not claim it"),
            Self::NoSuchBatch { batch } => write!(f, "batch {batch} does not exist"),
            Self::ConsumedTimes { batch, times } => {
                write!(f, "batch {batch} was consumed {times} times")
            }
            Self::OtherSamples { batch } => write!(f, "batch {batch} contains other samples"),
            Self::NotWhole { batch } => write!(f, "batch {batch} is incomplete"),
            Self::OtherTensor { batch, device, row, sample, got_crc32c, expected_crc32c } => {
                let who = device.map_or_else(|| "the host".to_owned(), |it| it.to_string());
                write!(
                    f,
                    "batch {batch} by {who}, row {row}, sample {sample}: CRC-32C is \
                     {got_crc32c:#010x}, the reference has {expected_crc32c:#010x}"
                )
            }
            Self::OtherBatch { step, got, expected } => {
                let got = got.map_or_else(|| "nothing".to_owned(), |got| format!("batch {got}"));
                write!(f, "step {step} consumed {got}, not batch {expected}")
            }
            Self::BehindTheLast { batch } => {
                write!(f, "batch {batch} was consumed after the last")
            }
            Self::NotReady { batch } => {
                write!(f, "batch {batch} was consumed before it was ready")
            }
            Self::FewerEpochs { of_rank, epochs, most } => {
                write!(f, "rank {of_rank} ran {epochs} epochs, another {most}")
            }
            Self::OtherSteps { of_rank, steps, expected } => {
                write!(f, "rank {of_rank} took {steps} steps, rank 0 took {expected}")
            }
            Self::OtherSource { of_rank, step, source: got, expected } => write!(
                f,
                "step {step}: rank {of_rank} took a batch of {}, rank 0 of {}",
                source(*got),
                source(*expected)
            ),
            Self::SampleTwice { sample, batch, of_rank } => write!(
                f,
                "sample {sample} in batch {batch} of rank {of_rank} was consumed by another rank \
                 too"
            ),
            Self::OtherCount { samples, expected } => {
                write!(f, "{samples} samples were consumed, not {expected}")
            }
            Self::NoEpoch => f.write_str("no epoch was run"),
            Self::OneRank => f.write_str("there is one rank"),
            Self::NoReferenceEpoch { missing } => {
                write!(f, "the reference lacks epoch {missing}")
            }
            Self::NoReferenceSample { sample } => {
                write!(f, "the reference lacks sample {sample}")
            }
            Self::ShareTooLarge { record, batches } => {
                write!(f, "the record {record} has a share of more than {batches}")
            }
            Self::NotReplayed { record, reason } => {
                write!(f, "the record {record} cannot be replayed: {reason}")
            }
            Self::NoChecksums => f.write_str("the run kept no checksums of samples"),
            Self::TurnedOff => f.write_str("verification was turned off"),
            Self::NoReference => f.write_str("verification failed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Fact, Finding, Origin, ReplayProblem};
    use crate::events::DeviceLabel;
    use crate::stats::Preparer;

    /// Facts with every name of a field, as they are in a report of several ranks.
    fn facts() -> Vec<Fact> {
        let origin = Origin::Prepared { kernels: "portable".to_owned() };
        vec![
            Fact::EachConsumedOnce { batches: 3 },
            Fact::TensorsEqual { samples: 1, of_devices: 2, origin },
            Fact::OrderOfSplit { split: 1, batches: 2 },
            Fact::OrderOfRecord { record: "mte:1".to_owned() },
            Fact::SlotsOfEpoch { slots: 1 },
            Fact::EqualSteps { of_ranks: 2, steps: 3, of_devices: 1 },
            Fact::SamplesOnce { samples: 1, padded: 2 },
            Fact::ConsumedTimes { batch: 1, times: 2 },
            Fact::OtherTensor {
                batch: 1,
                device: Some(DeviceLabel::new(1, 2)),
                row: 2,
                sample: 3,
                got_crc32c: 4,
                expected_crc32c: 5,
            },
            Fact::OtherBatch { step: 1, got: Some(2), expected: 3 },
            Fact::FewerEpochs { of_rank: 1, epochs: 2, most: 3 },
            Fact::OtherSource {
                of_rank: 1,
                step: 2,
                source: Preparer::Host,
                expected: Preparer::Device,
            },
            Fact::SampleTwice { sample: 1, batch: 2, of_rank: 3 },
            Fact::NoReferenceEpoch { missing: 1 },
            Fact::NotReplayed {
                record: "mte:1".to_owned(),
                reason: ReplayProblem::EndsEarly { step: 3 },
            },
        ]
    }

    #[test]
    fn every_fact_is_read_back_beside_the_epoch_and_the_ranks_that_it_concerns() {
        for fact in facts() {
            for (epoch, rank, ranks) in [(None, None, None), (Some(7), Some(8), Some(9))] {
                let finding = Finding { epoch, rank, ranks, fact: fact.clone() };
                let text = serde_json::to_string(&finding).unwrap();
                let read: Finding =
                    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"));
                assert_eq!(read, finding, "{text}");
            }
        }
    }
}
