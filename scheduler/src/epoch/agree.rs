//! Several ranks: the source of a step is decided once for all of them (C5).
//!
//! A step is a device step only if every rank has a device batch ready that may be consumed next;
//! otherwise it is a host step on all ranks. If a fixed order then requires a device batch on some
//! rank, that rank's host redoes it in place, which costs no time, because the other ranks' hosts
//! prepare theirs at the same time. A rank proposes only what waiting cannot change, so that no
//! rank waits for one that is itself waiting: it first waits for its own devices, within their time
//! limits.

use std::collections::VecDeque;

use crate::board::Board;
use crate::epoch::Epoch;
use crate::learned::CommonTimes;
use crate::ledger::State;
use crate::ranks::{Agreement, Proposal};
use crate::strategies::plan::Next;
use crate::types::{BatchIndex, DeviceId, Outcome, Source, Time, VoidReason};

/// What all ranks do in this step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepKind {
    Host,
    Device,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Ranks {
    /// The agreement for the step that is due.
    pub(crate) kind: Option<StepKind>,
    /// Number of device batches of the slowest rank at the last agreement.
    device_total: Option<u32>,
    /// The times common to all ranks at the last agreement.
    pub(crate) known: Option<CommonTimes>,
    /// Accepted batches of devices that the host redoes.
    pub(crate) discards: VecDeque<(BatchIndex, DeviceId)>,
}

impl Epoch {
    /// The proposal of this rank for the step that is due; `None` while waiting for one of its
    /// devices may change it.
    pub(crate) fn proposal(&mut self, next: Next) -> Option<Proposal> {
        let ledger = &self.board.ledger;
        let device_ready = match next {
            Next::Only(position) => match ledger.entry(position.batch) {
                Some(entry) if entry.source != Source::Host => match entry.state {
                    State::Ready => true,
                    State::Free => false,
                    State::Claimed | State::Published | State::Fetching | State::Consumed => {
                        return None;
                    }
                },
                Some(_) => false,
                None => {
                    let (part, _) = ledger.parts.locate(position.batch);
                    if position.from_device && self.board.usable(part) {
                        return None;
                    }
                    false
                }
            },
            Next::Any { .. } => {
                let ready = !self.board.ready_device.is_empty();
                let host_could = ledger.host_open() + ledger.untouched() + ledger.parts.freed() > 0;
                if !ready && !host_could {
                    return None;
                }
                ready
            }
            Next::Unknown => return None,
        };
        let step = ledger.consumed();
        let published = ledger.device_finished() + ledger.consumed_by_device();
        let mut proposal = Proposal {
            step: [step; 2],
            device_ready,
            switch: false,
            share_known: false,
            share: u32::MAX,
            device_claimed: published + ledger.device_claimed(),
            host_claimed: ledger.consumed_by_host() + ledger.host_open(),
            device_total: published,
            times_ns: [0; 3],
            waited_ns: [0; 2],
            without_devices: false,
            known: self.board.known(),
            effects: self.pace_effects(),
        };
        self.plan.propose(&self.board, &mut proposal);
        Some(proposal)
    }

    /// Applies the agreement of all ranks, after [`crate::AcceleratorDecision::Agree`].
    pub fn agreed(&mut self, now: Time, agreement: Agreement) -> Outcome {
        self.advance_clock(now);
        let combined = agreement.0;
        let step = self.board.ledger.consumed();
        if combined.step != [step; 2] || self.board.terms.ranks == 1 {
            return self.void(VoidReason::WrongStep);
        }
        self.guard_agreed(&combined);
        self.pace_agreed(&combined);
        let on_device = combined.device_ready && !combined.without_devices;
        let kind = if on_device { StepKind::Device } else { StepKind::Host };
        self.ranks.kind = Some(kind);
        self.ranks.device_total = Some(combined.device_total);
        self.ranks.known = Some(combined.known);
        self.plan.agreed(&mut self.board, &combined);
        // This fixed the order, which may select another batch for the step, so the proposals for
        // it are void on every rank.
        if combined.switch != combined.share_known {
            self.ranks.kind = None;
        }
        if self.ranks.kind == Some(StepKind::Host) {
            self.guard_surplus(&combined);
            self.make_host_step();
        }
        self.check_step();
        Outcome::Accepted
    }

    /// The step is a host step: a batch that only a device holds is taken back.
    pub(crate) fn make_host_step(&mut self) {
        match self.plan.next(&self.board) {
            Next::Only(position) => {
                let Some(entry) = self.board.ledger.entry(position.batch) else {
                    // From now on it is not granted to a device.
                    self.plan.give_to_host(position.batch);
                    return;
                };
                let Source::Device(device) = entry.source else { return };
                match entry.state {
                    State::Ready | State::Published | State::Fetching => {
                        self.discard_batch(position.batch, device, entry.state);
                    }
                    // It was granted after the proposal.
                    State::Claimed => self.board.fence(device),
                    State::Free | State::Consumed => {}
                }
            }
            Next::Any { .. } => {
                let ledger = &self.board.ledger;
                if ledger.host_open() + ledger.untouched() + ledger.parts.freed() > 0 {
                    return;
                }
                if let Some(batch) = self.board.ready_device.pop_back()
                    && let Some(entry) = self.board.ledger.entry(batch)
                    && let Source::Device(device) = entry.source
                {
                    self.discard_batch(batch, device, entry.state);
                }
            }
            Next::Unknown => {}
        }
    }

    pub(crate) fn discard_batch(&mut self, batch: BatchIndex, device: DeviceId, state: State) {
        self.board.take_back_finished(batch, device, state);
        self.ranks.discards.push_back((batch, device));
    }

    /// A batch of a device that was accepted but must be dropped (its slot and its memory released)
    /// because the host redoes it. Ask until `None` after each call of [`Epoch::agreed`] and
    /// [`Epoch::accelerator`]; with one rank it is `None` except under `auto`, which abandons
    /// devices whose batches cost time.
    pub fn discard(&mut self, now: Time) -> Option<(BatchIndex, DeviceId)> {
        self.advance_clock(now);
        self.ranks.discards.pop_front()
    }
}

impl Ranks {
    /// How many more device batches this rank may have without exceeding the slowest rank by more
    /// than its devices' lookahead.
    pub(crate) fn surplus_left(&self, board: &Board) -> u32 {
        if board.terms.ranks == 1 {
            return u32::MAX;
        }
        let ledger = &board.ledger;
        let total = ledger.device_open() + ledger.consumed_by_device();
        let slowest = self.device_total.unwrap_or(0);
        slowest.saturating_add(board.ahead_of_devices).saturating_sub(total)
    }
}
