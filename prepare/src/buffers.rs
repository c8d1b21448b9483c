//! Buffers for reads, reused for every batch.

use meetpoint_storage::{AlignedBuffer, BLOCK_BYTES, Engine};

/// Minimum size of a buffer: most images fit, so that buffers have few different sizes.
const BYTES_MIN: usize = 128 << 10;

/// Unused buffers.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    free: Vec<AlignedBuffer>,
}

impl BufferPool {
    /// A buffer for a read of `bytes` bytes at any offset.
    pub(crate) fn take(&mut self, engine: &mut dyn Engine, bytes: usize) -> AlignedBuffer {
        let needed = bytes + 2 * BLOCK_BYTES;
        match self.free.iter().position(|buffer| buffer.capacity() >= needed) {
            Some(index) => self.free.swap_remove(index),
            None => {
                // A buffer that is too small would only occupy the pool.
                self.free.pop();
                engine.buffer(needed.next_power_of_two().max(BYTES_MIN))
            }
        }
    }

    /// Returns a buffer.
    pub(crate) fn give(&mut self, buffer: AlignedBuffer) {
        self.free.push(buffer);
    }
}
