//! An estimate of the bytes on the host's memory bus. No counter is read.

use serde::Serialize;

/// Bytes across the memory bus, each crossing counted once.
///
/// A host batch: its encoded samples arrive by DMA, the decoder loads them, the tensor is stored,
/// the consumer reads it. Intermediate rows stay in the cache, because this program's pipelines
/// work in stripes; a pipeline that decodes whole pictures also stores and loads those. A
/// device batch: the slot arrives, its checksum loads it, the consumer reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct DramTraffic {
    /// From storage or the link into memory.
    pub read_bytes: u64,
    /// Loaded to be decoded or checked.
    pub decoded_bytes: u64,
    /// Tensors stored.
    pub written_bytes: u64,
    /// Tensors read by the consumer.
    pub consumed_bytes: u64,
}

impl DramTraffic {
    /// Traffic of batches that the host prepares from `encoded` bytes of samples to `tensors`
    /// bytes.
    pub fn host(encoded: u64, tensors: u64) -> Self {
        Self {
            read_bytes: encoded,
            decoded_bytes: encoded,
            written_bytes: tensors,
            consumed_bytes: tensors,
        }
    }

    /// Traffic of batches that a device prepares, of `tensors` bytes in total.
    pub fn device(tensors: u64) -> Self {
        Self {
            read_bytes: tensors,
            decoded_bytes: tensors,
            written_bytes: 0,
            consumed_bytes: tensors,
        }
    }

    /// The sum of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            read_bytes: self.read_bytes.saturating_add(other.read_bytes),
            decoded_bytes: self.decoded_bytes.saturating_add(other.decoded_bytes),
            written_bytes: self.written_bytes.saturating_add(other.written_bytes),
            consumed_bytes: self.consumed_bytes.saturating_add(other.consumed_bytes),
        }
    }

    /// All bytes on the bus.
    pub fn total_bytes(&self) -> u64 {
        [self.read_bytes, self.decoded_bytes, self.written_bytes, self.consumed_bytes]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}
