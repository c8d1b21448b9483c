//! How ranks come to one decision about each step (C5): every rank brings what it could do, all
//! of it is combined, and every rank gets the same answer.
//!
//! In reading order: this file (what a carrier of proposals must do), `error`, `signs` (when a
//! rank says that it is at work), `patience` (how long the others wait), [`Threads`] (the carrier
//! for ranks that are threads of one process), [`Processes`] (the one for ranks that are processes,
//! over a socket of rank 0).

pub(crate) mod error;
mod patience;
mod processes;
mod signs;
mod threads;

pub use error::CollectiveError;
pub use processes::{Listener, Meeting, Place, Processes, TOKEN_BYTES, Token};
pub(crate) use signs::Signs;
pub use threads::Threads;

use crate::StopHandle;
use meetpoint_scheduler::{Agreement, Proposal};
use std::fmt::Debug;
use std::time::Duration;

/// Carries proposals between ranks.
///
/// No call waits for ever: a rank that does not come, or has left, is named in the error.
pub trait Collective: Debug + Send + Sync {
    /// Brings a rank's proposal, waits for those of all others, and returns what all come to.
    ///
    /// Every rank calls it once for each turn, in the order of turns. After an error every further
    /// turn of that epoch is an error as well, for all ranks; the next epoch begins afresh.
    fn agree(&self, turn: &Turn<'_>, proposal: Proposal) -> Result<Agreement, CollectiveError>;

    /// A sign of life: the rank prepares a batch, or waits for one that is under way, which has
    /// limits of its own. The time that others wait for its turn begins anew.
    fn at_work(&self, rank: u32);

    /// The rank takes no more turns in this epoch, for this reason; whoever waits for it is told
    /// at once.
    fn leave(&self, rank: u32, epoch: u32, why: &str);
}

/// One rank's part in one decision.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'s> {
    /// Whose, from 0.
    pub rank: u32,
    /// Of which epoch.
    pub epoch: u32,
    /// The how-many-eth decision of the epoch it is, from 0.
    pub number: u64,
    /// Longest wait for a rank that gives no sign of life.
    pub limit: Duration,
    /// Ends the wait.
    pub stop: &'s StopHandle,
}
