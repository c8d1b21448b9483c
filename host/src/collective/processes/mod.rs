//! A collective for ranks that are processes: rank 0 listens, and all others connect to it.
//!
//! Rank 0 runs a [`Threads`] collective, with one thread per other rank that takes its turns there.
//! A closed connection shows at once that its rank has ended, so nothing waits for a timeout if a
//! process dies.
//!
//! In reading order: this file ([`RendezvousConfig`]), `message` and `stream` (the protocol), `hub`
//! (rank 0), `member` (the other ranks).

mod hub;
mod listener;
mod member;
mod message;
mod stream;
#[cfg(test)]
mod tests;

pub use listener::Listener;

use super::{Collective, CollectiveError, Turn};
use crate::StopHandle;
use hub::Hub;
use meetpoint_scheduler::{Agreement, Proposal};
use member::Member;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Bytes of a [`Token`].
pub const TOKEN_BYTES: usize = 32;

/// The secret that ranks share: connections without it are refused.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Token(pub [u8; TOKEN_BYTES]);

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(..)")
    }
}

impl Token {
    /// Whether both are equal, in constant time.
    fn is(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).fold(0, |differs, (own, other)| differs | (own ^ other)) == 0
    }
}

/// The address at which ranks connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RendezvousAddress {
    /// A Unix socket: ranks of one machine and one user.
    Unix(PathBuf),
    /// `host:port`.
    Tcp(String),
}

impl fmt::Display for RendezvousAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
            Self::Tcp(address) => write!(formatter, "tcp:{address}"),
        }
    }
}

impl RendezvousAddress {
    /// `unix:PATH` or `tcp:HOST:PORT`.
    pub fn parse(text: &str) -> Result<Self, CollectiveError> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        if let Some(address) = text.strip_prefix("tcp:").filter(|at| at.contains(':')) {
            return Ok(Self::Tcp(address.to_owned()));
        }
        let problem = "it is not an address".to_owned();
        let remedy = Some("give unix:PATH or tcp:HOST:PORT".into());
        Err(CollectiveError::Place { place: text.to_owned(), problem, remedy })
    }

    fn problem(&self, problem: impl fmt::Display) -> CollectiveError {
        let (place, problem) = (self.to_string(), problem.to_string());
        CollectiveError::Place { place, problem, remedy: Some("choose another address".into()) }
    }
}

/// The parameters for connecting the ranks.
#[derive(Debug)]
pub struct RendezvousConfig {
    /// The address.
    pub place: RendezvousAddress,
    /// Rank 0's listener, if it already listens; otherwise one is created.
    pub listener: Option<Listener>,
    /// The token of all ranks; on a Unix socket it may be zeros, as the file system restricts
    /// access.
    pub token: Token,
    /// This rank.
    pub rank: u32,
    /// Number of ranks.
    pub ranks: u32,
    /// A description of the job, which must be the same for all.
    pub job: String,
    /// Longest wait for the other ranks.
    pub limit: Duration,
}

/// The collective of ranks that are processes.
#[derive(Debug)]
pub struct Processes {
    end: End,
}

#[derive(Debug)]
enum End {
    Hub(Hub),
    Member(Member),
}

impl Processes {
    /// Waits until all ranks are connected. The error names missing ranks.
    pub fn meet(config: RendezvousConfig, stop: &StopHandle) -> Result<Self, CollectiveError> {
        let RendezvousConfig { rank, ranks, .. } = config;
        if rank >= ranks {
            return Err(CollectiveError::NoTurn { rank, ranks });
        }
        let end = match rank {
            0 => End::Hub(Hub::gather(config, stop)?),
            _ => End::Member(Member::join(config, stop)?),
        };
        Ok(Self { end })
    }

    /// The rank leaves permanently, for this reason.
    pub fn give_up(&self, why: &str) {
        match &self.end {
            End::Hub(hub) => hub.give_up(why),
            End::Member(member) => member.give_up(why),
        }
    }
}

impl Collective for Processes {
    fn agree(&self, turn: &Turn<'_>, proposal: Proposal) -> Result<Agreement, CollectiveError> {
        match &self.end {
            End::Hub(hub) => hub.agree(turn, proposal),
            End::Member(member) => member.agree(turn, proposal),
        }
    }

    fn at_work(&self, rank: u32) {
        match &self.end {
            End::Hub(hub) => hub.at_work(rank),
            End::Member(member) => member.at_work(),
        }
    }

    fn leave(&self, rank: u32, epoch: u32, why: &str) {
        match &self.end {
            End::Hub(hub) => hub.leave(rank, epoch, why),
            End::Member(member) => member.leave(epoch, why),
        }
    }
}
