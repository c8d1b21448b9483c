//! Windows with several ranks: how much of each window the devices of every rank prepare.
//!
//! A step is a device step only if every rank has a device batch in that position. So ranks agree
//! on the devices' share of a window before work on it starts: with the first agreement of an epoch
//! on that of window 0, and with the first within window k on that of window k+1. The smallest
//! proposal becomes the share. A rank whose devices are late prepares the rest of the window
//! itself.
//!
//! With t_c, t_s, t_g of the rank, B the time until consumption reaches the window, q unfinished
//! device batches of earlier windows, W batches in the window and n of them assigned to the
//! devices, these are finished when consumption reaches them if
//!
//! ```text
//! (q + n)·t_s  ≤  B + (W - n)·t_c
//! ```

use crate::board::Board;

/// Maximum number of open batches of a device while too little was measured.
pub(crate) const GRANT_UNMEASURED: u32 = 2;

/// Number of windows whose shares are known at a time: the consumed one and the next.
const KNOWN: usize = 2;

/// The agreed shares of the open windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AgreedWindows {
    /// W.
    pub(crate) window: u32,
    batches: u32,
    /// Shares are known for windows below this one.
    known: u32,
    /// The number of last batches of window k that are left to the devices, at index k modulo
    /// [`KNOWN`].
    shares: [u32; KNOWN],
}

impl AgreedWindows {
    /// Before the first agreement, devices may begin with a few batches of window 0.
    pub(crate) fn new(window: u32, batches: u32) -> Self {
        let window = window.max(1);
        let first = GRANT_UNMEASURED.min(window.min(batches) / 2);
        Self { window, batches, known: 0, shares: [first, 0] }
    }

    pub(crate) fn bounds(&self, window: u32) -> (u32, u32) {
        let begin = window.saturating_mul(self.window).min(self.batches);
        (begin, begin.saturating_add(self.window).min(self.batches))
    }

    fn share(&self, window: u32) -> u32 {
        let is_known = window < self.known.max(1) && window + 2 >= self.known;
        if is_known { self.shares[window as usize % KNOWN] } else { 0 }
    }

    /// First batch of a window that is left to the devices, and the end of the window.
    pub(crate) fn of_devices(&self, window: u32) -> (u32, u32) {
        let (begin, end) = self.bounds(window);
        ((end - self.share(window).min(end - begin)), end)
    }

    /// Whether a batch is left to the devices, as far as is agreed.
    pub(crate) fn leave_to_devices(&self, batch: u32) -> bool {
        let (first, end) = self.of_devices(batch / self.window);
        (first..end).contains(&batch)
    }

    /// Whether some batches in `from..to` are left to the devices.
    pub(crate) fn leave_any(&self, from: u32, to: u32) -> bool {
        (from / self.window..=to / self.window).take(KNOWN).any(|window| {
            let (first, end) = self.of_devices(window);
            first.max(from) < end.min(to)
        })
    }

    /// The window whose share is agreed on next, if it is due.
    pub(crate) fn due(&self, consumed: u32) -> Option<u32> {
        let (begin, end) = self.bounds(self.known);
        let is_time = self.known == 0 || self.known <= consumed / self.window + 1;
        (is_time && begin < end).then_some(self.known)
    }

    pub(crate) fn agree(&mut self, window: u32, share: u32) {
        let least = if window == 0 { self.shares[0] } else { 0 };
        let (begin, end) = self.bounds(window);
        self.shares[window as usize % KNOWN] = share.max(least).min(end - begin);
        self.known = window + 1;
    }

    /// The largest share of a window that the devices are expected to finish in time.
    pub(crate) fn can_prepare(&self, board: &Board, window: u32) -> u32 {
        let ledger = &board.ledger;
        let (t_c, t_g) = (board.host_ns(), board.ready_ns());
        // With workers the host prepares while device batches are consumed.
        let t_g = if board.terms.background() && t_g < t_c { 0 } else { t_g };
        let mut before_ns = 0_u64;
        for earlier in ledger.consumed() / self.window..window {
            let (first, end) = self.of_devices(earlier);
            let begin = self.bounds(earlier).0.max(ledger.consumed());
            let host_s = first.saturating_sub(begin);
            let device_s = end - first.max(begin).min(end);
            before_ns = before_ns
                .saturating_add(u64::from(host_s).saturating_mul(t_c))
                .saturating_add(u64::from(device_s).saturating_mul(t_g));
        }
        let (begin, end) = self.bounds(window);
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
            let owed = u64::from(self.owed(board, part, window));
            let left_ns = room_ns.saturating_sub(owed.saturating_mul(t_s));
            // A part holds about the same share of the window as of all batches.
            let (held, all) = (u128::from(of.count()), u128::from(ledger.batches()));
            let each_ns = (u128::from(t_s) * held / all + u128::from(t_c)).max(1);
            let slots = match ledger.parts.shared() {
                true => board.terms.spool_slots(),
                false => board.terms.devices[part].spool_slots,
            };
            // The spool holds two windows at a time.
            let fits = (u128::from(slots) * all / held / 2).max(1);
            let share = u64::try_from((u128::from(left_ns) / each_ns).min(fits)).unwrap_or(size);
            most = Some(most.map_or(share, |most: u64| most.min(share)));
        }
        u32::try_from(most.unwrap_or(0).min(size)).expect("at most a window")
    }

    /// Batches of a part in earlier windows that its devices have not finished.
    fn owed(&self, board: &Board, part: usize, window: u32) -> u32 {
        let ledger = &board.ledger;
        let mut untouched = 0;
        for earlier in ledger.consumed() / self.window..window {
            let (first, end) = self.of_devices(earlier);
            let floor = ledger.parts.below(part, first.max(ledger.consumed()).min(end));
            let end = ledger.parts.below(part, end);
            let (from, to) = ledger.parts.part(part).highest_run(floor, end);
            untouched += to.saturating_sub(from);
        }
        board.claimed_of(part) + untouched
    }
}
