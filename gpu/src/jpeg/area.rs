//! Memory that only grows: the staging area of the host and buffers of the device.

use crate::{Compute, DeviceMemory, Error, HostMemory};

/// Memory of the host from which one copy uploads everything.
#[derive(Debug, Default)]
pub(super) struct Staging {
    memory: Option<HostMemory>,
    used: usize,
}

impl Staging {
    /// Forgets what lies behind some bytes.
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

    /// Extends it, aligned to 16 bytes, and returns the new part with its offset.
    pub(super) fn extend(
        &mut self,
        compute: &mut dyn Compute,
        bytes: usize,
    ) -> Result<(usize, &mut [u8]), Error> {
        let start = self.used.next_multiple_of(16);
        let needed = start + bytes;
        if self.bytes() < needed {
            let mut memory = compute.allocate_host(needed.max(self.bytes() / 2 * 3))?;
            if let Some(old) = &self.memory {
                memory[..self.used].copy_from_slice(&old[..self.used]);
            }
            self.memory = Some(memory);
        }
        self.used = needed;
        let memory = self.memory.as_deref_mut().unwrap_or_default();
        Ok((start, &mut memory[start..needed]))
    }

    /// Appends words and returns their offset.
    pub(super) fn append(
        &mut self,
        compute: &mut dyn Compute,
        words: &[u32],
    ) -> Result<usize, Error> {
        let (start, bytes) = self.extend(compute, words.len() * 4)?;
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

/// Memory of the device.
#[derive(Debug, Default)]
pub(super) struct Buffer(Option<DeviceMemory>);

impl Buffer {
    /// Bytes allocated.
    pub(super) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, DeviceMemory::bytes)
    }

    /// The memory, of at least this size. Larger memory has other content.
    pub(super) fn grown(
        &mut self,
        compute: &mut dyn Compute,
        bytes: usize,
    ) -> Result<&DeviceMemory, Error> {
        if self.0.is_none() || self.bytes() < bytes {
            let wanted = bytes.max(self.bytes() / 4 * 5).max(256);
            // The old memory first, so that both need not fit.
            self.0 = None;
            self.0 = Some(compute.allocate(wanted)?);
        }
        Ok(self.0.as_ref().expect("it was just allocated"))
    }

    /// The memory, if it was allocated.
    pub(super) fn get(&self) -> Option<&DeviceMemory> {
        self.0.as_ref()
    }
}
