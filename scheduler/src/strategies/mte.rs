//! `mte`, moving towards each other: a fixed split; the host's part is consumed first, then the
//! device's. Gives C3: the sequence is a function of the split alone (C4 with an ascending tail).
//!
//! ```text
//! 0 … n_c-1 by the host, consumed ascending │ n_c … N-1 by the device, from N-1 downwards
//! ```
//!
//! The split is given, or n_s = N·t_c/(t_c+t_s) from a profile, or found within the epoch: both
//! ends work towards each other until enough was measured, and what each end has claimed by then
//! stays its own. If they meet before that, or the device is lost, where they stand is the split.
//!
//! Equal finish supposes that the device has its whole part ready when the host has finished, so
//! the part is at most the spool; an ascending tail could not even begin otherwise, since its first
//! batch is the last to be produced.

use crate::config::{Config, Split, Tail};
use crate::epoch::board::Board;
use crate::estimate::equal_finish;
use crate::strategies::{Next, Strategy, next_fetch_in_order};
use crate::types::{BatchIndex, DeviceId, Profile};

#[derive(Debug, Clone)]
pub(crate) struct Mte {
    tail: Tail,
    /// n_s, once fixed.
    device_part: Option<u32>,
    limited_by_spool: bool,
    fetch_cursor: u32,
}

impl Mte {
    pub(crate) fn new(config: &Config, split: Split, tail: Tail) -> Self {
        let mut plan = Self { tail, device_part: None, limited_by_spool: false, fetch_cursor: 0 };
        match (split, tail) {
            (Split::Fixed(part), Tail::Descending) => plan.device_part = Some(part),
            (Split::Fixed(part), Tail::Ascending) => plan.fix(part, config.spool_slots()),
            (Split::EqualFinish, _) => {
                let learned = &config.learned;
                let profile = Profile {
                    host_ns: learned.host_ns,
                    device_ns: learned.device_ns(0),
                    ready_ns: learned.ready_ns,
                };
                if let Some(part) = equal_finish(config.batches, &profile) {
                    plan.fix(part, config.spool_slots());
                }
            }
            (Split::Optimal, _) => unreachable!("refused by the check of the configuration"),
        }
        plan
    }

    fn fix(&mut self, part: u32, spool_slots: u32) {
        self.limited_by_spool = part > spool_slots;
        self.device_part = Some(part.min(spool_slots));
    }

    /// n_c, once fixed.
    fn host_part(&self, board: &Board) -> Option<u32> {
        self.device_part.map(|part| board.ledger.batches() - part)
    }

    /// The batch at an offset into the tail, as consumed.
    fn tail_batch(&self, board: &Board, offset: u32) -> Option<BatchIndex> {
        let batches = board.ledger.batches();
        match self.tail {
            Tail::Descending => {
                let end = self.device_part.unwrap_or(batches);
                (offset < end).then(|| BatchIndex(batches - 1 - offset))
            }
            Tail::Ascending => {
                let part = self.device_part?;
                (offset < part).then(|| BatchIndex(batches - part + offset))
            }
        }
    }

    /// The host has claimed its own part: what it may do of the tail.
    fn pick_in_tail(&self, board: &Board) -> Option<BatchIndex> {
        let ledger = &board.ledger;
        // As long as a device can be given them, untouched batches of the tail are its own.
        let untouched = ledger.untouched() > 0 && !board.any_usable();
        match self.tail {
            // Freed batches lie above all untouched ones.
            Tail::Ascending if untouched => Some(BatchIndex(ledger.lo())),
            Tail::Ascending => ledger.freed().first(),
            Tail::Descending => {
                let highest = untouched.then(|| BatchIndex(ledger.back() - 1));
                ledger.freed().last().or(highest)
            }
        }
    }
}

impl Strategy for Mte {
    fn next(&self, board: &Board) -> Next {
        let at = board.ledger.consumed();
        match self.host_part(board) {
            Some(host_part) if at >= host_part => {
                self.tail_batch(board, at - host_part).map_or(Next::Unknown, Next::Only)
            }
            Some(_) => Next::Only(BatchIndex(at)),
            // Whatever the split will be, what the host has claimed from the front is its own.
            None if at < board.ledger.lo() => Next::Only(BatchIndex(at)),
            None => Next::Unknown,
        }
    }

    fn pick_for_host(&self, board: &Board) -> Option<BatchIndex> {
        let lo = board.ledger.lo();
        let own_ends = self.host_part(board).unwrap_or(board.ledger.back());
        if lo < own_ends { Some(BatchIndex(lo)) } else { self.pick_in_tail(board) }
    }

    fn device_may_precede(&self, board: &Board, batch: BatchIndex) -> bool {
        self.host_part(board).is_some_and(|host_part| batch.0 >= host_part)
    }

    fn grant(&self, board: &Board, _device: DeviceId) -> u32 {
        let lowest = self.host_part(board).unwrap_or(0).max(board.ledger.lo());
        board.ledger.back().saturating_sub(lowest)
    }

    fn grants_ended(&self, board: &Board) -> bool {
        board.ledger.untouched() == 0
            || self.host_part(board).is_some_and(|host_part| board.ledger.back() <= host_part)
    }

    fn next_fetch(&mut self, board: &mut Board) -> Option<BatchIndex> {
        let mut cursor = self.fetch_cursor;
        let found = next_fetch_in_order(&mut cursor, board, |at| self.tail_batch(board, at));
        self.fetch_cursor = cursor;
        found
    }

    fn learn(&mut self, board: &Board) {
        if self.device_part.is_some() {
            return;
        }
        let ledger = &board.ledger;
        let device_claimed = ledger.batches() - ledger.back();
        if ledger.untouched() == 0 || board.all_lost() {
            self.device_part = Some(device_claimed);
            return;
        }
        let enough = board.config.profile_batches;
        let measured = board.steps.host().count() >= enough
            && board.devices.iter().all(|device| device.batch.count() >= enough);
        if measured && let Some(part) = equal_finish(ledger.batches(), &board.measured()) {
            self.fix(part, board.config.spool_slots());
            self.device_part = self
                .device_part
                .map(|part| part.clamp(device_claimed, ledger.batches() - ledger.lo()));
        }
    }

    fn split(&self) -> (Option<u32>, bool) {
        (self.device_part, self.limited_by_spool)
    }
}
