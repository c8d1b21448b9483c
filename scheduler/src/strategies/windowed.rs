//! `windowed`: the epoch in windows of W batches, each worked from both ends and consumed in order.
//! Gives C4, with the spool bounded by W.
//!
//! ```text
//! window k                      window k+1
//! │ host ──►      ◄── device │  │               ◄── device │
//! ```
//!
//! A device is granted the highest untouched batch of the host's window if it is expected to have
//! it done before consumption gets there, else that of the next window. So it is never without work
//! while the host comes to meet it. With several ranks the place where the ends meet is agreed on
//! beforehand: see `agreed_windows`.

use crate::epoch::board::Board;
use crate::ledger::State;
use crate::strategies::ordered::Ordered;
use crate::strategies::{Grant, Rescue};
use crate::types::{DeviceId, Source};

/// Batches that a device may have under way while too little was measured.
pub(super) const GRANT_UNMEASURED: u32 = 2;

/// Windows that are open at most: that of consumption, of the host, and the next.
const OPEN: usize = 4;

#[derive(Debug, Clone)]
pub(crate) struct Windows {
    window: u32,
    /// Claims of devices in the windows that are open, by number of the window modulo [`OPEN`].
    claims: [(u32, u32); OPEN],
}

impl Windows {
    pub(crate) fn new(window: u32) -> Self {
        Self { window: window.max(1), claims: [(0, 0); OPEN] }
    }

    fn claims(&self, window: u32) -> u32 {
        let (of, count) = self.claims[window as usize % OPEN];
        if of == window { count } else { 0 }
    }

    pub(crate) fn granted(&mut self, board: &Board, device: DeviceId, grant: Grant) {
        let part = board.ledger.parts.of(device);
        let window = board.ledger.parts.batch(part, grant.first).0 / self.window;
        let entry = &mut self.claims[window as usize % OPEN];
        if entry.0 != window {
            *entry = (window, 0);
        }
        entry.1 += grant.count();
    }

    /// One batch, of the host's window or of the next.
    pub(crate) fn grant(&self, board: &Board, id: DeviceId) -> Grant {
        let part = board.ledger.parts.of(id);
        let of = board.ledger.parts.part(part);
        let device = board.device(id);
        if of.untouched() == 0 || device.slots() >= self.window {
            return Grant::NOTHING;
        }
        let host_s = board.ledger.parts.batch(part, of.front()).0 / self.window;
        let last = (board.ledger.batches() - 1) / self.window;
        for window in host_s..=(host_s + 1).min(last) {
            let begin = window * self.window;
            let floor = board.ledger.parts.below(part, begin);
            let end = board.ledger.parts.below(part, begin.saturating_add(self.window));
            let (first, end) = of.highest_run(floor, end);
            if first < end
                && self.in_time(board, id, window, board.ledger.parts.batch(part, end - 1).0)
            {
                return Grant { first: end - 1, end, from_back: true };
            }
        }
        Grant::NOTHING
    }

    /// Whether the device is expected to have a batch done when consumption gets there.
    pub(super) fn in_time(&self, board: &Board, id: DeviceId, window: u32, batch: u32) -> bool {
        let device = board.device(id);
        let (t_c, t_s) = (board.host_ns(), device.batch_ns());
        if t_c == 0 || t_s == 0 {
            let upper_half = batch % self.window >= self.window / 2;
            return device.claimed.len() < GRANT_UNMEASURED && upper_half;
        }
        let outstanding = u64::from(device.claimed.len()) + 1;
        let done_ns =
            outstanding.saturating_mul(t_s).saturating_sub(device.progress_ns(board.now, t_s));
        done_ns <= self.reached_ns(board, window, batch)
    }

    /// When consumption is expected at a batch of a window, from now.
    pub(super) fn reached_ns(&self, board: &Board, window: u32, batch: u32) -> u64 {
        let ledger = &board.ledger;
        // The devices' claims in this window and the next lie above.
        let above = self.claims(window) + self.claims(window + 1);
        let from_devices = u64::from(ledger.device_open().saturating_sub(above));
        let before = u64::from(batch.saturating_sub(ledger.consumed()));
        let from_host = before.saturating_sub(from_devices);
        from_host
            .saturating_mul(board.host_ns())
            .saturating_add(from_devices.min(before).saturating_mul(board.ready_ns()))
    }
}

impl Ordered {
    /// The next batch is at a device. It is waited for while it is expected sooner than the host
    /// could redo it, with a quarter of that as the price of throwing work away; a device that is
    /// late is given as long again as redoing would take.
    pub(super) fn rescue_in_window(&mut self, board: &Board) -> Rescue {
        let Some(position) = self.consume.peek(&self.layout, &board.ledger) else {
            return Rescue::Wait;
        };
        let Some(entry) = board.ledger.entry(position.batch) else { return Rescue::Wait };
        let (State::Claimed, Source::Device(id)) = (entry.state, entry.source) else {
            return Rescue::Wait;
        };
        let device = board.device(id);
        let (redo_ns, t_s) = (board.preparation_ns(), device.batch_ns());
        if redo_ns == 0 || t_s == 0 {
            return Rescue::Wait;
        }
        let place = u64::from(device.claimed.place(position.batch)) + 1;
        let expected = device.busy_since.saturating_add(place.saturating_mul(t_s));
        let due = expected.saturating_add(redo_ns);
        if expected.saturating_sub(board.now) > redo_ns + redo_ns / 4 || board.now >= due {
            return Rescue::TakeBack(id);
        }
        Rescue::WaitUntil(due)
    }
}
