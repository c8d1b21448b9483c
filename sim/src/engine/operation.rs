//! Work that takes time and shares resources: the host's preparation, a device's preparation, a
//! fetch.
//!
//! An operation is a sequence of stages. A stage consists of one part, or two concurrent ones; each
//! takes a known time, or uses a shared resource.

use meetpoint_scheduler::{BatchIndex, Generation, Time};

/// The kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// The host of a rank prepares.
    Host { rank: u32 },
    /// A device prepares and writes.
    Device { device: u32 },
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
}

/// Most stages: reading, preparing, writing.
pub(super) const STAGES: usize = 3;

#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    pub(super) work: Work,
    pub(super) batch: BatchIndex,
    pub(super) began: Time,
    /// The parts of each stage.
    pub(super) stages: [[Part; 2]; STAGES],
    pub(super) stage: u8,
    /// Unfinished parts of the stage.
    pub(super) parts_left: u8,
    /// Resource that the stage uses at the moment.
    pub(super) at: Option<u32>,
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

    /// Ends all of them.
    pub(super) fn clear(&mut self) {
        for number in 0..self.slots.len() {
            let serial = self.slots[number].0;
            let number = u32::try_from(number).expect("open work is counted in 32 bits");
            self.end(number, serial);
        }
    }
}
