//! When the order of `mte`, `mte-feedback` and `wrr-frozen` becomes fixed, and to what.
//!
//! The shares are given, or replayed, or follow from times known before, or are found within the
//! epoch: both ends work towards each other until enough was measured, and what each end has
//! claimed by then stays its own. If they meet before that, or the devices are lost, where they
//! stand is it.

use crate::config::{Split, Tail};
use crate::epoch::board::Board;
use crate::ranks::Proposal;
use crate::record::{Kind, Record};
use crate::strategies::order::{Frozen, Pattern};
use crate::strategies::ordered::{Mode, Ordered};
use crate::strategies::shares::{self, PartSpeed, Whole};

/// Most batches by which `wrr-frozen` lets devices run ahead.
const SLACK_MAX: u32 = 4;

/// … and the part of their share that this is at most.
const SLACK_OF_SHARE: u32 = 8;

impl Ordered {
    /// Before the first event: what is known already.
    pub(crate) fn start(&mut self, board: &mut Board) {
        match self.mode {
            Mode::HostOnly => self.begin_fixed(board, Pattern::Ascending),
            Mode::DeviceOnly => {
                self.layout.shares = counts(board);
                self.begin_fixed(board, Pattern::Ascending);
            }
            Mode::Windowed => {}
            _ => {
                if let Some(record) = board.config.replay.clone() {
                    self.replay(board, &record);
                } else if let Mode::Mte { split: Split::Fixed(total), tail } = self.mode {
                    self.measure_parts(board, tail == Tail::Ascending);
                    shares::divide(total, &self.speeds, &mut self.layout.shares);
                    let given: u32 = self.layout.shares.iter().sum();
                    self.limited_by_spool = given < total;
                    self.fix(board, 0);
                } else if board.config.ranks == 1 {
                    self.learn(board);
                }
            }
        }
    }

    fn replay(&mut self, board: &mut Board, record: &Record) {
        let numbers = record.numbers();
        let shares = match self.mode {
            Mode::Frozen => &numbers[Record::FROZEN_NUMBERS..],
            _ => numbers,
        };
        for (share, &recorded) in self.layout.shares.iter_mut().zip(shares) {
            *share = u32::try_from(recorded).expect("checked with the configuration");
        }
        let pattern = match self.mode {
            Mode::Frozen => {
                let small = |at: usize| u32::try_from(numbers[at]).expect("checked");
                Pattern::Frozen(Frozen {
                    first: small(0),
                    host_ns: numbers[1],
                    ready_ns: numbers[2],
                    device_ns: numbers[3],
                    slack: small(4),
                })
            }
            Mode::Mte { tail: Tail::Ascending, .. } => {
                // A part that the spool cannot hold could never be begun with; the order is the
                // same whoever prepares it.
                self.measure_parts(board, true);
                for (share, part) in self.layout.shares.iter_mut().zip(&self.speeds) {
                    self.limited_by_spool |= *share > part.cap;
                    *share = (*share).min(part.cap);
                }
                Pattern::Ascending
            }
            _ => Pattern::Split,
        };
        self.begin_fixed(board, pattern);
    }

    /// The record of a fixed order.
    pub(crate) fn record(&self) -> Option<Record> {
        if !self.fixed {
            return None;
        }
        let mut numbers = Vec::new();
        let kind = match (self.mode, self.layout.pattern) {
            (Mode::Mte { .. }, _) => Kind::Mte,
            (Mode::Feedback, _) => Kind::MteFeedback,
            (Mode::Frozen, Pattern::Frozen(f)) => {
                numbers.extend([
                    f.first.into(),
                    f.host_ns,
                    f.ready_ns,
                    f.device_ns,
                    f.slack.into(),
                ]);
                Kind::WrrFrozen
            }
            _ => return None,
        };
        numbers.extend(self.layout.shares.iter().map(|&share| u64::from(share)));
        Some(Record::new(kind, numbers))
    }

    /// Something was measured, claimed or lost.
    pub(crate) fn learn(&mut self, board: &mut Board) {
        if self.fixed || matches!(self.mode, Mode::Windowed) {
            return;
        }
        // What the host has claimed so far comes first.
        let first = board.ledger.consumed_by_host() + board.ledger.host_open();
        if board.ledger.untouched() == 0 || board.all_lost() {
            // Where they stand is the split.
            self.layout.shares.fill(0);
            self.fix(board, first);
            return;
        }
        if board.config.ranks == 1 && self.find_shares(board) {
            self.fix(board, first);
        }
    }

    /// Puts into the layout what the times say; `false` while too little is known.
    pub(crate) fn find_shares(&mut self, board: &Board) -> bool {
        let split = match self.mode {
            Mode::Mte { split, .. } => split,
            Mode::Frozen => Split::Optimal,
            _ => return false,
        };
        if !board.times_known(board.config.profile_batches.max(1)) || board.host_ns() == 0 {
            return false;
        }
        let ascending = matches!(self.mode, Mode::Mte { tail: Tail::Ascending, .. });
        let equal = matches!(split, Split::EqualFinish);
        if split == Split::Optimal && board.ready_ns() == 0 {
            return false;
        }
        self.measure_parts(board, ascending || equal);
        if self.speeds.iter().all(|part| part.device_ns == 0) {
            return false;
        }
        let whole = Whole {
            batches: board.ledger.batches(),
            host_ns: board.host_ns(),
            ready_ns: self.ready_ns(board),
        };
        self.limited_by_spool = if equal {
            shares::equal_finish(whole, &self.speeds, &mut self.layout.shares)
        } else {
            shares::optimal(whole, &self.speeds, &mut self.layout.shares)
        };
        true
    }

    /// Speeds and caps of all parts. `whole_in_spool`: a part's share lies in the spool at once.
    pub(super) fn measure_parts(&mut self, board: &Board, whole_in_spool: bool) {
        let shared = board.ledger.parts.shared();
        for (at, speed) in self.speeds.iter_mut().enumerate() {
            let count = board.ledger.parts.part(at).count();
            let slots = if shared {
                board.config.spool_slots()
            } else {
                board.config.devices[at].spool_slots
            };
            let device_ns = if board.usable(at) { board.part_ns(at) } else { 0 };
            let drains = !whole_in_spool && self.mode != Mode::Frozen && device_ns > 0;
            let cap = if whole_in_spool {
                slots
            } else if drains {
                while_drained(slots, device_ns, board.ready_ns())
            } else {
                count
            };
            *speed = PartSpeed { device_ns, cap: cap.min(count) };
        }
        if let Mode::Mte { split: Split::Fixed(_), tail: Tail::Descending } = self.mode {
            for (at, speed) in self.speeds.iter_mut().enumerate() {
                speed.cap = board.ledger.parts.part(at).count();
            }
        }
    }

    /// Fixes the order to the shares in the layout, as far as claims allow. `first`: steps of the
    /// host before the turns of `wrr-frozen`.
    pub(crate) fn fix(&mut self, board: &mut Board, first: u32) {
        let parts = &board.ledger.parts;
        for (at, share) in self.layout.shares.iter_mut().enumerate() {
            let part = parts.part(at);
            // What the devices have claimed, and all that the host has not.
            let least = part.count() - part.untouched() - part.host_claimed();
            let most = part.count() - part.host_claimed();
            *share = (*share).max(least).min(most);
        }
        let pattern = match self.mode {
            Mode::Mte { tail: Tail::Ascending, .. } => Pattern::Ascending,
            Mode::Frozen => self.turns(board, first),
            _ => Pattern::Split,
        };
        self.begin_fixed(board, pattern);
    }

    /// What this rank brings to a common share.
    pub(crate) fn propose(&mut self, board: &Board, proposal: &mut Proposal) {
        if self.mode == Mode::Windowed {
            return self.propose_window(board, proposal);
        }
        proposal.switch = self.would_switch || self.fixed;
        if self.fixed {
            proposal.share_known = true;
            proposal.share = self.layout.total;
        } else if self.find_shares(board) {
            proposal.share_known = true;
            proposal.share = self.layout.shares.iter().sum();
            let rate: f64 = self.rate();
            let together = if rate > 0.0 { (1.0 / rate + 0.5) as u64 } else { 1 };
            proposal.times_ns = [board.host_ns(), self.ready_ns(board), together.max(1)];
        }
    }

    /// All ranks have come to a share, or to the switch.
    pub(crate) fn agreed(&mut self, board: &mut Board, combined: &Proposal) {
        if self.mode == Mode::Windowed {
            return self.window_agreed(board, combined);
        }
        if self.fixed {
            return;
        }
        let batches = board.ledger.batches();
        let most = batches - combined.host_claimed.min(batches);
        let total = match self.mode {
            Mode::Feedback if combined.switch => most,
            Mode::Mte { .. } | Mode::Frozen if combined.share_known => {
                combined.share.max(combined.device_claimed).min(most)
            }
            _ => return,
        };
        self.measure_parts(board, false);
        for (at, speed) in self.speeds.iter_mut().enumerate() {
            speed.cap = board.ledger.parts.part(at).count();
        }
        shares::divide(total, &self.speeds, &mut self.layout.shares);
        let [host_ns, ready_ns, device_ns] = combined.times_ns;
        self.fix(board, combined.host_claimed);
        if let Pattern::Frozen(frozen) = self.layout.pattern {
            let slack = SLACK_MAX.min(total / SLACK_OF_SHARE);
            let common = Frozen { host_ns, ready_ns, device_ns, slack, ..frozen };
            self.begin_fixed(board, Pattern::Frozen(common));
        }
    }

    /// t_g as it counts for the host: between its batches, a step on a device batch costs it
    /// nothing where workers prepare meanwhile.
    fn ready_ns(&self, board: &Board) -> u64 {
        let hidden = self.mode == Mode::Frozen && board.config.background();
        let ready_ns = board.ready_ns();
        if hidden && ready_ns < board.host_ns() { 0 } else { ready_ns }
    }

    fn rate(&self) -> f64 {
        let known = self.speeds.iter().filter(|part| part.device_ns > 0);
        known.map(|part| 1.0 / part.device_ns as f64).sum()
    }

    fn turns(&self, board: &Board, first: u32) -> Pattern {
        let total: u32 = self.layout.shares.iter().sum();
        let slots = board.config.spool_slots();
        let rate = self.rate();
        Pattern::Frozen(Frozen {
            first,
            host_ns: board.host_ns().max(1),
            ready_ns: self.ready_ns(board),
            device_ns: if rate > 0.0 { (1.0 / rate + 0.5) as u64 } else { 1 }.max(1),
            slack: SLACK_MAX.min(slots / 2).min(total / SLACK_OF_SHARE),
        })
    }
}

/// Batches that a part delivers through so many slots when nothing is consumed until its last but
/// these are done: n = S + n·t_g/t_s.
fn while_drained(slots: u32, device_ns: u64, ready_ns: u64) -> u32 {
    if device_ns <= ready_ns {
        return u32::MAX;
    }
    let exact = u128::from(slots) * u128::from(device_ns) / u128::from(device_ns - ready_ns);
    u32::try_from(exact).unwrap_or(u32::MAX)
}

fn counts(board: &Board) -> Vec<u32> {
    let parts = &board.ledger.parts;
    (0..parts.len()).map(|part| parts.part(part).count()).collect()
}
