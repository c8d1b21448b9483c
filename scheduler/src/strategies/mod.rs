//! Who prepares what, and in which order batches are consumed: one file per strategy.
//!
//! A strategy reads the board and answers; it changes nothing but its own memory. The epoch applies
//! the answers within the limits of the configuration.

mod device_only;
mod host_only;
mod mte;
mod wrr;

use crate::config::{Config, Strategy as Named};
use crate::epoch::board::Board;
use crate::ledger::State;
use crate::types::{BatchIndex, DeviceId, Source, Time};

/// What may be consumed next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Only this batch.
    Only(BatchIndex),
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

/// One way to work an epoch from both ends.
pub(crate) trait Strategy {
    /// What may be consumed next.
    fn next(&self, board: &Board) -> Next;

    /// The batch that the host should prepare next, `None` when it has nothing to do as far as is
    /// known. Its limit on open batches is applied by the epoch.
    fn pick_for_host(&self, board: &Board) -> Option<BatchIndex>;

    /// Whether a batch that a device holds, or may be granted, can come before `batch` in the
    /// order of consumption. The host then keeps one place free for that one's failure.
    fn device_may_precede(&self, board: &Board, batch: BatchIndex) -> bool;

    /// How many batches more a device may be granted, its lookahead and the spool left aside.
    fn grant(&self, board: &Board, device: DeviceId) -> u32;

    /// Whether grants are taken from the back.
    fn grants_from_back(&self) -> bool {
        true
    }

    /// Whether no device will be granted anything again.
    fn grants_ended(&self, board: &Board) -> bool;

    /// The published batch to fetch next.
    fn next_fetch(&mut self, board: &mut Board) -> Option<BatchIndex>;

    /// Something was measured, claimed or lost.
    fn learn(&mut self, _board: &Board) {}

    /// The accelerator found nothing to consume.
    fn rescue(&mut self, _board: &Board) -> Rescue {
        Rescue::Wait
    }

    /// The device's share once it is fixed, and whether the spool made it smaller.
    fn split(&self) -> (Option<u32>, bool) {
        (None, false)
    }
}

/// The strategy of an epoch.
#[derive(Debug, Clone)]
pub(crate) enum Plan {
    HostOnly(host_only::HostOnly),
    DeviceOnly(device_only::DeviceOnly),
    Mte(mte::Mte),
    Wrr(wrr::Wrr),
}

impl Plan {
    pub(crate) fn new(config: &Config) -> Self {
        match config.strategy {
            Named::HostOnly => Self::HostOnly(host_only::HostOnly),
            Named::DeviceOnly => Self::DeviceOnly(device_only::DeviceOnly::default()),
            Named::Mte { split, tail } => Self::Mte(mte::Mte::new(config, split, tail)),
            Named::Wrr => Self::Wrr(wrr::Wrr::default()),
            _ => unreachable!("refused by the check of the configuration"),
        }
    }

    pub(crate) fn as_ref(&self) -> &dyn Strategy {
        match self {
            Self::HostOnly(plan) => plan,
            Self::DeviceOnly(plan) => plan,
            Self::Mte(plan) => plan,
            Self::Wrr(plan) => plan,
        }
    }

    pub(crate) fn as_mut(&mut self) -> &mut dyn Strategy {
        match self {
            Self::HostOnly(plan) => plan,
            Self::DeviceOnly(plan) => plan,
            Self::Mte(plan) => plan,
            Self::Wrr(plan) => plan,
        }
    }
}

/// The next published batch in the order of consumption, strictly: a batch is not fetched while an
/// earlier one may still come from a device. So what is in host memory is always what is consumed
/// soonest, and the next batch never lacks a place. `cursor` only rises; `batch_at` maps it to the
/// order and ends it.
fn next_fetch_in_order(
    cursor: &mut u32,
    board: &Board,
    batch_at: impl Fn(u32) -> Option<BatchIndex>,
) -> Option<BatchIndex> {
    while let Some(batch) = batch_at(*cursor) {
        if board.ledger.is_untouched(batch) {
            return None;
        }
        match (board.ledger.state(batch), board.ledger.source(batch)) {
            (State::Published, _) => return Some(batch),
            (State::Claimed, Source::Device(_)) => return None,
            // The host's (freed, claimed or done), being fetched, or behind us.
            _ => *cursor += 1,
        }
    }
    None
}
