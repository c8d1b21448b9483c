//! Random fixed assignments of batches to devices, as a table.

use std::sync::Arc;

use meetpoint_scheduler::{BatchIndex, DeviceId, Holders, Interleave};

use super::Random;

#[derive(Debug)]
struct Table {
    holder: Vec<(DeviceId, u32)>,
    held: Vec<Vec<BatchIndex>>,
}

impl Interleave for Table {
    fn devices(&self) -> u16 {
        self.held.len() as u16
    }

    fn count(&self, device: DeviceId) -> u32 {
        self.held[usize::from(device.0)].len() as u32
    }

    fn holder(&self, batch: BatchIndex) -> (DeviceId, u32) {
        self.holder[batch.0 as usize]
    }

    fn nth(&self, device: DeviceId, n: u32) -> BatchIndex {
        self.held[usize::from(device.0)][n as usize]
    }
}

/// Each batch is held by a device chosen at random.
pub(crate) fn scattered(random: &mut Random, batches: u32, devices: usize) -> Holders {
    assign((0..batches).map(|_| random.below(devices as u64) as usize), devices)
}

/// Batches are held in turns.
pub(crate) fn by_turns(batches: u32, devices: usize) -> Holders {
    assign((0..batches as usize).map(|batch| batch % devices), devices)
}

fn assign(owners: impl Iterator<Item = usize>, devices: usize) -> Holders {
    let mut table = Table { holder: Vec::new(), held: vec![Vec::new(); devices] };
    for (batch, owner) in owners.enumerate() {
        let held = &mut table.held[owner];
        table.holder.push((DeviceId(owner as u16), held.len() as u32));
        held.push(BatchIndex(batch as u32));
    }
    Holders::Interleaved(Arc::new(table))
}
