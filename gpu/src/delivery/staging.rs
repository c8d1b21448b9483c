//! Page-locked memory through which batches are copied: chunks, each of which is refilled once the
//! copy of its content is done.

use super::limits::{CHUNK_BYTES, DeliveryError, DeliveryLimits, HUNG_AFTER};
use super::streams::{Event, Streams};
use crate::{DeviceMemory, HostMemory};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Chunks, used in turn.
#[derive(Debug)]
pub(super) struct Staging<E> {
    /// In the order in which their copies were started.
    chunks: VecDeque<Chunk<E>>,
    chunks_max: usize,
    /// Time that the host waited for the copy of a chunk.
    pub(super) waited: Duration,
}

#[derive(Debug)]
struct Chunk<E> {
    memory: HostMemory,
    /// The event after the copy of its content.
    copied: E,
}

impl<E: Event> Staging<E> {
    /// With a limit, or [`DeliveryLimits::STAGING_BYTES_MIN`] if that is more.
    pub(super) fn new(limit_bytes: u64) -> Self {
        let bytes = limit_bytes.max(DeliveryLimits::STAGING_BYTES_MIN);
        let chunks_max = usize::try_from(bytes / CHUNK_BYTES as u64).unwrap_or(usize::MAX);
        Self { chunks: VecDeque::new(), chunks_max, waited: Duration::ZERO }
    }

    /// Bytes that are allocated.
    pub(super) fn bytes(&self) -> u64 {
        (self.chunks.len() * CHUNK_BYTES) as u64
    }

    /// Starts copies of all bytes to the device. The bytes are read when this returns.
    pub(super) fn copy<S: Streams<Event = E>>(
        &mut self,
        streams: &mut S,
        from: &[u8],
        to: &DeviceMemory,
        offset: usize,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), DeliveryError> {
        let mut begin = offset;
        for part in from.chunks(CHUNK_BYTES) {
            let mut memory = self.free(streams, is_stopped)?;
            let staged = &mut memory[..part.len()];
            staged.copy_from_slice(part);
            streams.upload(staged, to, begin)?;
            self.chunks.push_back(Chunk { memory, copied: streams.record()? });
            begin += part.len();
        }
        Ok(())
    }

    /// A chunk that may be filled: the oldest, or a new one while the oldest is still being copied.
    fn free<S: Streams<Event = E>>(
        &mut self,
        streams: &mut S,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<HostMemory, DeliveryError> {
        let is_busy = match self.chunks.front() {
            Some(oldest) => !oldest.copied.is_done()?,
            None => true,
        };
        if is_busy && self.chunks.len() < self.chunks_max {
            return Ok(streams.allocate_host(CHUNK_BYTES)?);
        }
        let oldest = self.chunks.pop_front().expect("there are at least two");
        match self.wait(&oldest.copied, is_stopped) {
            Ok(()) => Ok(oldest.memory),
            Err(error) => {
                // Its content is still read.
                self.chunks.push_front(oldest);
                Err(error)
            }
        }
    }

    /// Waits for a copy, which may itself wait for work of a consumer.
    pub(super) fn wait(
        &mut self,
        copied: &E,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), DeliveryError> {
        let since = Instant::now();
        let waited = copied.wait_unless(HUNG_AFTER, is_stopped);
        self.waited += since.elapsed();
        Ok(waited?)
    }
}
