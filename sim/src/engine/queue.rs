//! What is to happen, in the order of virtual time; of two events at one time, first what was
//! posted first.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use meetpoint_scheduler::{BatchIndex, Generation, Time};

/// What happens. Numbers are those of the world: devices, lanes and ranks over the whole scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A part of an operation that takes a known time is done.
    Elapsed { op: u32, serial: u32 },
    /// An operation's transfer begins: its latency is over.
    Join { op: u32, serial: u32 },
    /// The next transfer of a shared resource is done, unless others came or went since.
    Shared { resource: u32, version: u32 },
    /// What a device published arrives at the host.
    Published { lane: u32, batch: BatchIndex, generation: Generation, corrupt: bool },
    /// A grant arrives at a device.
    Poke { device: u32 },
    /// A device with work says that it is alive.
    Progress { device: u32, serial: u32 },
    /// A device that said nothing for a time is there again.
    Recovered { device: u32 },
    /// A device's link breaks.
    LinkBreaks { device: u32 },
    /// All ranks have ended their step.
    StepEnds,
    /// What ranks proposed has been combined.
    Agreed,
    /// A tick that a rank's scheduler requested.
    Wake { rank: u32 },
    /// A late rank is there.
    Arrives { rank: u32 },
    /// Somebody may have been waited for too long.
    Timeout,
}

/// An event with its place in the order: time, then number of posting.
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
    /// Reversed: the heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.place.cmp(&self.place)
    }
}

/// Events to come.
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

    /// Forgets what was to come.
    pub(super) fn clear(&mut self) {
        self.heap.clear();
    }

    /// The most that was to come at one time.
    pub(super) fn waiting_max(&self) -> usize {
        self.waiting_max
    }
}
