//! The growable staging area in host memory.

use crate::{Compute, DeviceMemory, Error, HostMemory};

/// Memory of the host from which one copy uploads everything.
#[derive(Debug, Default)]
pub(super) struct Staging {
    memory: Option<HostMemory>,
    used: usize,
    allocations: u64,
}

impl Staging {
    /// Removes everything after the first `bytes` bytes.
    pub(super) fn truncate(&mut self, bytes: usize) {
        self.used = self.used.min(bytes);
    }

    /// Bytes in use.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Bytes allocated.
    pub(super) fn bytes(&self) -> usize {
        self.memory.as_ref().map_or(0, |memory| memory.len())
    }

    /// Extends the area, aligned to 16 bytes, and returns the new part with its offset. Allocates
    /// more than `limit` bytes only if the content needs more.
    pub(super) fn extend(
        &mut self,
        compute: &mut dyn Compute,
        bytes: usize,
        limit: usize,
    ) -> Result<(usize, &mut [u8]), Error> {
        let start = self.used.next_multiple_of(16);
        let needed = start + bytes;
        if self.bytes() < needed {
            let wanted = (self.bytes() / 2 * 3).max(needed / 4 * 5).min(limit).max(needed);
            // The old memory is freed first, so that both need not be page-locked.
            let old = self.memory.take().map(|memory| memory[..self.used].to_vec());
            let mut memory = compute.allocate_host(wanted)?;
            if let Some(old) = old {
                memory[..old.len()].copy_from_slice(&old);
            }
            self.memory = Some(memory);
            self.allocations += 1;
        }
        self.used = needed;
        let memory = self.memory.as_deref_mut().unwrap_or_default();
        Ok((start, &mut memory[start..needed]))
    }

    /// Frees the memory and discards its content.
    pub(super) fn release(&mut self) {
        (self.memory, self.used) = (None, 0);
    }

    /// Number of allocations so far.
    pub(super) fn allocations(&self) -> u64 {
        self.allocations
    }

    /// Appends words and returns their offset.
    pub(super) fn append(
        &mut self,
        compute: &mut dyn Compute,
        words: &[u32],
        limit: usize,
    ) -> Result<usize, Error> {
        let (start, bytes) = self.extend(compute, words.len() * 4, limit)?;
        for (to, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *to = word.to_le_bytes();
        }
        Ok(start)
    }

    /// Copies all that is in use.
    pub(super) fn upload(&self, compute: &mut dyn Compute, to: &DeviceMemory) -> Result<(), Error> {
        let memory = self.memory.as_deref().unwrap_or_default();
        compute.upload(&memory[..self.used], to, 0)
    }
}
