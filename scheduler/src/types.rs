//! The vocabulary of the scheduler: indices, time, sources, results of reports.

/// Nanoseconds since an origin chosen by the driver. Monotonic.
pub type Time = u64;

/// A batch of an epoch, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchIndex(pub u32);

/// A fence number: work of an older generation is void.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u32);

/// Index of a device, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub u16);

/// The end that prepared a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// The host's CPU.
    Host,
    /// A device.
    Device(DeviceId),
}

/// Batches `first, first-1, …` (descending) or `first, first+1, …`, `count` of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkRun {
    /// The first to prepare.
    pub first: BatchIndex,
    /// Number of batches, at least 1.
    pub count: u32,
    /// Whether indices descend.
    pub descending: bool,
}

impl WorkRun {
    /// The batches, in the order in which the device prepares them.
    pub fn batches(self) -> impl Iterator<Item = BatchIndex> {
        let Self { first: BatchIndex(first), count, descending } = self;
        (0..count).map(move |n| BatchIndex(if descending { first - n } else { first + n }))
    }
}

/// The effect of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Accepted.
    Accepted,
    /// No effect; the reported batch must be dropped (its slot released).
    Void(VoidReason),
}

/// Why a report had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VoidReason {
    /// Its generation was fenced off.
    OldGeneration,
    /// The batch was already reported or is held by another source.
    NotClaimed,
    /// A batch index that is out of range.
    OutOfRange,
    /// The device was declared lost for this epoch.
    DeviceLost,
    /// It was too late, or its position is taken; only for [`crate::Epoch::preloaded`].
    NoPlace,
    /// It belongs to a different step than this rank's: ranks are out of step.
    WrongStep,
}

/// Times of one batch, in nanoseconds; 0 if not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Profile {
    /// t_c: one step on a batch that the host prepares (with no background worker: preparation and
    /// training step; with workers: the interval between steps in steady state).
    pub host_ns: u64,
    /// t_s: one batch at the device.
    pub device_ns: u64,
    /// t_g: one step on a ready device batch.
    pub ready_ns: u64,
}
