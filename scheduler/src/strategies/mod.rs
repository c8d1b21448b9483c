//! Who prepares what, and in which order batches are consumed.
//!
//! A plan reads the board and answers; it changes nothing but its own memory. The epoch applies the
//! answers within the limits of the configuration. There are two kinds: [`ordered`] consumes in an
//! order that follows from a few integers ([`order`]), with a file for what each strategy adds;
//! [`wrr`] consumes whatever is ready. [`auto`] picks one of them.

mod agreed_windows;
pub(crate) mod auto;
mod feedback;
mod fix;
pub(crate) mod order;
pub(crate) mod ordered;
mod shares;
mod windowed;
pub(crate) mod wrr;

use crate::config::{Config, Strategy};
use crate::epoch::board::Board;
use crate::types::{BatchIndex, DeviceId, Time};
use order::Position;
use ordered::Ordered;
use wrr::Wrr;

/// What may be consumed next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Only this batch.
    Only(Position),
    /// Whatever is ready.
    Any {
        /// Whether a host batch goes before a device batch when both are.
        host_first: bool,
    },
    /// The order is fixed but not known this far yet: wait.
    Unknown,
}

/// What to do when the accelerator waits for nothing but granted batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rescue {
    /// Go on waiting: stalls are seen to elsewhere.
    Wait,
    /// Ask again at this time.
    WaitUntil(Time),
    /// Take this device's work back: the host is sooner done with it.
    TakeBack(DeviceId),
}

/// What a device may be granted: batches `first..end` of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) first: u32,
    pub(crate) end: u32,
    /// From the end downwards.
    pub(crate) from_back: bool,
}

impl Grant {
    pub(crate) const NOTHING: Self = Self { first: 0, end: 0, from_back: true };

    pub(crate) fn from_back((first, end): (u32, u32)) -> Self {
        Self { first, end, from_back: true }
    }

    /// At most so many of them.
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

/// The strategy of an epoch.
#[derive(Debug, Clone)]
pub(crate) enum Plan {
    Ordered(Box<Ordered>),
    Wrr(Wrr),
}

impl Plan {
    /// For a strategy that is not `auto`, which was resolved before.
    pub(crate) fn new(config: &Config, strategy: Strategy) -> Self {
        match strategy {
            Strategy::Wrr => Self::Wrr(Wrr::new(config)),
            other => Self::Ordered(Box::new(Ordered::new(config, other))),
        }
    }

    /// What may be consumed next.
    pub(crate) fn next(&mut self, board: &Board) -> Next {
        match self {
            Self::Ordered(plan) => plan.next(board),
            Self::Wrr(plan) => plan.next(board),
        }
    }

    /// What `next` said was consumed.
    pub(crate) fn consumed(&mut self, board: &Board) {
        if let Self::Ordered(plan) = self {
            plan.consumed(board);
        }
    }

    /// The batch that the host should prepare next, `None` when it has nothing to do as far as is
    /// known. Its limit on open batches is applied by the epoch.
    pub(crate) fn pick_for_host(&mut self, board: &mut Board) -> Option<BatchIndex> {
        match self {
            Self::Ordered(plan) => plan.pick_for_host(board),
            Self::Wrr(plan) => plan.pick_for_host(board),
        }
    }

    /// Whether a batch that a device holds, or may be granted, can come before `batch` in the
    /// order of consumption. The host then keeps one place free for that one's failure.
    pub(crate) fn device_may_precede(&self, board: &Board, batch: BatchIndex) -> bool {
        match self {
            Self::Ordered(plan) => plan.device_may_precede(board, batch),
            Self::Wrr(_) => false,
        }
    }

    /// What a device may be granted, its lookahead and the spool left aside.
    pub(crate) fn grant(&mut self, board: &Board, device: DeviceId) -> Grant {
        match self {
            Self::Ordered(plan) => plan.grant(board, device),
            Self::Wrr(plan) => plan.grant(board, device),
        }
    }

    /// This was granted.
    pub(crate) fn granted(&mut self, board: &Board, device: DeviceId, grant: Grant) {
        if let Self::Ordered(plan) = self {
            plan.granted(board, device, grant);
        }
    }

    /// Whether the device will not be granted anything again.
    pub(crate) fn grants_ended(&self, board: &Board, device: DeviceId) -> bool {
        match self {
            Self::Ordered(plan) => plan.grants_ended(board, device),
            Self::Wrr(_) => board.ledger.parts.part(board.ledger.parts.of(device)).untouched() == 0,
        }
    }

    /// Whether device batches are consumed soon after they come, and not only at the end.
    pub(crate) fn mixes_sources(&self) -> bool {
        match self {
            Self::Ordered(plan) => plan.is_windowed(),
            Self::Wrr(_) => true,
        }
    }

    /// The published batch to fetch next.
    pub(crate) fn next_fetch(&mut self, board: &mut Board) -> Option<BatchIndex> {
        match self {
            Self::Ordered(plan) => plan.next_fetch(board),
            Self::Wrr(_) => board.next_published(),
        }
    }

    /// Something was measured, claimed or lost.
    pub(crate) fn learn(&mut self, board: &mut Board) {
        if let Self::Ordered(plan) = self {
            plan.learn(board);
        }
    }

    /// The accelerator found nothing to consume.
    pub(crate) fn rescue(&mut self, board: &Board) -> Rescue {
        match self {
            Self::Ordered(plan) => plan.rescue(board),
            Self::Wrr(plan) => plan.rescue(board),
        }
    }

    /// The devices' share once it is fixed, and whether the spool made it smaller.
    pub(crate) fn split(&self) -> (Option<u32>, bool) {
        match self {
            Self::Ordered(plan) => plan.split(),
            Self::Wrr(_) => (None, false),
        }
    }

    /// Whether a batch that was kept from before may lie published at the devices from the start.
    pub(crate) fn takes_preloaded(&self, board: &Board, batch: BatchIndex) -> bool {
        match self {
            Self::Ordered(plan) => plan.takes_preloaded(board, batch),
            Self::Wrr(_) => true,
        }
    }
}
