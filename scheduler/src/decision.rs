//! Decisions: what the host, a device and the accelerator should do next.

use crate::ranks::Proposal;
use crate::types::{BatchIndex, Generation, Source, Time, WorkRun};

/// What host preparation should do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostDecision {
    /// Prepare this batch; it is claimed. Report with [`crate::Epoch::host_finished`].
    Prepare(BatchIndex),
    /// Nothing now; ask again after the next event.
    Idle,
    /// No more work is known for this epoch. If a device is lost, its batches become free again, so
    /// a driver that keeps its workers asks again after each event until the accelerator is done.
    Done,
}

/// What a device should do now. Ask until [`DeviceDecision::Idle`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceDecision {
    /// Append these batches to its queue under this generation; they are claimed.
    Work(WorkRun, Generation),
    /// Drop everything and continue under this generation.
    Revoke(Generation),
    /// Nothing now.
    Idle,
    /// No more work in this epoch. Returned once.
    Stop,
}

/// What the accelerator should do now.
#[expect(clippy::large_enum_variant, reason = "a decision allocates nothing")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceleratorDecision {
    /// Consume this batch; it is marked consumed.
    Consume(BatchIndex, Source),
    /// No batch that may be consumed next is ready. Ask again after the next event, and at this
    /// time at the latest (a tick is due then).
    WaitUntil(Time),
    /// Only with several ranks: send this proposal to all ranks, combine it with theirs, pass the
    /// result to [`crate::Epoch::agreed`], then ask again.
    Agree(Proposal),
    /// Every batch of the epoch was consumed.
    Done,
}
