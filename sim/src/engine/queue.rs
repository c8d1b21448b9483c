//! Future events in the order of virtual time; events at the same time are in the order of posting.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use meetpoint_scheduler::{BatchIndex, Generation, Time};

/// An event. Devices, lanes and ranks are numbered over the whole scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A timed part of an operation is complete.
    Elapsed { op: u32, serial: u32 },
    /// An operation's transfer begins: its latency is over.
    Join { op: u32, serial: u32, part: u8 },
    /// Requests arrive at a store.
    Request { op: u32, serial: u32, store: u32 },
    /// The next transfer of a shared resource is complete, unless others have joined or left since.
    Shared { resource: u32, version: u32 },
    /// A published batch arrives at the host.
    Published { lane: u32, batch: BatchIndex, generation: Generation, corrupt: bool },
    /// A grant arrives at a device.
    Poke { device: u32 },
    /// A working device reports progress.
    Progress { device: u32 },
    /// A stalled device resumes.
    Recovered { device: u32 },
    /// A device's link breaks.
    LinkBreaks { device: u32 },
    /// A device fails, to be used again in a later epoch.
    DeviceFails { device: u32 },
    /// A host fails, and its training restarts.
    HostFails { host: u32 },
    /// All ranks of a training have ended their step.
    StepEnds { training: u32 },
    /// The proposals of the ranks of a training have been combined.
    Agreed { training: u32 },
    /// A tick that a rank's scheduler requested.
    Wake { rank: u32 },
    /// A late rank arrives.
    Arrives { rank: u32 },
    /// The timeout for a late rank of a training may have expired.
    Timeout { training: u32 },
}

/// An event with its key in the order: time, then number of posting.
#[derive(Debug)]
struct Entry {
    place: u128,
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// Reversed, because the heap returns the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.place.cmp(&self.place)
    }
}

/// Future events.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Entry>,
    posted: u64,
    waiting_max: usize,
}

impl Queue {
    pub(super) fn post(&mut self, at: Time, event: Event) {
        self.posted += 1;
        let place = u128::from(at) << 64 | u128::from(self.posted);
        self.heap.push(Entry { place, event });
        self.waiting_max = self.waiting_max.max(self.heap.len());
    }

    pub(super) fn pop(&mut self) -> Option<(Time, Event)> {
        self.heap.pop().map(|entry| ((entry.place >> 64) as Time, entry.event))
    }

    /// Discards all future events.
    pub(super) fn clear(&mut self) {
        self.heap.clear();
    }

    /// Maximum number of future events at any time.
    pub(super) fn waiting_max(&self) -> usize {
        self.waiting_max
    }
}
