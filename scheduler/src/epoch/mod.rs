//! The state machine of one epoch: events in, decisions out.

pub(crate) mod board;
mod decisions;
pub(crate) mod device;
mod events;
mod invariants;
mod reports;

use crate::config::Config;
use crate::error::Error;
use crate::strategies::Plan;
use crate::types::{DeviceId, Profile, Time};
use board::Board;
use device::Lost;
use invariants::Watermarks;
pub use reports::DeviceSummary;

/// One epoch being worked from both ends. See the crate's docs.
///
/// Every method takes O(1) time (amortised over the epoch; fencing a device off takes time in
/// proportion to what it held) and none but [`Epoch::new`] allocates. Time that goes back is taken
/// as the latest time told.
#[derive(Debug, Clone)]
pub struct Epoch {
    board: Board,
    plan: Plan,
    watermarks: Watermarks,
}

/// What an epoch came to; valid at any time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Batches consumed that the host prepared.
    pub host_batches: u32,
    /// Batches consumed that a device prepared.
    pub device_batches: u32,
    /// Device claims that were taken back (losses, stalls, rejected slots, end of the epoch).
    pub revoked: u32,
    /// Reports that had no effect.
    pub void_reports: u32,
    /// Stalls seen.
    pub stalls: u32,
    /// Whether a device was given up.
    pub device_lost: bool,
    /// The device's share n_s once `mte` has fixed it: with [`crate::Split::Fixed`] it replays the
    /// epoch.
    pub split: Option<u32>,
    /// Whether that share would have been larger with more spool slots.
    pub split_limited_by_spool: bool,
    /// What was measured.
    pub measured: Profile,
    /// Highest generation used.
    pub last_generation: u32,
}

impl Epoch {
    /// An epoch at its beginning.
    pub fn new(config: Config) -> Result<Self, Error> {
        config.check()?;
        let plan = Plan::new(&config);
        let watermarks = Watermarks::new(&config);
        Ok(Self { plan, watermarks, board: Board::new(config) })
    }

    /// What it was made with.
    pub fn config(&self) -> &Config {
        &self.board.config
    }

    /// What the epoch came to so far.
    pub fn summary(&self) -> Summary {
        let board = &self.board;
        let (split, split_limited_by_spool) = self.plan.as_ref().split();
        let generation = board.devices.iter().map(|device| device.generation.0).max();
        Summary {
            host_batches: board.ledger.consumed_by_host(),
            device_batches: board.ledger.consumed_by_device(),
            revoked: board.revoked,
            void_reports: board.void_reports,
            stalls: board.devices.iter().map(|device| device.stalls).sum(),
            device_lost: board.devices.iter().any(|device| device.lost.is_some()),
            split,
            split_limited_by_spool,
            measured: board.measured(),
            last_generation: generation.unwrap_or(0),
        }
    }

    /// Takes the time; it never goes back.
    fn tell(&mut self, now: Time) {
        self.board.now = self.board.now.max(now);
    }

    /// Fences off every device whose time is up.
    fn fence_stalled(&mut self) {
        for number in 0..self.board.devices.len() {
            let board = &mut self.board;
            let due = board.devices[number].stall_due(&board.config);
            if due.is_none_or(|due| board.now < due) {
                continue;
            }
            let id = DeviceId(u16::try_from(number).expect("checked by the configuration"));
            board.fence(id);
            let stalls_max = board.config.stalls_max;
            let device = board.device_mut(id);
            device.silent = true;
            device.stalls += 1;
            if device.stalls >= stalls_max {
                board.give_up(id, Lost::Stalls);
            }
            self.plan.as_mut().learn(&self.board);
        }
    }
}
