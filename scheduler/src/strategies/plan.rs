//! The interface between an epoch and the strategy that decides it.
//!
//! A plan reads the board and answers; it changes only its own state and the change marks of the
//! parts. The epoch applies the answers within the limits of its terms.

use crate::board::Board;
use crate::ranks::Proposal;
use crate::types::{BatchIndex, DeviceId, Time};

/// A batch at its position in the order of consumption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) batch: BatchIndex,
    /// Whether it is planned to come from a device.
    pub(crate) from_device: bool,
}

/// What may be consumed next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Only this batch.
    Only(Position),
    /// Any ready batch.
    Any {
        /// Whether a host batch precedes a device batch when both are ready.
        host_first: bool,
    },
    /// The order is fixed but not yet known this far: wait.
    Unknown,
}

/// What to do when the accelerator waits only for granted batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StallAction {
    /// Continue to wait: stalls are handled elsewhere.
    Wait,
    /// Ask again at this time.
    WaitUntil(Time),
    /// Take this device's work back: the host finishes it sooner.
    TakeBack(DeviceId),
}

/// How device batches are consumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consumption {
    /// At positions that the order fixes.
    InOrder,
    /// In order, soon after they are prepared: the host prepares those that devices have not.
    InWindows,
    /// As they become ready.
    AsReady,
}

/// What a device may be granted: batches `first..end` of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) first: u32,
    pub(crate) end: u32,
    /// Whether batches are taken from the end downwards.
    pub(crate) from_back: bool,
}

impl Grant {
    pub(crate) const NOTHING: Self = Self { first: 0, end: 0, from_back: true };

    pub(crate) fn from_back((first, end): (u32, u32)) -> Self {
        Self { first, end, from_back: true }
    }

    pub(crate) fn from_front((first, end): (u32, u32)) -> Self {
        Self { first, end, from_back: false }
    }

    /// The first `count` of these batches, or all if there are fewer.
    pub(crate) fn at_most(self, count: u32) -> Self {
        let count = count.min(self.end.saturating_sub(self.first));
        if self.from_back {
            Self { first: self.end - count, ..self }
        } else {
            Self { end: self.first + count, ..self }
        }
    }

    pub(crate) fn count(self) -> u32 {
        self.end.saturating_sub(self.first)
    }
}

/// The decisions of a strategy over one epoch. Plans whose order follows from a few integers share
/// most of them: see [`super::ordered::Rule`].
pub(crate) trait Plan {
    /// How device batches are consumed.
    const CONSUMPTION: Consumption;

    /// Called before the first event.
    fn start(&mut self, _board: &mut Board) {}

    /// What may be consumed next.
    fn next(&mut self, board: &Board) -> Next;

    /// Called when the only batch that `next` allowed was consumed.
    fn consumed(&mut self, _board: &Board) {}

    /// The published batch to fetch next.
    fn next_fetch(&mut self, board: &mut Board) -> Option<BatchIndex>;

    /// The batch that the host should prepare next; `None` if no work is known. The epoch applies
    /// the limit on the host's open batches.
    fn pick_for_host(&mut self, board: &mut Board) -> Option<BatchIndex>;

    /// Whether a batch that a device holds, or may be granted, can come before `batch` in the order
    /// of consumption. The host then reserves one of its open batches in case that one fails.
    fn device_may_precede(&self, board: &Board, batch: BatchIndex) -> bool;

    /// Assigns the next batch to the host although it was reserved for a device. Returns whether
    /// the assignment changed.
    fn give_to_host(&mut self, _batch: BatchIndex) -> bool {
        false
    }

    /// Called when consumption has reached a batch that no device began in time. Returns whether
    /// the plan changed.
    fn is_late_with(&mut self, _board: &Board, _batch: BatchIndex) -> bool {
        false
    }

    /// What a device may be granted, apart from its lookahead and the spool.
    fn grant(&mut self, board: &Board, device: DeviceId) -> Grant;

    /// Called when work was granted.
    fn granted(&mut self, _board: &Board, _device: DeviceId, _grant: Grant) {}

    /// Whether the device will not be granted anything again.
    fn grants_ended(&self, board: &Board, device: DeviceId) -> bool;

    /// Whether a batch may already be published from an earlier epoch.
    fn takes_preloaded(&self, board: &Board, batch: BatchIndex) -> bool;

    /// Called when the accelerator found nothing to consume.
    fn rescue(&mut self, board: &Board) -> StallAction;

    /// Called when something was measured, claimed or lost.
    fn learn(&mut self, _board: &mut Board) {}

    /// The devices' share once it is fixed, and whether the spool limited it.
    fn split(&self) -> (Option<u32>, bool) {
        (None, false)
    }

    /// The numbers that replay the order, once it is fixed.
    fn record(&self) -> Option<Vec<u64>> {
        None
    }

    /// Adds this rank's contribution to an agreement, besides that of every plan.
    fn propose(&mut self, _board: &Board, _proposal: &mut Proposal) {}

    /// Called when all ranks have agreed.
    fn agreed(&mut self, _board: &mut Board, _combined: &Proposal) {}
}
