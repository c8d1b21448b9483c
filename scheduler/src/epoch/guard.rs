//! The guard of `auto`: waiting for devices is allowed only out of a budget.
//!
//! The budget is a small part of what the host alone would take, and what device batches have saved
//! so far. A device that is waited for beyond it gets no more work in the epoch; what it had not
//! published the host redoes at its place in the order. So the epoch is longer than the host alone
//! by no more than the allowance and a constant number of batches, whatever the devices do.

use crate::epoch::Epoch;
use crate::epoch::board::Board;
use crate::epoch::device::Lost;
use crate::strategies::Next;
use crate::types::{DeviceId, Source, Time};

/// The host's time over this is the allowance.
const ALLOWANCE_PARTS: u64 = 400;

#[derive(Debug, Clone, Default)]
pub(crate) struct Guard {
    on: bool,
    /// What device batches took less than host batches would have, in all.
    saved_ns: i128,
    /// Waited for devices, and lost by redoing their work.
    spent_ns: i128,
    /// The accelerator waits for a device since then.
    waiting_since: Option<Time>,
}

impl Guard {
    pub(crate) fn new(on: bool) -> Self {
        Self { on, ..Self::default() }
    }

    /// A step on a device batch took so long.
    pub(crate) fn step_on_device(&mut self, board: &Board, step_ns: u64) {
        let host_ns = board.host_ns();
        if self.on && host_ns > 0 {
            self.saved_ns += i128::from(host_ns) - i128::from(step_ns);
        }
    }

    /// What may still be waited.
    fn left_ns(&self, board: &Board) -> i128 {
        let alone = u128::from(board.ledger.batches()) * u128::from(board.host_ns());
        let allowance = i128::try_from(alone / u128::from(ALLOWANCE_PARTS)).unwrap_or(i128::MAX);
        allowance + self.saved_ns - self.spent_ns
    }

    /// Whether devices may be given work.
    pub(crate) fn allows_grants(&self, board: &Board) -> bool {
        !self.on || self.left_ns(board) >= 0
    }

    /// The accelerator does not wait for a device any more.
    pub(crate) fn waits_no_more(&mut self, now: Time) {
        if let Some(since) = self.waiting_since.take() {
            self.spent_ns += i128::from(now.saturating_sub(since));
        }
    }

    /// The accelerator waits for a device: until when it may.
    fn waits(&mut self, board: &Board) -> Time {
        let since = *self.waiting_since.get_or_insert(board.now);
        let left = u64::try_from(self.left_ns(board).max(0)).unwrap_or(u64::MAX);
        since.saturating_add(left)
    }

    /// A device's work was taken back: with workers, the host's first batch after it comes a
    /// preparation later.
    pub(crate) fn redoes(&mut self, board: &Board) {
        if board.config.background() {
            self.spent_ns += i128::from(board.preparation_ns());
        }
    }
}

impl Epoch {
    /// Nothing can be consumed: sees whether a device is the reason, and for how long it may be.
    /// Gives the time at which to look again.
    pub(crate) fn guard_waiting(&mut self, next: Next) -> Option<Time> {
        let Some(device) = self.waited_for(next) else {
            self.guard.waits_no_more(self.board.now);
            return None;
        };
        self.board.steps.waits_for_device();
        if !self.guard.on {
            return None;
        }
        let until = self.guard.waits(&self.board);
        if self.board.now < until {
            return Some(until);
        }
        self.guard.waits_no_more(self.board.now);
        self.guard.redoes(&self.board);
        self.board.fence(device);
        self.board.give_up(device, Lost::Slow);
        self.plan.learn(&mut self.board);
        None
    }

    /// The device that holds up the accelerator, if one does.
    fn waited_for(&self, next: Next) -> Option<DeviceId> {
        let ledger = &self.board.ledger;
        match next {
            Next::Only(position) => match ledger.entry(position.batch) {
                Some(entry) => match entry.source {
                    Source::Device(device) => {
                        let claimed = self.board.device(device).claimed.contains(position.batch);
                        claimed.then_some(device)
                    }
                    Source::Host => None,
                },
                // Kept for a device that may still be granted it.
                None if position.from_device && ledger.parts.is_untouched(position.batch) => {
                    let (part, _) = ledger.parts.locate(position.batch);
                    let usable = |at: &usize| self.board.devices[*at].usable();
                    let found = if ledger.parts.shared() {
                        (0..self.board.devices.len()).find(usable)
                    } else {
                        Some(part).filter(usable)
                    };
                    found.map(|at| DeviceId(u16::try_from(at).expect("counted by a u16")))
                }
                None => None,
            },
            Next::Any { .. } => {
                let claimed = ledger.device_claimed();
                let only_granted = claimed > 0 && ledger.consumed() + claimed == ledger.batches();
                let latest = self.board.devices.iter().enumerate();
                let holding = latest.filter(|(_, device)| !device.claimed.is_empty());
                let found = holding.max_by_key(|(_, device)| device.expected_end());
                let (at, _) = found.filter(|_| only_granted)?;
                Some(DeviceId(u16::try_from(at).expect("counted by a u16")))
            }
            Next::Unknown => None,
        }
    }
}
