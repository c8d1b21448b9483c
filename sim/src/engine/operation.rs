//! Work that takes time and shares resources: the host's preparation, a device's preparation, a
//! fetch, a transfer.
//!
//! An operation is a sequence of stages. A stage consists of concurrent parts; each takes a known
//! time, uses a shared resource, or consists of requests to a store. A transfer over several links
//! is a stage with a part for each link: every link moves all bytes, and the slowest determines the
//! end.

use meetpoint_scheduler::{BatchIndex, Generation, Time};

/// The kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// The host of a rank prepares.
    Host { rank: u32, core_ns: u64 },
    /// A device prepares and writes.
    Device { device: u32, id: u32 },
    /// A prepared batch travels from a device to a host.
    Send { device: u32, lane: u32, generation: Generation, corrupt: bool },
    /// A slot is copied into host memory.
    Fetch { lane: u32, generation: Generation },
}

/// A part of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) enum Part {
    /// Nothing.
    #[default]
    None,
    /// Nanoseconds.
    Timed(u64),
    /// An amount of work at a shared resource, after a latency.
    Shared { resource: u32, work: f64, latency_ns: u64 },
    /// Requests to a store, until it has answered each.
    Requests { store: u32, count: u32 },
}

/// Most stages: requesting, reading, preparing, writing.
const STAGES: usize = 4;

/// Most concurrent parts of a stage: cache, store, core and link of a read, and preparing.
pub(super) const PARTS: usize = 5;

/// The stages of an operation.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stages {
    parts: [[Part; PARTS]; STAGES],
    count: usize,
}

impl Stages {
    /// Adds a stage of at most [`PARTS`] concurrent parts. A stage without parts is omitted.
    pub(super) fn then(mut self, parts: impl IntoIterator<Item = Part>) -> Self {
        let parts = parts.into_iter().filter(|part| !matches!(part, Part::None | Part::Timed(0)));
        let mut used = 0;
        for (slot, part) in self.parts[self.count].iter_mut().zip(parts) {
            *slot = part;
            used += 1;
        }
        self.count += usize::from(used > 0);
        self
    }

    /// Whether they take no time.
    pub(super) fn are_none(&self) -> bool {
        self.count == 0
    }

    /// The parts of a stage; `None` after the last.
    pub(super) fn get(&self, stage: u8) -> Option<[Part; PARTS]> {
        let stage = usize::from(stage);
        (stage < self.count).then(|| self.parts[stage])
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    pub(super) work: Work,
    pub(super) batch: BatchIndex,
    pub(super) began: Time,
    pub(super) stages: Stages,
    pub(super) stage: u8,
    /// Unfinished parts of the stage.
    pub(super) parts_left: u8,
    /// Resources that the stage uses at the moment, by part.
    pub(super) at: [Option<u32>; PARTS],
    /// Requests that the store has not accepted yet.
    pub(super) requests_left: u32,
    /// How often it has rejected some of them.
    pub(super) rejections: u32,
}

/// Operations in progress, by number; a number is reused with another serial.
#[derive(Debug, Default)]
pub(super) struct Operations {
    slots: Vec<(u32, Option<Operation>)>,
    free: Vec<u32>,
}

impl Operations {
    pub(super) fn begin(&mut self, operation: Operation) -> (u32, u32) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            u32::try_from(self.slots.len() - 1).expect("open work is counted in 32 bits")
        });
        let slot = &mut self.slots[number as usize];
        slot.1 = Some(operation);
        (number, slot.0)
    }

    pub(super) fn get_mut(&mut self, number: u32, serial: u32) -> Option<&mut Operation> {
        let slot = self.slots.get_mut(number as usize)?;
        if slot.0 == serial { slot.1.as_mut() } else { None }
    }

    pub(super) fn is_live(&self, number: u32, serial: u32) -> bool {
        self.slots.get(number as usize).is_some_and(|slot| slot.0 == serial && slot.1.is_some())
    }

    pub(super) fn end(&mut self, number: u32, serial: u32) -> Option<Operation> {
        let slot = self.slots.get_mut(number as usize).filter(|slot| slot.0 == serial)?;
        let ended = slot.1.take()?;
        slot.0 = slot.0.wrapping_add(1);
        self.free.push(number);
        Some(ended)
    }

    /// Those in progress.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Operation> {
        self.slots.iter().filter_map(|slot| slot.1.as_ref())
    }

    /// Ends all of them.
    pub(super) fn clear(&mut self) {
        for number in 0..self.slots.len() {
            let serial = self.slots[number].0;
            let number = u32::try_from(number).expect("open work is counted in 32 bits");
            self.end(number, serial);
        }
    }
}
