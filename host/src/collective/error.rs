//! Why ranks did not reach a decision.

use meetpoint_diagnose::Remedy;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Why ranks did not reach a decision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CollectiveError {
    /// Ranks did not connect.
    #[error("{} did not connect to {place} within {waited:?}", name(ranks))]
    NotMet {
        /// The missing ranks.
        ranks: Vec<u32>,
        /// The address at which they should connect.
        place: String,
        /// The timeout.
        waited: Duration,
    },
    /// Ranks with different jobs.
    #[error("rank {rank} runs {theirs}, rank 0 runs {ours}")]
    Differs {
        /// The rank.
        rank: u32,
        /// Its job.
        theirs: String,
        /// The job of rank 0.
        ours: String,
    },
    /// The address at which ranks connect cannot be used.
    #[error("failed to connect to the other ranks at {place}: {problem}")]
    Place {
        /// The address.
        place: String,
        /// The cause.
        problem: String,
        /// The remedy.
        remedy: Option<Remedy>,
    },
    /// Some ranks did not take part in time.
    #[error("{} missed decision {number} of epoch {epoch} after {waited:?}", name(ranks))]
    Missing {
        /// The ranks.
        ranks: Vec<u32>,
        /// Epoch.
        epoch: u32,
        /// Decision of the epoch, from 0.
        number: u64,
        /// The time waited.
        waited: Duration,
    },
    /// A rank ended its epoch early.
    #[error("rank {rank} left epoch {epoch}: {why}")]
    Left {
        /// The rank.
        rank: u32,
        /// Epoch.
        epoch: u32,
        /// Its reason.
        why: String,
    },
    /// The other ranks timed out waiting for this one.
    #[error("rank {rank} came too late to decision {number} of epoch {epoch}: the others gave up")]
    Late {
        /// The rank.
        rank: u32,
        /// Epoch.
        epoch: u32,
        /// Decision of the epoch, from 0.
        number: u64,
    },
    /// Ranks have consumed different numbers of batches.
    #[error("rank {rank} is out of step with the others in decision {number} of epoch {epoch}")]
    OutOfStep {
        /// The rank.
        rank: u32,
        /// Epoch.
        epoch: u32,
        /// Decision of the epoch, from 0.
        number: u64,
    },
    /// The rank is out of range, or voted twice on one decision.
    #[error("unexpected rank {rank}: expected ranks 0 to {}, once each", ranks - 1)]
    NoTurn {
        /// The rank.
        rank: u32,
        /// The number of ranks.
        ranks: u32,
    },
    /// [`crate::StopHandle::stop`] was called.
    #[error("interrupted")]
    Interrupted,
}

/// `rank 2`, or `ranks 1, 2 and 5`.
fn name(ranks: &[u32]) -> String {
    match ranks {
        [] => "no rank".to_owned(),
        [only] => format!("rank {only}"),
        [most @ .., last] => {
            let most: Vec<String> = most.iter().map(u32::to_string).collect();
            format!("ranks {} and {last}", most.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn ranks_are_named_as_people_do() {
        assert_eq!(name(&[2]), "rank 2");
        assert_eq!(name(&[0, 3]), "ranks 0 and 3");
        assert_eq!(name(&[0, 3, 4]), "ranks 0, 3 and 4");
    }
}
