//! The state machine of one epoch: events in, decisions out.

mod agree;
mod decisions;
mod events;
mod guard;
mod invariants;
mod pace;
mod reports;

use crate::board::Board;
use crate::config::Config;
use crate::device::DeviceLoss;
use crate::error::Error;
use crate::strategies::plan::Consumption;
use crate::strategies::{AnyPlan, Reason, Selection, StrategyName};
use crate::types::Time;
use agree::Ranks;
use guard::Guard;
use invariants::Watermarks;
use pace::Pace;
pub use reports::{DeviceSummary, Summary};

/// One epoch that host and devices work on from both ends. See the crate's docs.
///
/// Every method takes O(1) time, or O(log D) in the number of devices if each holds its own batches
/// (amortised over the epoch; fencing a device off takes time proportional to its open batches).
/// Memory is proportional to devices and open batches, not to the number of batches; in steady
/// state nothing is allocated after [`Epoch::new`]. A time before the latest counts as the latest.
///
/// An epoch may be created, and devices granted work from it, long before its accelerator is first
/// ready (running ahead into the next epoch): step times begin with the first
/// [`Epoch::accelerator_ready`], those of devices with their first grant.
#[derive(Debug, Clone)]
pub struct Epoch {
    config: Config,
    board: Board,
    plan: AnyPlan,
    /// The strategy that decides: as configured, or as selected by `auto`.
    decides: StrategyName,
    guard: Guard,
    /// Limits devices that slow down the host, under `auto`.
    pace: Option<Pace>,
    ranks: Ranks,
    selection: Option<Selection>,
    watermarks: Watermarks,
}

impl Epoch {
    /// The start of an epoch.
    pub fn new(config: Config) -> Result<Self, Error> {
        config.check()?;
        let terms = config.terms();
        let (plan, selection) = match &config.replay {
            Some(record) if config.strategy.is_selector() => {
                let strategy = record.strategy().with_defaults();
                (strategy.plan(&terms).0, Some(Selection { strategy, why: Reason::Replayed }))
            }
            Some(_) | None => config.strategy.plan(&terms),
        };
        let consumption = plan.consumption();
        let mut board = Board::new(terms, consumption == Consumption::AsReady);
        board.is_guarded = selection.is_some();
        let serves_ranks = selection.is_some() && board.terms.ranks > 1;
        board.devices.iter_mut().for_each(|device| device.serves_ranks = serves_ranks);
        board.ready_is_safe &= selection.is_none() || consumption == Consumption::InWindows;
        let mut made = Self {
            decides: selection.map_or(config.strategy, |selection| selection.strategy).name(),
            watermarks: Watermarks::new(&board),
            guard: Guard::new(selection.is_some()),
            pace: selection.map(|_| Pace::of(&board)),
            ranks: Ranks::default(),
            config,
            board,
            plan,
            selection,
        };
        made.plan.start(&mut made.board);
        Ok(made)
    }

    /// Its configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Changes how many host batches may be claimed and not consumed from now on, within 1 to
    /// [`Config::host_ahead`], the number for which there is memory. Existing claims are
    /// unaffected.
    pub fn set_host_ahead(&mut self, host_ahead: u32) {
        self.board.host_ahead = host_ahead.clamp(1, self.board.terms.host_ahead);
    }

    /// Advances the clock; time is monotonic.
    fn advance_clock(&mut self, now: Time) {
        let later = self.board.now.max(now);
        if self.board.ledger.device_claimed() > 0 {
            self.board.beside_ns += later - self.board.now;
        }
        self.board.now = later;
    }

    /// Fences off every device past its deadline.
    fn fence_stalled(&mut self) {
        while let Some(id) = self.board.next_stalled() {
            let board = &mut self.board;
            board.fence(id);
            let stalls_max = board.terms.stalls_max;
            let device = board.device_mut(id);
            device.silent = true;
            device.stalls += 1;
            if device.stalls >= stalls_max {
                board.give_up(id, DeviceLoss::Stalls);
            }
            board.refresh(id);
            self.plan.learn(&mut self.board);
        }
    }
}
