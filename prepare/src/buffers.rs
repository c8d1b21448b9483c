//! Buffers for reads, reused for every batch.

use meetpoint_storage::{AlignedBuffer, BLOCK_BYTES, Engine};

/// Least size of a buffer: most images fit, so that few sizes are in use.
const BYTES_MIN: usize = 128 << 10;

/// Buffers that are not in use.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    free: Vec<AlignedBuffer>,
}

impl BufferPool {
    /// A buffer for reading a range of `bytes` bytes wherever it begins.
    pub(crate) fn take(&mut self, engine: &mut dyn Engine, bytes: usize) -> AlignedBuffer {
        let needed = bytes + 2 * BLOCK_BYTES;
        match self.free.iter().position(|buffer| buffer.capacity() >= needed) {
            Some(index) => self.free.swap_remove(index),
            None => {
                // One that is too small would only fill the pool.
                self.free.pop();
                engine.buffer(needed.next_power_of_two().max(BYTES_MIN))
            }
        }
    }

    /// Takes a buffer back.
    pub(crate) fn give(&mut self, buffer: AlignedBuffer) {
        self.free.push(buffer);
    }
}
