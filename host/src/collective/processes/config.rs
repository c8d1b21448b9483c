//! The parameters for connecting the ranks.

use super::address::RendezvousAddress;
use super::attempt::Attempt;
use super::listener::Listener;
use super::secret::Token;
use std::time::Duration;

/// The parameters for connecting the ranks.
#[derive(Debug)]
pub struct RendezvousConfig {
    /// The address.
    pub place: RendezvousAddress,
    /// Rank 0's listener, if it already listens; otherwise one is created.
    pub listener: Option<Listener>,
    /// The secret of all ranks. Only on a Unix socket there may be none, as the file system
    /// restricts access.
    pub token: Option<Token>,
    /// This rank.
    pub rank: u32,
    /// Number of ranks.
    pub ranks: u32,
    /// The attempt that this rank belongs to.
    pub attempt: Attempt,
    /// A description of the job, which must be the same for all.
    pub job: String,
    /// Longest wait for the other ranks.
    pub limit: Duration,
    /// Longest silence of a connection. `None`: [`SILENCE_MAX`](super::SILENCE_MAX) over a network,
    /// and no limit between processes of one machine, as the end of either closes the connection.
    pub silence: Option<Duration>,
}
