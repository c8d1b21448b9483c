//! A collective for ranks that are processes: rank 0 listens, and all others connect to it.
//!
//! Rank 0 runs a [`Threads`](super::Threads) collective, with one thread per other rank that takes
//! its turns there. A closed connection shows at once that its rank has ended, so nothing waits for
//! a timeout if a process dies; a connection over a network that is silent shows it after
//! [`SILENCE_MAX`].
//!
//! In reading order: this file, `config`, `address` and `attempt` (the parameters), `secret`,
//! `message`, `stream` and `link` (the protocol), `listener` and `gather` (rank 0 until all are
//! connected), `hub` (rank 0 afterwards), `member` (the other ranks).

mod address;
mod attempt;
mod config;
mod gather;
mod hub;
mod link;
mod listener;
mod member;
mod message;
mod secret;
mod stream;
#[cfg(test)]
mod tests;

pub use address::RendezvousAddress;
pub use attempt::Attempt;
pub use config::RendezvousConfig;
pub use link::SILENCE_MAX;
pub use listener::Listener;
pub use secret::{TOKEN_BYTES, Token};

use super::{Collective, CollectiveError, Turn};
use crate::StopHandle;
use hub::Hub;
use meetpoint_scheduler::{Agreement, Proposal};
use member::Member;

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
        let is_open = matches!(config.place, RendezvousAddress::Tcp(_)) && config.token.is_none();
        if is_open {
            return Err(CollectiveError::NoToken { place: config.place.to_string() });
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
