//! Why ranks did not reach a decision.

use super::Attempt;
use meetpoint_diagnose::Remedy;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Why ranks did not reach a decision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CollectiveError {
    /// Ranks did not connect.
    #[error(
        "{} did not connect to {place} within {waited:?}{}",
        name(ranks),
        refused(*strangers, outdated)
    )]
    NotMet {
        /// The missing ranks.
        ranks: Vec<u32>,
        /// The address at which they should connect.
        place: String,
        /// The timeout.
        waited: Duration,
        /// Connections that rank 0 refused because of another token.
        strangers: u32,
        /// The first ranks of other attempts that rank 0 refused.
        outdated: Vec<(u32, Attempt)>,
    },
    /// Ranks over a network without a token.
    #[error("ranks that connect at {place} have no token, so anybody could take part")]
    NoToken {
        /// The address.
        place: String,
    },
    /// Rank 0 has another token, or is not a rank.
    #[error("rank 0 at {place} does not have the token of this rank")]
    OtherToken {
        /// The address.
        place: String,
    },
    /// Programs of different versions.
    #[error("a rank uses version {theirs} of the messages between ranks, rank 0 version {ours}")]
    Version {
        /// Version of the rank.
        theirs: u32,
        /// Version of rank 0.
        ours: u32,
    },
    /// The rank belongs to another attempt than rank 0, or to another run.
    #[error("rank {rank} belongs to {theirs}, rank 0 to {ours}")]
    OtherAttempt {
        /// The rank.
        rank: u32,
        /// Its attempt.
        theirs: Attempt,
        /// The attempt of rank 0.
        ours: Attempt,
    },
    /// A later attempt has begun.
    #[error("{ours} has been replaced by {theirs}")]
    Superseded {
        /// The attempt of this rank.
        ours: Attempt,
        /// The later one.
        theirs: Attempt,
    },
    /// Two processes are the same rank.
    #[error("two processes are rank {rank}")]
    Claimed {
        /// The rank.
        rank: u32,
    },
    /// Ranks of different numbers of ranks.
    #[error("rank {rank} of {theirs} connected to ranks 0 to {} of {ranks}", ranks - 1)]
    OtherWorld {
        /// The rank.
        rank: u32,
        /// Its number of ranks.
        theirs: u32,
        /// The number of ranks of rank 0.
        ranks: u32,
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
    #[error(
        "rank {rank} was too late for decision {number} of epoch {epoch}: the others timed out"
    )]
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

/// What rank 0 refused, as a clause.
fn refused(strangers: u32, outdated: &[(u32, Attempt)]) -> String {
    let strangers = match strangers {
        0 => None,
        1 => Some("a connection with another token".to_owned()),
        many => Some(format!("{many} connections with another token")),
    };
    let outdated = outdated.iter().map(|(rank, attempt)| format!("rank {rank} of {attempt}"));
    let all: Vec<String> = strangers.into_iter().chain(outdated).collect();
    match all.is_empty() {
        true => String::new(),
        false => format!(" (refused: {})", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Attempt, name, refused};

    #[test]
    fn ranks_are_named_as_people_do() {
        assert_eq!(name(&[2]), "rank 2");
        assert_eq!(name(&[0, 3]), "ranks 0 and 3");
        assert_eq!(name(&[0, 3, 4]), "ranks 0, 3 and 4");
    }

    #[test]
    fn refused_connections_are_named() {
        assert_eq!(refused(0, &[]), "");
        let old = Attempt { run: "night".to_owned(), number: 1 };
        let words =
            " (refused: 2 connections with another token, rank 3 of attempt 1 of run night)";
        assert_eq!(refused(2, &[(3, old)]), words);
    }
}
