//! The state machine of one epoch: events in, decisions out.

mod agree;
pub(crate) mod board;
mod decisions;
pub(crate) mod device;
mod events;
mod guard;
mod invariants;
mod reports;

use crate::config::{Config, Strategy};
use crate::error::Error;
use crate::picked::{Picked, Why};
use crate::strategies::{Plan, auto};
use crate::types::Time;
use agree::Ranks;
use board::Board;
use device::Lost;
use guard::Guard;
use invariants::Watermarks;
pub use reports::{DeviceSummary, Summary};

/// One epoch being worked from both ends. See the crate's docs.
///
/// Every method takes O(1) time, O(log D) in the number of devices where each holds its own batches
/// (amortised over the epoch; fencing a device off takes time in proportion to what it held).
/// Memory goes with the devices and with what is open, not with the number of batches; in steady
/// state nothing is allocated after [`Epoch::new`]. Time that goes back is taken as the latest time
/// told.
///
/// An epoch may be made, and devices granted work from it, long before its accelerator is first
/// ready (run-ahead into the next epoch): times of steps begin with the first
/// [`Epoch::accelerator_ready`], those of devices with their first grant.
#[derive(Debug, Clone)]
pub struct Epoch {
    board: Board,
    plan: Plan,
    guard: Guard,
    ranks: Ranks,
    picked: Option<Picked>,
    watermarks: Watermarks,
}

impl Epoch {
    /// An epoch at its beginning.
    pub fn new(config: Config) -> Result<Self, Error> {
        config.check()?;
        let (strategy, picked) = match (config.strategy, &config.replay) {
            (Strategy::Auto { .. }, Some(record)) => {
                let strategy = record.kind().strategy();
                (strategy, Some(Picked { strategy, why: Why::Replayed }))
            }
            (Strategy::Auto { goal, order }, None) => {
                let picked = auto::pick(&config, goal, order);
                (picked.strategy, Some(picked))
            }
            (strategy, _) => (strategy, None),
        };
        let plan = Plan::new(&config, strategy);
        let mut board = Board::new(config, matches!(plan, Plan::Wrr(_)));
        let windowed = matches!(strategy, Strategy::Windowed { .. });
        board.ready_is_safe &= picked.is_none() || windowed;
        let watermarks = Watermarks::new(&board);
        let guard = Guard::new(picked.is_some());
        let mut made = Self { plan, watermarks, guard, ranks: Ranks::default(), picked, board };
        if let Plan::Ordered(plan) = &mut made.plan {
            plan.start(&mut made.board);
        }
        Ok(made)
    }

    /// What it was made with.
    pub fn config(&self) -> &Config {
        &self.board.config
    }

    /// Takes the time; it never goes back.
    fn tell(&mut self, now: Time) {
        self.board.now = self.board.now.max(now);
    }

    /// Fences off every device whose time is up.
    fn fence_stalled(&mut self) {
        while let Some(id) = self.board.next_stalled() {
            let board = &mut self.board;
            board.fence(id);
            let stalls_max = board.config.stalls_max;
            let device = board.device_mut(id);
            device.silent = true;
            device.stalls += 1;
            if device.stalls >= stalls_max {
                board.give_up(id, Lost::Stalls);
            }
            board.refresh(id);
            self.plan.learn(&mut self.board);
        }
    }
}
