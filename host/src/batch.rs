//! A prepared batch, and the memory that it owns until its last user drops it.

use crate::device_link::SlotLease;
use crate::ring::Place;
use meetpoint_format::recipe::Dtype;
use meetpoint_format::slot::HEADER_BYTES;
use meetpoint_prepare::Mended;
use meetpoint_scheduler::Source;
use meetpoint_storage::AlignedBuffer;
use std::sync::Arc;

/// A batch: samples, labels and one tensor.
#[derive(Debug)]
pub struct Batch {
    pub(crate) index: u32,
    pub(crate) epoch: u32,
    pub(crate) source: Source,
    pub(crate) shape: [u32; 4],
    pub(crate) dtype: Dtype,
    pub(crate) contents: Contents,
    pub(crate) memory: Memory,
    pub(crate) payload_bytes: usize,
    /// Counts the batches in the consumer's hands.
    pub(crate) _kept: Arc<()>,
}

/// Which samples a batch holds.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Indices in the dataset, in batch order.
    pub(crate) samples: Vec<u64>,
    /// Their labels.
    pub(crate) labels: Vec<Option<i32>>,
    /// CRC-32C of each sample's tensor, where asked for.
    pub(crate) crc32c: Option<Vec<u32>>,
    /// Its damaged samples, by position.
    pub(crate) mended: Vec<Mended>,
}

impl Contents {
    /// The samples whose places the tensors stand in and have their draws of: those that are held,
    /// but for damaged ones whose place another took.
    pub(crate) fn places(&self) -> Vec<u64> {
        let mut places = self.samples.clone();
        let mut left_out = 0;
        for mended in &self.mended {
            match mended.replaced_by {
                Some(_) => places[mended.position as usize - left_out] = mended.damage.sample,
                None => left_out += 1,
            }
        }
        places
    }

    /// Damaged samples that were left out.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = u64> {
        let left_out = self.mended.iter().filter(|mended| mended.replaced_by.is_none());
        left_out.map(|mended| mended.damage.sample)
    }
}

/// Where the tensor lies.
#[derive(Debug)]
pub(crate) enum Memory {
    /// At the beginning of a place of the ring.
    Place(Place),
    /// In a place of the ring that a spool file was read into, behind the slot's header.
    Fetched {
        /// The place.
        buffer: AlignedBuffer,
        /// Where the slot begins in it.
        start: usize,
    },
    /// In a slot of a spool in memory, behind its header.
    Slot(SlotLease),
}

impl Memory {
    pub(crate) fn payload(&self, bytes: usize) -> &[u8] {
        match self {
            Self::Place(place) => &place[..bytes],
            Self::Fetched { buffer, start } => {
                let start = start + HEADER_BYTES;
                &buffer.as_slice()[start..start + bytes]
            }
            Self::Slot(lease) => {
                let slot = lease.bytes().expect("slots that are used in place are memory");
                &slot[HEADER_BYTES..HEADER_BYTES + bytes]
            }
        }
    }

    fn payload_mut(&mut self, bytes: usize) -> &mut [u8] {
        match self {
            Self::Place(place) => &mut place[..bytes],
            Self::Fetched { buffer, start } => {
                let start = *start + HEADER_BYTES;
                &mut buffer.as_mut_slice()[start..start + bytes]
            }
            Self::Slot(lease) => {
                let slot = lease.bytes_mut().expect("slots that are used in place are memory");
                &mut slot[HEADER_BYTES..HEADER_BYTES + bytes]
            }
        }
    }
}

impl Batch {
    /// Index in the epoch.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Epoch, from 0.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Who prepared it.
    pub fn source(&self) -> Source {
        self.source
    }

    /// The axes, outermost first: [samples, height, width, 3] or [samples, 3, height, width].
    /// Samples that were left out are missing; with `on_error` skip there may be none left.
    pub fn shape(&self) -> [u32; 4] {
        self.shape
    }

    /// Element type.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The tensor: row-major, little-endian elements.
    pub fn bytes(&self) -> &[u8] {
        self.memory.payload(self.payload_bytes)
    }

    /// The tensor, writable in place. The memory belongs to this batch until it is dropped, whether
    /// the host or a device prepared it. With `reuse`, a device then prepares the batch again for
    /// the next epoch.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.payload_mut(self.payload_bytes)
    }

    /// The samples as indices in the dataset, in batch order: those that replace damaged ones
    /// among them, without those that were left out.
    pub fn samples(&self) -> &[u64] {
        &self.contents.samples
    }

    /// The damaged samples that were to be in it, by their positions.
    pub fn mended(&self) -> &[Mended] {
        &self.contents.mended
    }

    /// The label of each sample as an index into the dataset's label names; `None` where the
    /// dataset has none.
    pub fn labels(&self) -> &[Option<i32>] {
        &self.contents.labels
    }
}
