//! Why ranks did not reach a decision.

use meetpoint_diagnose::Remedy;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Why ranks did not reach a decision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CollectiveError {
    /// Ranks did not come together at all.
    #[error("{} did not come to {place} within {waited:?}", name(ranks))]
    NotMet {
        /// Which.
        ranks: Vec<u32>,
        /// Where they were waited for.
        place: String,
        /// How long was waited.
        waited: Duration,
    },
    /// Ranks that are to do different things.
    #[error("rank {rank} is to run {theirs}, rank 0 {ours}")]
    Differs {
        /// Which.
        rank: u32,
        /// What it is to do.
        theirs: String,
        /// What rank 0 is to do.
        ours: String,
    },
    /// There is no place to meet.
    #[error("failed to meet the other ranks at {place}: {problem}")]
    Place {
        /// Where.
        place: String,
        /// What happened.
        problem: String,
        /// What helps.
        remedy: Option<Remedy>,
    },
    /// Some ranks did not come in time.
    #[error("{} did not come to decision {number} of epoch {epoch} within {waited:?}", name(ranks))]
    Missing {
        /// Which.
        ranks: Vec<u32>,
        /// Epoch.
        epoch: u32,
        /// Decision of the epoch, from 0.
        number: u64,
        /// How long was waited.
        waited: Duration,
    },
    /// A rank ended its epoch early.
    #[error("rank {rank} left epoch {epoch}: {why}")]
    Left {
        /// Which.
        rank: u32,
        /// Epoch.
        epoch: u32,
        /// In its own words.
        why: String,
    },
    /// The others waited for this rank and gave up.
    #[error("rank {rank} came too late to decision {number} of epoch {epoch}: the others gave up")]
    Late {
        /// Which.
        rank: u32,
        /// Epoch.
        epoch: u32,
        /// Decision of the epoch, from 0.
        number: u64,
    },
    /// Ranks have consumed different numbers of batches.
    #[error("rank {rank} is out of step with the others in decision {number} of epoch {epoch}")]
    OutOfStep {
        /// Which.
        rank: u32,
        /// Epoch.
        epoch: u32,
        /// Decision of the epoch, from 0.
        number: u64,
    },
    /// The rank is out of range, or voted twice on one decision.
    #[error("rank {rank} has no turn here: there are ranks 0 to {}, once each", ranks - 1)]
    NoTurn {
        /// Which.
        rank: u32,
        /// How many there are.
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
