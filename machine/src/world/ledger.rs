//! The consumed batches. The ledger survives the host, like the state of a training that is saved
//! after every step.

use meetpoint_scheduler::Record;
use std::collections::BTreeSet;
use std::ops::Range;

/// The state of a training, and of its simulation.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The epoch that is not complete.
    pub(crate) epoch: u32,
    /// Batches of this epoch that were consumed.
    pub(crate) consumed: BTreeSet<u32>,
    /// The record of the order of its other batches.
    pub(crate) rest: Option<Record>,
    /// Number of cancelled epochs.
    pub(crate) cancels: usize,
    /// Batches consumed in all epochs, and of these, batches of devices.
    pub(crate) batches: u64,
    pub(crate) device_batches: u64,
    /// Whether the training waits for the end of all faults.
    pub(crate) awaits_health: bool,
    /// Whether all faults have ended.
    pub(crate) is_healthy: bool,
    /// Whether the training has ended.
    pub(crate) has_ended: bool,
}

impl Ledger {
    /// The consumed batches as ranges.
    pub(crate) fn ranges(&self) -> Vec<Range<u32>> {
        self.consumed.iter().map(|&batch| batch..batch + 1).collect()
    }
}
