//! How ranks agree on each step (C5): the proposals of all ranks are combined, and every rank gets
//! the same result.
//!
//! In reading order: this file (the trait of a collective), `error`, `heartbeats`,
//! `rank_wait` (timeouts), [`Threads`] (ranks that are threads of one process), [`Processes`]
//! (ranks that are processes, over a socket of rank 0).

pub(crate) mod error;
mod heartbeats;
mod processes;
mod rank_wait;
mod threads;

pub use error::CollectiveError;
pub(crate) use heartbeats::Heartbeats;
pub use processes::{
    Attempt, Listener, Processes, RendezvousAddress, RendezvousConfig, SILENCE_MAX, TOKEN_BYTES,
    Token,
};
pub use threads::Threads;

use crate::StopHandle;
use meetpoint_scheduler::{Agreement, Proposal};
use std::fmt::Debug;
use std::time::Duration;

/// Carries proposals between ranks.
///
/// Every call has a timeout: a rank that is late, or has left, is named in the error.
pub trait Collective: Debug + Send + Sync {
    /// Takes a rank's proposal, waits for those of all others, and returns the agreement.
    ///
    /// Every rank calls it once per turn, in the order of turns. After an error, every further turn
    /// of that epoch also fails, on all ranks; the next epoch starts without errors.
    fn agree(&self, turn: &Turn<'_>, proposal: Proposal) -> Result<Agreement, CollectiveError>;

    /// A heartbeat: the rank prepares a batch, or waits for one in progress, which has its own
    /// timeouts. Restarts the timeout of the others.
    fn at_work(&self, rank: u32);

    /// The rank leaves this epoch, for this reason; waiting ranks get an error at once.
    fn leave(&self, rank: u32, epoch: u32, why: &str);
}

/// One rank's part in one decision.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'s> {
    /// The rank, from 0.
    pub rank: u32,
    /// The epoch.
    pub epoch: u32,
    /// The ordinal of the decision in the epoch, from 0.
    pub number: u64,
    /// Longest wait for a rank that sends no message.
    pub limit: Duration,
    /// Ends the wait.
    pub stop: &'s StopHandle,
}
