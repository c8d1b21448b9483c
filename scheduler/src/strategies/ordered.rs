//! Every strategy that consumes in an order which follows from a few integers (C3, C4).
//!
//! Three cursors walk the order: what is consumed, how far the host has looked for work, what is
//! fetched. What a device gives back, or cannot be given because it is silent or gone, the host
//! prepares at the same place in the order.

use crate::config::{Config, Split, Strategy, Tail};
use crate::epoch::board::Board;
use crate::ledger::State;
use crate::strategies::agreed_windows::AgreedWindows;
use crate::strategies::order::{Cursor, Layout, Pattern, Position};
use crate::strategies::shares::PartSpeed;
use crate::strategies::windowed::Windows;
use crate::strategies::{Grant, Next, Rescue};
use crate::tournament::{NONE, Tournament};
use crate::types::{BatchIndex, DeviceId, Source};

/// With more devices than this it is not looked at each whether it holds an earlier batch.
const LOOKED_AT: usize = 8;

/// What the strategies differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    HostOnly,
    DeviceOnly,
    Mte { split: Split, tail: Tail },
    Frozen,
    Feedback,
    Windowed,
}

#[derive(Debug, Clone)]
pub(crate) struct Ordered {
    pub(super) mode: Mode,
    pub(super) layout: Layout,
    /// Whether shares and pattern will not change any more.
    pub(super) fixed: bool,
    pub(super) limited_by_spool: bool,
    pub(super) consume: Cursor,
    pub(super) ahead: Cursor,
    fetch: Cursor,
    /// Batches fetched in order before the order of the parts was fixed.
    fetched_open: u32,
    /// A batch that the host prepares though it was kept for a device.
    given: Option<BatchIndex>,
    /// For each part: the earliest place of what the host has to redo.
    redo: Tournament,
    /// For computing shares.
    pub(super) speeds: Vec<PartSpeed>,
    pub(super) windows: Windows,
    /// Host claims until the switch of `mte-feedback` is looked at again.
    pub(super) look_in: u32,
    /// Whether this rank would leave the host's part, where all ranks decide that together.
    pub(super) would_switch: bool,
}

impl Ordered {
    pub(crate) fn new(config: &Config, strategy: Strategy) -> Self {
        let parts = match &config.holders {
            crate::config::Holders::Shared => 1,
            crate::config::Holders::Interleaved(interleave) => usize::from(interleave.devices()),
        };
        let (mode, pattern) = match strategy {
            Strategy::DeviceOnly => (Mode::DeviceOnly, Pattern::Ascending),
            Strategy::Mte { split, tail: Tail::Ascending } => {
                (Mode::Mte { split, tail: Tail::Ascending }, Pattern::Windows)
            }
            Strategy::Mte { split, tail } => (Mode::Mte { split, tail }, Pattern::Open),
            Strategy::WrrFrozen => (Mode::Frozen, Pattern::Open),
            Strategy::MteFeedback => (Mode::Feedback, Pattern::Open),
            Strategy::Windowed { .. } => (Mode::Windowed, Pattern::Windows),
            _ => (Mode::HostOnly, Pattern::Ascending),
        };
        let window = match strategy {
            Strategy::Windowed { window } => window,
            _ => 1,
        };
        let windows = (mode == Mode::Windowed && config.ranks > 1)
            .then(|| AgreedWindows::new(window, config.batches));
        Self {
            mode,
            layout: Layout { pattern, shares: vec![0; parts], total: 0, windows },
            fixed: false,
            limited_by_spool: false,
            consume: Cursor::new(parts),
            ahead: Cursor::new(parts),
            fetch: Cursor::new(parts),
            fetched_open: 0,
            given: None,
            redo: Tournament::new(parts),
            speeds: vec![PartSpeed { device_ns: 0, cap: 0 }; parts],
            windows: Windows::new(window),
            look_in: 0,
            would_switch: false,
        }
    }

    pub(super) fn next(&mut self, board: &Board) -> Next {
        self.consume.peek(&self.layout, &board.ledger).map_or(Next::Unknown, Next::Only)
    }

    pub(super) fn consumed(&mut self, board: &Board) {
        // A consumed batch of the open pattern is passed by index; see `peek`.
        if let Some(position) = self.consume.peek(&self.layout, &board.ledger) {
            self.consume.advance(&self.layout, position);
        }
    }

    /// The shares are in the layout: from here on the order is known to its end.
    pub(super) fn begin_fixed(&mut self, board: &mut Board, pattern: Pattern) {
        self.fixed = true;
        // Another batch may be next in this order; the host's place is not to be taken by one that
        // comes later.
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

    /// The batch that is next is the host's to prepare, though it was kept for a device. Gives
    /// whether that is news.
    pub(crate) fn give_to_host(&mut self, batch: BatchIndex) -> bool {
        self.given.replace(batch) != Some(batch)
    }

    pub(crate) fn is_windowed(&self) -> bool {
        self.mode == Mode::Windowed
    }

    fn by_index(&self) -> bool {
        matches!(self.layout.pattern, Pattern::Ascending | Pattern::Windows)
    }

    /// What the host would have to redo of a part, earliest first: its key and the batch.
    fn redo_of(&self, board: &Board, part: usize) -> Option<(u64, BatchIndex)> {
        let parts = &board.ledger.parts;
        let of = parts.part(part);
        let share = self.layout.shares[part];
        let floor = of.count() - share;
        let kept = share > 0 || self.layout.windows.is_some();
        let orphaned = !board.usable(part) && kept;
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

    /// Whether the host has looked beyond a key of a part.
    fn is_behind(&self, key: u64, part: u16) -> bool {
        if self.by_index() {
            key < u64::from(self.ahead.index())
        } else {
            self.ahead.next_due().is_none_or(|next| (key, part) < next)
        }
    }

    pub(super) fn pick_for_host(&mut self, board: &mut Board) -> Option<BatchIndex> {
        self.feedback(board);
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
                    && !self.is_too_late(board, batch);
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

    /// Whether what comes after this device batch is too far off for the host. After the host's
    /// part it only redoes. Under `auto` devices may be left at any time; the host's places are
    /// then not to be taken by what comes last.
    fn looks_no_further(&self, board: &Board, position: Position) -> bool {
        let far = match self.layout.pattern {
            Pattern::Split => self.ahead.passed().saturating_sub(self.consume.passed()),
            Pattern::Windows if self.layout.windows.is_some() => {
                self.ahead.index().saturating_sub(self.consume.index())
            }
            _ => return false,
        };
        position.from_device
            && board.config.background()
            && board.is_auto()
            && far >= board.config.host_ahead
    }

    pub(super) fn device_may_precede(&self, board: &Board, batch: BatchIndex) -> bool {
        let host_part = board.ledger.batches() - self.layout.total;
        match (self.mode, self.layout.pattern) {
            (Mode::HostOnly, _) | (_, Pattern::Open) => false,
            (_, Pattern::Split) => {
                let (part, n) = board.ledger.parts.locate(batch);
                n >= board.ledger.parts.part(part).count() - self.layout.shares[part]
            }
            (_, Pattern::Ascending) if self.layout.shares.len() == 1 => batch.0 >= host_part,
            (_, Pattern::Windows) if self.leaves_before(board, batch) => true,
            (_, Pattern::Windows) if !board.ready_is_safe || board.devices.len() > LOOKED_AT => {
                board.ledger.device_open() > 0 || board.ledger.parts.freed() > 0
            }
            (_, Pattern::Windows) => {
                let parts = &board.ledger.parts;
                let is_before = |part: usize| {
                    let freed = parts.part(part).freed_ends();
                    freed.is_some_and(|(lowest, _)| parts.batch(part, lowest) < batch)
                };
                board.devices.iter().any(|device| device.holds_unready_below(batch))
                    || (0..parts.len()).any(is_before)
            }
            _ => true,
        }
    }

    /// Whether ranks agreed to leave something to devices that comes before a batch. Where devices
    /// are given nothing any more, the host prepares what is left of it.
    fn leaves_before(&self, board: &Board, batch: BatchIndex) -> bool {
        let (consumed, parts) = (board.ledger.consumed(), &board.ledger.parts);
        match &self.layout.windows {
            None => false,
            Some(windows) if board.grants_allowed => windows.leave_any(consumed, batch.0),
            Some(_) if parts.len() > LOOKED_AT => parts.untouched() > 0,
            Some(_) => (0..parts.len()).any(|part| parts.any_untouched_below(part, batch)),
        }
    }

    pub(super) fn grant(&mut self, board: &Board, device: DeviceId) -> Grant {
        let grant = self.grant_by_mode(board, device);
        let Some(given) = self.given else { return grant };
        // What was given to the host, which comes next, is left out with all below it.
        let (part, n) = board.ledger.parts.locate(given);
        let within = (grant.first..grant.end).contains(&n);
        match part == board.ledger.parts.of(device) && within {
            true if grant.from_back => Grant { first: n + 1, ..grant },
            true => Grant { end: n, ..grant },
            false => grant,
        }
    }

    fn grant_by_mode(&mut self, board: &Board, device: DeviceId) -> Grant {
        let part = board.ledger.parts.of(device);
        let of = board.ledger.parts.part(part);
        match self.mode {
            Mode::HostOnly => Grant::NOTHING,
            Mode::DeviceOnly => {
                let (first, end) = of.lowest_run();
                Grant { first, end, from_back: false }
            }
            Mode::Windowed => match &self.layout.windows {
                Some(agreed) => self.windows.grant_of_agreed(board, device, agreed),
                None => self.windows.grant(board, device),
            },
            _ if self.fixed => {
                let floor = of.count() - self.layout.shares[part];
                Grant::from_back(of.highest_run(floor, of.count()))
            }
            _ => Grant::from_back(of.highest_run(0, of.count())),
        }
    }

    pub(super) fn granted(&mut self, board: &Board, device: DeviceId, grant: Grant) {
        if self.mode == Mode::Windowed {
            self.windows.granted(board, device, grant);
        }
    }

    pub(super) fn grants_ended(&self, board: &Board, device: DeviceId) -> bool {
        let part = board.ledger.parts.of(device);
        let of = board.ledger.parts.part(part);
        if self.fixed && self.mode != Mode::DeviceOnly {
            let (first, end) = of.highest_run(of.count() - self.layout.shares[part], of.count());
            return first >= end;
        }
        self.mode == Mode::HostOnly || of.untouched() == 0
    }

    /// The next published batch in the order of consumption, strictly: a batch is not fetched while
    /// an earlier one may still come from a device. So what is in host memory is always what is
    /// consumed soonest, and the next batch never lacks a place.
    pub(super) fn next_fetch(&mut self, board: &Board) -> Option<BatchIndex> {
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
                _ => self.fetch.peek(&self.layout, ledger),
            }?;
            let source = ledger.entry(position.batch).map(|entry| entry.source);
            match (ledger.state(position.batch), source) {
                (State::Published, _) => return Some(position.batch),
                (State::Claimed, Some(Source::Device(_))) => return None,
                // Nobody's so far: a device may be granted it.
                (State::Free, None) => {
                    let host_s = self.layout.pattern == Pattern::Ascending && !position.from_device;
                    if !host_s {
                        return None;
                    }
                }
                // The host's (given back, claimed or done), being fetched, or behind us.
                _ => {}
            }
            match self.layout.pattern {
                Pattern::Open => self.fetched_open += 1,
                Pattern::Split | Pattern::Frozen(_) => self.fetch.advance_device(&self.layout),
                _ => self.fetch.advance(&self.layout, position),
            }
        }
    }

    pub(super) fn rescue(&mut self, board: &Board) -> Rescue {
        if self.mode == Mode::Windowed { self.rescue_in_window(board) } else { Rescue::Wait }
    }

    pub(super) fn split(&self) -> (Option<u32>, bool) {
        let shared_out = matches!(self.mode, Mode::Mte { .. } | Mode::Frozen | Mode::Feedback);
        ((self.fixed && shared_out).then_some(self.layout.total), self.limited_by_spool)
    }

    pub(super) fn takes_preloaded(&self, board: &Board, batch: BatchIndex) -> bool {
        let (part, n) = board.ledger.parts.locate(batch);
        let of = board.ledger.parts.part(part);
        match self.mode {
            Mode::HostOnly => false,
            Mode::DeviceOnly | Mode::Windowed => true,
            // In the order of production, so that what is kept is a tail.
            _ => {
                let floor = if self.fixed { of.count() - self.layout.shares[part] } else { 0 };
                n >= floor && n + 1 == of.back()
            }
        }
    }
}
