//! An order of consumption that follows from a few integers (C3, C4), and the progress in it.
//!
//! Three cursors walk the order: for consumption, for the host's search for work, and for fetching.
//! If a device returns a batch, or is silent or lost, the host prepares that batch at the same
//! position in the order.

use crate::board::Board;
use crate::ledger::State;
use crate::ranks::Proposal;
use crate::strategies::plan::{Grant, Next, Position};
use crate::terms::Terms;
use crate::tournament::{NONE, Tournament};
use crate::types::{BatchIndex, DeviceId, Source};

use super::order::{Cursor, Layout, Pattern};

/// With more devices than this, some device is assumed to hold an earlier batch, without checking
/// each.
const EXAMINED_MAX: usize = 8;

#[derive(Debug, Clone)]
pub(crate) struct OrderProgress {
    pub(crate) layout: Layout,
    /// Whether shares and pattern are final.
    pub(crate) fixed: bool,
    pub(crate) consume: Cursor,
    pub(crate) ahead: Cursor,
    fetch: Cursor,
    /// Batches fetched in order before the order of the parts was fixed.
    fetched_open: u32,
    /// A batch that the host prepares although it was reserved for a device.
    given: Option<BatchIndex>,
    /// For each part: the earliest position of a batch that the host has to redo.
    redo: Tournament,
}

impl OrderProgress {
    /// The start of an order whose shares are not fixed yet.
    pub(crate) fn new(terms: &Terms, pattern: Pattern) -> Self {
        let parts = terms.holders.parts();
        Self {
            layout: Layout { pattern, shares: vec![0; parts], total: 0, windows: None },
            fixed: false,
            consume: Cursor::new(parts),
            ahead: Cursor::new(parts),
            fetch: Cursor::new(parts),
            fetched_open: 0,
            given: None,
            redo: Tournament::new(parts),
        }
    }

    /// Assigns every batch that devices hold to the devices.
    pub(crate) fn share_everything(&mut self, board: &Board) {
        for (at, share) in self.layout.shares.iter_mut().enumerate() {
            *share = board.ledger.parts.part(at).count();
        }
    }

    pub(crate) fn next(&mut self, board: &Board) -> Next {
        self.consume.peek(&self.layout, &board.ledger).map_or(Next::Unknown, Next::Only)
    }

    pub(crate) fn consumed(&mut self, board: &Board) {
        // A consumed batch of the open pattern is skipped by index; see `peek`.
        if let Some(position) = self.consume.peek(&self.layout, &board.ledger) {
            self.consume.advance(&self.layout, position);
        }
    }

    /// Marks the shares as final: from now on the whole order is known.
    pub(crate) fn begin_fixed(&mut self, board: &mut Board, pattern: Pattern) {
        self.fixed = true;
        // Another batch may be next in this order; a later one must not occupy the host's limit.
        self.given = None;
        self.layout.pattern = pattern;
        self.layout.total = self.layout.shares.iter().sum();
        for cursor in [&mut self.consume, &mut self.ahead, &mut self.fetch] {
            cursor.begin(&self.layout);
            if let Pattern::Frozen(frozen) = pattern {
                frozen.start_clock(cursor);
            }
        }
        (0..board.ledger.parts.len()).for_each(|part| board.ledger.parts.notice(part));
    }

    /// Adjusts the shares to claims: devices get at least the batches that they have claimed, and
    /// at most all batches that the host has not claimed.
    pub(crate) fn clamp_shares(&mut self, board: &Board) {
        for (at, share) in self.layout.shares.iter_mut().enumerate() {
            let part = board.ledger.parts.part(at);
            let least = part.count() - part.untouched() - part.host_claimed();
            let most = part.count() - part.host_claimed();
            *share = (*share).max(least).min(most);
        }
    }

    /// The contribution of a rank with a fixed order to an agreement.
    pub(crate) fn propose_fixed(&self, proposal: &mut Proposal) {
        proposal.switch = true;
        proposal.share_known = true;
        proposal.share = self.layout.total;
    }

    /// Assigns the next batch to the host although it was reserved for a device. Returns whether
    /// the assignment changed.
    pub(crate) fn give_to_host(&mut self, batch: BatchIndex) -> bool {
        self.given.replace(batch) != Some(batch)
    }

    fn by_index(&self) -> bool {
        matches!(self.layout.pattern, Pattern::Ascending | Pattern::Windows)
    }

    /// The earliest batch of a part that the host would have to redo: key and batch.
    fn redo_of(&self, board: &Board, part: usize) -> Option<(u64, BatchIndex)> {
        let parts = &board.ledger.parts;
        let of = parts.part(part);
        let share = self.layout.shares[part];
        let floor = of.count() - share;
        let reserved = share > 0 || self.layout.windows.is_some();
        let orphaned = !board.usable(part) && reserved;
        if self.by_index() {
            let freed = of.freed_ends().map(|(lowest, _)| lowest);
            let first = if share > 0 { of.front().max(floor) } else { of.front() };
            let orphan = (orphaned && of.is_untouched(first)).then_some(first);
            let n = freed.into_iter().chain(orphan).min()?;
            let batch = parts.batch(part, n);
            return Some((batch.0.into(), batch));
        }
        if self.layout.pattern == Pattern::Open {
            return None;
        }
        let freed = of.freed_ends().map(|(_, highest)| highest);
        let (first, end) = of.highest_run(floor, of.count());
        let orphan = (orphaned && first < end).then(|| end - 1);
        let n = freed.into_iter().chain(orphan).max()?;
        let j = of.count() - 1 - n;
        Some((self.layout.due(part, j), parts.batch(part, n)))
    }

    /// Whether the host's cursor is beyond a key of a part.
    fn is_behind(&self, key: u64, part: u16) -> bool {
        if self.by_index() {
            key < u64::from(self.ahead.index())
        } else {
            self.ahead.next_due().is_none_or(|next| (key, part) < next)
        }
    }

    /// The batch that the host should prepare next. `is_too_late`: whether devices cannot finish a
    /// batch left to them in time.
    #[inline]
    pub(crate) fn pick_for_host(
        &mut self,
        board: &mut Board,
        is_too_late: impl Fn(&Self, &Board, BatchIndex) -> bool,
    ) -> Option<BatchIndex> {
        self.given = self.given.filter(|&batch| board.ledger.state(batch) == State::Free);
        if self.given.is_some() {
            return self.given;
        }
        while let Some(part) = board.ledger.parts.next_notice() {
            let key = self.redo_of(board, part).map_or(NONE, |(key, _)| key);
            self.redo.set(u16::try_from(part).expect("counted by a u16"), key);
        }
        if let Some((part, key)) = self.redo.first()
            && self.is_behind(key, part)
        {
            return self.redo_of(board, part.into()).map(|(_, batch)| batch);
        }
        while let Some(position) = self.ahead.peek(&self.layout, &board.ledger) {
            let batch = position.batch;
            if board.ledger.state(batch) == State::Free {
                let reserved = position.from_device
                    && board.ledger.entry(batch).is_none()
                    && board.usable(board.ledger.parts.locate(batch).0)
                    && !is_too_late(self, board, batch);
                if !reserved {
                    return Some(batch);
                }
            }
            if self.looks_no_further(board, position) {
                return None;
            }
            self.ahead.advance(&self.layout, position);
        }
        None
    }

    /// Whether batches after this device batch are too far ahead for the host. After its own part,
    /// the host only redoes batches. Under `auto`, devices may be abandoned at any time, so later
    /// batches must not occupy the host's limit.
    fn looks_no_further(&self, board: &Board, position: Position) -> bool {
        let far = match self.layout.pattern {
            Pattern::Split => self.ahead.passed().saturating_sub(self.consume.passed()),
            Pattern::Windows if self.layout.windows.is_some() => {
                self.ahead.index().saturating_sub(self.consume.index())
            }
            Pattern::Open | Pattern::Ascending | Pattern::Windows | Pattern::Frozen(_) => {
                return false;
            }
        };
        position.from_device
            && board.terms.background()
            && board.is_guarded
            && far >= board.host_ahead
    }

    pub(crate) fn device_may_precede(&self, board: &Board, batch: BatchIndex) -> bool {
        let host_part = board.ledger.batches() - self.layout.total;
        match self.layout.pattern {
            Pattern::Open => false,
            Pattern::Split => {
                let (part, n) = board.ledger.parts.locate(batch);
                n >= board.ledger.parts.part(part).count() - self.layout.shares[part]
            }
            Pattern::Ascending if self.layout.shares.len() == 1 => batch.0 >= host_part,
            Pattern::Windows if self.leaves_before(board, batch) => true,
            Pattern::Windows if !board.ready_is_safe || board.devices.len() > EXAMINED_MAX => {
                board.ledger.device_open() > 0 || board.ledger.parts.freed() > 0
            }
            Pattern::Windows => {
                let parts = &board.ledger.parts;
                let is_before = |part: usize| {
                    let freed = parts.part(part).freed_ends();
                    freed.is_some_and(|(lowest, _)| parts.batch(part, lowest) < batch)
                };
                board.devices.iter().any(|device| device.holds_unready_below(batch))
                    || (0..parts.len()).any(is_before)
            }
            Pattern::Ascending | Pattern::Frozen(_) => true,
        }
    }

    /// Whether ranks agreed to leave a batch before this one to devices. Once devices receive no
    /// more work, the host prepares the rest.
    fn leaves_before(&self, board: &Board, batch: BatchIndex) -> bool {
        let (consumed, parts) = (board.ledger.consumed(), &board.ledger.parts);
        match &self.layout.windows {
            None => false,
            Some(windows) if board.grants_allowed => windows.leave_any(consumed, batch.0),
            Some(_) if parts.len() > EXAMINED_MAX => parts.untouched() > 0,
            Some(_) => (0..parts.len()).any(|part| parts.any_untouched_below(part, batch)),
        }
    }

    /// The batches of a part that devices may have: its share once that is fixed, otherwise all.
    pub(crate) fn share_run(&self, board: &Board, device: DeviceId) -> (u32, u32) {
        let part = board.ledger.parts.of(device);
        let of = board.ledger.parts.part(part);
        let floor = if self.fixed { of.count() - self.layout.shares[part] } else { 0 };
        of.highest_run(floor, of.count())
    }

    /// A grant without the batch that was assigned to the host, which is next, and all below it.
    pub(crate) fn without_given(&self, board: &Board, device: DeviceId, grant: Grant) -> Grant {
        let Some(given) = self.given else { return grant };
        let (part, n) = board.ledger.parts.locate(given);
        let within = (grant.first..grant.end).contains(&n);
        match part == board.ledger.parts.of(device) && within {
            true if grant.from_back => Grant { first: n + 1, ..grant },
            true => Grant { end: n, ..grant },
            false => grant,
        }
    }

    /// Whether a device's part has nothing left for it.
    pub(crate) fn grants_ended(&self, board: &Board, device: DeviceId) -> bool {
        if self.fixed {
            let (first, end) = self.share_run(board, device);
            return first >= end;
        }
        let parts = &board.ledger.parts;
        parts.part(parts.of(device)).untouched() == 0
    }

    /// Whether a batch is the next in the order of production, so that the batches prepared before
    /// the epoch form a tail.
    pub(crate) fn is_next_from_back(&self, board: &Board, batch: BatchIndex) -> bool {
        let (part, n) = board.ledger.parts.locate(batch);
        let of = board.ledger.parts.part(part);
        let floor = if self.fixed { of.count() - self.layout.shares[part] } else { 0 };
        n >= floor && n + 1 == of.back()
    }

    /// The next published batch, strictly in the order of consumption: a batch is not fetched while
    /// an earlier one may still come from a device. So host memory always contains the batches that
    /// are consumed soonest, and the next batch always fits.
    pub(crate) fn next_fetch(&mut self, board: &Board) -> Option<BatchIndex> {
        let ledger = &board.ledger;
        loop {
            let position = match self.layout.pattern {
                Pattern::Open if ledger.parts.len() > 1 => None,
                Pattern::Open => {
                    let offset = self.fetched_open;
                    let count = ledger.batches();
                    (offset < count).then(|| Position {
                        batch: BatchIndex(count - 1 - offset),
                        from_device: true,
                    })
                }
                Pattern::Split | Pattern::Frozen(_) => self.fetch.device_position(&ledger.parts),
                Pattern::Ascending | Pattern::Windows => self.fetch.peek(&self.layout, ledger),
            }?;
            let source = ledger.entry(position.batch).map(|entry| entry.source);
            match (ledger.state(position.batch), source) {
                (State::Published, _) => return Some(position.batch),
                (State::Claimed, Some(Source::Device(_))) => return None,
                // Not assigned: a device may be granted it.
                (State::Free, None) => {
                    let host_s = self.layout.pattern == Pattern::Ascending && !position.from_device;
                    if !host_s {
                        return None;
                    }
                }
                // The host's (returned, claimed or done), being fetched, or already passed.
                _ => {}
            }
            match self.layout.pattern {
                Pattern::Open => self.fetched_open += 1,
                Pattern::Split | Pattern::Frozen(_) => self.fetch.advance_device(&self.layout),
                Pattern::Ascending | Pattern::Windows => {
                    self.fetch.advance(&self.layout, position);
                }
            }
        }
    }
}
