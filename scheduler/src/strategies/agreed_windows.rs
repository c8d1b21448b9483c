//! `windowed` with several ranks: how much of each window the devices of every rank prepare.
//!
//! A step is a device step only where every rank has a device batch at that place. So ranks agree
//! on the devices' share of a window before it is worked on: with the first agreement of an epoch
//! on that of window 0, and with the first within window k on that of window k+1. The least that a
//! rank proposes is the share. A rank whose devices are late with it prepares the rest of the
//! window itself.
//!
//! With t_c, t_s, t_g of the rank, B the time until consumption reaches the window, q device
//! batches of earlier windows that are not done, W batches in the window and n of them the
//! devices', these are done when consumption gets there as long as
//!
//! ```text
//! (q + n)·t_s  ≤  B + (W - n)·t_c
//! ```

use crate::epoch::board::Board;
use crate::ranks::Proposal;
use crate::strategies::Grant;
use crate::strategies::ordered::Ordered;
use crate::strategies::windowed::{GRANT_UNMEASURED, Windows};
use crate::types::{BatchIndex, DeviceId};

/// Windows whose shares are known at a time: that of consumption and the next.
const KNOWN: usize = 2;

/// What ranks agreed on for the windows that are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AgreedWindows {
    window: u32,
    batches: u32,
    /// Shares of windows are known below this one.
    known: u32,
    /// Of window k at k modulo [`KNOWN`]: its last so many batches are the devices'.
    shares: [u32; KNOWN],
}

impl AgreedWindows {
    /// Before the first agreement devices may begin with a few of window 0.
    pub(crate) fn new(window: u32, batches: u32) -> Self {
        let window = window.max(1);
        let first = GRANT_UNMEASURED.min(window.min(batches) / 2);
        Self { window, batches, known: 0, shares: [first, 0] }
    }

    fn bounds(&self, window: u32) -> (u32, u32) {
        let begin = window.saturating_mul(self.window).min(self.batches);
        (begin, begin.saturating_add(self.window).min(self.batches))
    }

    fn share(&self, window: u32) -> u32 {
        let is_known = window < self.known.max(1) && window + 2 >= self.known;
        if is_known { self.shares[window as usize % KNOWN] } else { 0 }
    }

    /// First batch of a window that is the devices', and the end of the window.
    fn of_devices(&self, window: u32) -> (u32, u32) {
        let (begin, end) = self.bounds(window);
        ((end - self.share(window).min(end - begin)), end)
    }

    /// Whether a batch is the devices' as far as is agreed.
    pub(crate) fn leave_to_devices(&self, batch: u32) -> bool {
        let (first, end) = self.of_devices(batch / self.window);
        (first..end).contains(&batch)
    }

    /// Whether some of the devices' batches lie from one place to before another.
    pub(crate) fn leave_any(&self, from: u32, to: u32) -> bool {
        (from / self.window..=to / self.window).take(KNOWN).any(|window| {
            let (first, end) = self.of_devices(window);
            first.max(from) < end.min(to)
        })
    }

    /// The window that is to be agreed on next, if it is time for that.
    fn due(&self, consumed: u32) -> Option<u32> {
        let (begin, end) = self.bounds(self.known);
        let is_time = self.known == 0 || self.known <= consumed / self.window + 1;
        (is_time && begin < end).then_some(self.known)
    }

    fn agree(&mut self, window: u32, share: u32) {
        let least = if window == 0 { self.shares[0] } else { 0 };
        let (begin, end) = self.bounds(window);
        self.shares[window as usize % KNOWN] = share.max(least).min(end - begin);
        self.known = window + 1;
    }
}

impl Windows {
    /// One batch of what is agreed to be the devices': of the window of consumption, if it is
    /// expected in time, else of the next.
    pub(crate) fn grant_of_agreed(
        &self,
        board: &Board,
        id: DeviceId,
        agreed: &AgreedWindows,
    ) -> Grant {
        let parts = &board.ledger.parts;
        let part = parts.of(id);
        let of = parts.part(part);
        if of.untouched() == 0 || board.device(id).slots() >= agreed.window {
            return Grant::NOTHING;
        }
        let current = board.ledger.consumed() / agreed.window;
        for window in current..=current + 1 {
            let (first, end) = agreed.of_devices(window);
            let (floor, end) = (parts.below(part, first), parts.below(part, end));
            let (first, end) = of.highest_run(floor, end);
            if first >= end {
                continue;
            }
            let batch = parts.batch(part, end - 1).0;
            if window > current || self.in_time(board, id, window, batch) {
                return Grant { first: end - 1, end, from_back: true };
            }
        }
        Grant::NOTHING
    }
}

impl Ordered {
    /// What this rank's devices can prepare of the window that is to be agreed on next.
    pub(super) fn propose_window(&self, board: &Board, proposal: &mut Proposal) {
        let Some(agreed) = self.layout.windows else { return };
        if let Some(window) = agreed.due(board.ledger.consumed()) {
            let (begin, end) = agreed.bounds(window);
            // What the host has claimed is its own; batch 0 always is.
            let host_s = begin.max(self.ahead.index()).max(1).min(end);
            proposal.share = self.can_prepare(board, &agreed, window).min(end - host_s);
        }
    }

    /// All ranks have come to a share.
    pub(super) fn window_agreed(&mut self, board: &Board, combined: &Proposal) {
        let Some(agreed) = &mut self.layout.windows else { return };
        if let Some(window) = agreed.due(board.ledger.consumed()) {
            agreed.agree(window, combined.share);
        }
    }

    /// The most of a window that the devices are expected to have done in time.
    fn can_prepare(&self, board: &Board, agreed: &AgreedWindows, window: u32) -> u32 {
        let ledger = &board.ledger;
        let (t_c, t_g) = (board.host_ns(), board.ready_ns());
        // With workers the host prepares while device batches are consumed.
        let t_g = if board.config.background() && t_g < t_c { 0 } else { t_g };
        let mut before_ns = 0_u64;
        for earlier in ledger.consumed() / agreed.window..window {
            let (first, end) = agreed.of_devices(earlier);
            let begin = agreed.bounds(earlier).0.max(ledger.consumed());
            let host_s = first.saturating_sub(begin);
            let device_s = end - first.max(begin).min(end);
            before_ns = before_ns
                .saturating_add(u64::from(host_s).saturating_mul(t_c))
                .saturating_add(u64::from(device_s).saturating_mul(t_g));
        }
        let (begin, end) = agreed.bounds(window);
        let size = u64::from(end - begin);
        let room_ns = before_ns.saturating_add(size.saturating_mul(t_c));
        let mut most = None;
        for part in 0..ledger.parts.len() {
            let of = ledger.parts.part(part);
            if !board.usable(part) || of.count() == 0 {
                continue;
            }
            let t_s = board.part_ns(part);
            if t_c == 0 || t_s == 0 {
                let is_probing = window > 0 && ledger.device_claimed() > 0;
                return if is_probing { 0 } else { GRANT_UNMEASURED };
            }
            let owed = u64::from(self.owed(board, agreed, part, window));
            let left_ns = room_ns.saturating_sub(owed.saturating_mul(t_s));
            // A part holds so many of all batches; of the window as well, nearly.
            let (held, all) = (u128::from(of.count()), u128::from(ledger.batches()));
            let each_ns = (u128::from(t_s) * held / all + u128::from(t_c)).max(1);
            let slots = match ledger.parts.shared() {
                true => board.config.spool_slots(),
                false => board.config.devices[part].spool_slots,
            };
            // Two windows lie in the spool at a time.
            let fits = (u128::from(slots) * all / held / 2).max(1);
            let share = u64::try_from((u128::from(left_ns) / each_ns).min(fits)).unwrap_or(size);
            most = Some(most.map_or(share, |most: u64| most.min(share)));
        }
        u32::try_from(most.unwrap_or(0).min(size)).expect("at most a window")
    }

    /// Batches of a part in earlier windows that its devices still have to do.
    fn owed(&self, board: &Board, agreed: &AgreedWindows, part: usize, window: u32) -> u32 {
        let ledger = &board.ledger;
        let mut untouched = 0;
        for earlier in ledger.consumed() / agreed.window..window {
            let (first, end) = agreed.of_devices(earlier);
            let floor = ledger.parts.below(part, first.max(ledger.consumed()).min(end));
            let end = ledger.parts.below(part, end);
            let (from, to) = ledger.parts.part(part).highest_run(floor, end);
            untouched += to.saturating_sub(from);
        }
        board.claimed_of(part) + untouched
    }

    /// Whether an untouched batch that was left to devices is too late for them: they are not
    /// given any, or come to it after consumption does. The host then prepares it.
    pub(super) fn is_too_late(&self, board: &Board, batch: BatchIndex) -> bool {
        let Some(agreed) = &self.layout.windows else { return false };
        if !board.grants_allowed {
            return true;
        }
        let parts = &board.ledger.parts;
        let (window, current) = (batch.0 / agreed.window, board.ledger.consumed() / agreed.window);
        let (part, n) = parts.locate(batch);
        let (t_c, t_s) = (board.host_ns(), board.part_ns(part));
        if window > current || t_c == 0 || t_s == 0 {
            return false;
        }
        // Devices begin with the highest.
        let (_, end) = agreed.of_devices(window);
        let (_, top) = parts.part(part).highest_run(n, parts.below(part, end));
        let work = u64::from(board.claimed_of(part)) + u64::from(top.saturating_sub(n));
        work.saturating_mul(t_s) > self.windows.reached_ns(board, window, batch.0)
    }

    /// Consumption has come to a batch that was left to devices and that none has begun. Gives
    /// whether that is news.
    pub(crate) fn is_late_with(&mut self, board: &Board, batch: BatchIndex) -> bool {
        let is_late = self.layout.windows.is_some_and(|it| it.leave_to_devices(batch.0))
            && board.ledger.parts.is_untouched(batch);
        if is_late {
            // What follows may be too late as well.
            let Self { ahead, consume, .. } = self;
            ahead.go_back_to(consume);
        }
        is_late && self.give_to_host(batch)
    }
}
