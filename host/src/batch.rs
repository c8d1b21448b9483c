//! A prepared batch, and the memory that it owns until its last user drops it.

use crate::device_link::SlotLease;
use crate::page_locks::{LockBudget, Unlocked};
use crate::ring::RingSlot;
use meetpoint_format::checksum::crc32c_of;
use meetpoint_format::column::{BatchColumns, BatchLayout, Column, ColumnBytes};
use meetpoint_format::recipe::Dtype;
use meetpoint_format::slot::HEADER_BYTES;
use meetpoint_gpu::Compute;
use meetpoint_gpu::resident::ResidentTensors;
use meetpoint_kernels::BatchId;
use meetpoint_prepare::{BatchMemory, MemoryKind, Replacement};
use meetpoint_scheduler::Source;
use meetpoint_storage::AlignedBuffer;
use std::ops::Range;
use std::sync::Arc;

/// A batch: a table of columns, and the samples that it holds.
#[derive(Debug)]
pub struct Batch {
    pub(crate) index: u32,
    pub(crate) id: BatchId,
    pub(crate) source: Source,
    pub(crate) shape: Vec<u32>,
    pub(crate) dtype: Dtype,
    pub(crate) contents: Contents,
    pub(crate) memory: Memory,
    pub(crate) table: Table,
    /// Counts the batches that the consumer holds.
    pub(crate) _kept: Arc<()>,
}

/// The columns of a batch, and their positions in its payload.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) columns: Arc<BatchColumns>,
    pub(crate) layout: BatchLayout,
}

impl Table {
    pub(crate) fn new(columns: &Arc<BatchColumns>, layout: BatchLayout) -> Self {
        Self { columns: Arc::clone(columns), layout }
    }

    /// Bytes of the payload.
    pub(crate) fn bytes(&self) -> usize {
        usize::try_from(self.layout.bytes()).expect("it lies in memory")
    }

    /// The column with an index in a payload of [`Self::bytes`] bytes.
    pub(crate) fn column<'a>(&'a self, index: usize, payload: &'a [u8]) -> ColumnBytes<'a> {
        let column = &self.columns.as_slice()[index];
        ColumnBytes::new(column, index, &self.layout, payload)
            .expect("the payload has the layout's length")
    }

    /// CRC-32C of each sample: its values in all columns, in order, each value of variable length
    /// preceded by its length and, if shapes differ, its shape. Padding is part of a value.
    pub(crate) fn sample_checksums(&self, payload: &[u8]) -> Vec<u32> {
        let columns: Vec<ColumnBytes<'_>> =
            (0..self.columns.len()).map(|index| self.column(index, payload)).collect();
        let checksum = |sample: usize| {
            let values = columns.iter().map(|column| column.value(sample).unwrap_or_default());
            let shapes = columns.iter().map(|column| column.shape_bytes(sample));
            let shapes: Vec<&[u8]> = shapes.map(Option::unwrap_or_default).collect();
            let lengths: Vec<[u8; 8]> =
                values.clone().map(|value| (value.len() as u64).to_le_bytes()).collect();
            let columns = columns.iter().zip(values).zip(&lengths).zip(shapes);
            crc32c_of(columns.flat_map(|(((column, value), length), shape)| {
                let is_variable = column.column().kind.is_variable();
                [if is_variable { &length[..] } else { &[] }, shape, value]
            }))
        };
        (0..self.layout.samples() as usize).map(checksum).collect()
    }

    /// The range of a column in the payload.
    pub(crate) fn range(&self, index: usize) -> Range<usize> {
        let extent = self.layout.extent(index);
        let start = usize::try_from(extent.offset).expect("it lies in memory");
        start..start + usize::try_from(extent.bytes).expect("it lies in memory")
    }

    /// The range of the images of all views; empty if there are none.
    fn images(&self) -> Range<usize> {
        let ranges = || self.columns.pictures().map(|index| self.range(index));
        let start = ranges().map(|range| range.start).min().unwrap_or(0);
        start..ranges().map(|range| range.end).max().unwrap_or(0)
    }
}

/// The samples of a batch.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Indices in the dataset, in batch order.
    pub(crate) samples: Vec<u64>,
    /// Their labels, if there is a column with labels.
    pub(crate) labels: Vec<Option<i32>>,
    /// CRC-32C of each sample's values, if requested.
    pub(crate) crc32c: Option<Vec<u32>>,
    /// Its damaged samples, by position.
    pub(crate) replacements: Vec<Replacement>,
}

impl Contents {
    /// The samples that determine random parameters, in the order of the tensors: the replaced
    /// sample instead of its replacement, without skipped samples.
    pub(crate) fn places(&self) -> Vec<u64> {
        let mut places = self.samples.clone();
        let mut left_out = 0;
        for replacement in &self.replacements {
            match replacement.replaced_by {
                Some(_) => {
                    places[replacement.position as usize - left_out] = replacement.damage.sample;
                }
                None => left_out += 1,
            }
        }
        places
    }

    /// Damaged samples that were skipped.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = u64> {
        let left_out =
            self.replacements.iter().filter(|replacement| replacement.replaced_by.is_none());
        left_out.map(|replacement| replacement.damage.sample)
    }
}

/// The memory that contains the payload.
#[derive(Debug)]
pub(crate) enum Memory {
    /// At the beginning of a slot of the ring.
    Ring(RingSlot),
    /// As with `Ring`, except for tensors that are on a GPU, whose bytes in the slot are
    /// unspecified.
    Divided {
        /// The slot of the ring.
        slot: RingSlot,
        /// The tensors on the GPU.
        tensors: ResidentTensors,
    },
    /// In a slot of the ring, read from a spool file, after the header.
    Fetched {
        /// The slot of the ring.
        buffer: AlignedBuffer,
        /// Where the slot begins in the buffer.
        start: usize,
    },
    /// In a slot of a spool in memory, after its header.
    Slot(SlotLease),
    /// In separate memory, because its pictures are larger than a slot of the ring.
    Own(AlignedBuffer),
}

impl Memory {
    pub(crate) fn kind(&self) -> MemoryKind {
        match self {
            Self::Ring(slot) | Self::Divided { slot, .. } => slot.kind(),
            Self::Own(own) => own.kind(),
            Self::Fetched { buffer, .. } => buffer.kind(),
            Self::Slot(_) => MemoryKind::Shared,
        }
    }

    pub(crate) fn payload(&self, bytes: usize) -> &[u8] {
        match self {
            Self::Ring(slot) | Self::Divided { slot, .. } => &slot[..bytes],
            Self::Own(own) => &own.as_slice()[..bytes],
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

    /// Page-locks the slot that contains it.
    pub(crate) fn lock_pages(
        &self,
        compute: &mut (impl Compute + ?Sized),
        budget: &mut LockBudget,
    ) -> Result<(), Unlocked> {
        match self {
            Self::Ring(slot) | Self::Divided { slot, .. } => slot.lock_pages(compute, budget),
            Self::Slot(lease) => lease.lock_pages(compute, budget),
            Self::Fetched { .. } | Self::Own(_) => Err(Unlocked::NotInSlot),
        }
    }

    fn payload_mut(&mut self, bytes: usize) -> &mut [u8] {
        match self {
            Self::Ring(slot) | Self::Divided { slot, .. } => &mut slot[..bytes],
            Self::Own(own) => &mut own.as_mut_slice()[..bytes],
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
        self.id.epoch
    }

    /// What the random parameters of operations on the batch follow from.
    pub fn id(&self) -> BatchId {
        self.id
    }

    /// The end that prepared it.
    pub fn source(&self) -> Source {
        self.source
    }

    /// The kind of memory that contains it.
    pub fn memory_kind(&self) -> MemoryKind {
        self.memory.kind()
    }

    /// The tensors that are on a GPU, which only
    /// [`LoaderConfig::delivers_to`](crate::LoaderConfig::delivers_to) allows. Their bytes in host
    /// memory are unspecified.
    pub fn resident(&self) -> Option<&ResidentTensors> {
        match &self.memory {
            Memory::Divided { tensors, .. } => Some(tensors),
            Memory::Ring(_) | Memory::Fetched { .. } | Memory::Slot(_) | Memory::Own(_) => None,
        }
    }

    fn assert_whole(&self) {
        assert!(self.resident().is_none(), "tensors of the batch are on a GPU");
    }

    /// The columns, in the order in which they were named.
    pub fn columns(&self) -> &[Column] {
        self.table.columns.as_slice()
    }

    /// The column with a name.
    ///
    /// # Panics
    ///
    /// If it has pictures and tensors of the batch are [on a GPU](Self::resident).
    pub fn column(&self, name: &str) -> Option<ColumnBytes<'_>> {
        let column = self.column_on_host(name)?;
        if column.column().source.is_picture() {
            self.assert_whole();
        }
        Some(column)
    }

    /// The column with a name. The bytes of tensors that are [on a GPU](Self::resident) are
    /// unspecified.
    pub fn column_on_host(&self, name: &str) -> Option<ColumnBytes<'_>> {
        let index = self.table.columns.position(name)?;
        Some(self.table.column(index, self.memory.payload(self.table.bytes())))
    }

    /// The lengths of the axes of a column after the sample axis, outermost first:
    /// [`meetpoint_format::column::ColumnKind::axes`], with the lengths of padded axes in this
    /// batch.
    pub fn axes(&self, name: &str) -> Option<&[u32]> {
        let index = self.table.columns.position(name)?;
        Some(self.table.layout.axes(&self.table.columns, index))
    }

    /// The positions of the columns in [`Self::payload_mut`].
    pub fn layout(&self) -> &BatchLayout {
        &self.table.layout
    }

    /// The memory of all columns, writable in place, as [`Self::bytes_mut`].
    ///
    /// # Panics
    ///
    /// If tensors of the batch are [on a GPU](Self::resident).
    pub fn payload_mut(&mut self) -> &mut [u8] {
        self.assert_whole();
        self.memory.payload_mut(self.table.bytes())
    }

    /// The axes of the images, outermost first: [samples, height, width, 3] or [samples, 3, height,
    /// width]; if the recipe has views, those of the first view, with an axis for its pictures
    /// after the sample axis unless their number is 1. Height and width are those of this batch if
    /// pictures are padded, and 0 if each picture has a different size. Skipped samples are not
    /// counted; with `on_error` set to skip, the sample axis may be 0. Defined even if batches have
    /// no column with images.
    pub fn shape(&self) -> &[u32] {
        &self.shape
    }

    /// Element type of the images.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The images: row-major, little-endian elements; those of all views one after another, with up
    /// to 63 bytes between two columns. Empty if batches have no column with images.
    ///
    /// # Panics
    ///
    /// If tensors of the batch are [on a GPU](Self::resident).
    pub fn bytes(&self) -> &[u8] {
        self.assert_whole();
        &self.memory.payload(self.table.bytes())[self.table.images()]
    }

    /// Number of bytes of the images, wherever they are.
    pub fn image_bytes(&self) -> usize {
        self.table.images().len()
    }

    /// The images, writable in place. The memory belongs to this batch until it is dropped, whether
    /// the host or a device prepared it. With `reuse`, a device then prepares the batch again for
    /// the next epoch.
    ///
    /// # Panics
    ///
    /// If tensors of the batch are [on a GPU](Self::resident).
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let images = self.table.images();
        &mut self.payload_mut()[images]
    }

    /// The samples as indices in the dataset, in batch order, including replacements of damaged
    /// samples, without skipped samples.
    pub fn samples(&self) -> &[u64] {
        &self.contents.samples
    }

    /// The damaged samples of the batch, by their positions.
    pub fn replacements(&self) -> &[Replacement] {
        &self.contents.replacements
    }

    /// The label of each sample as an index into the dataset's label names; `None` for a sample
    /// without a label. Empty if batches have no column with labels.
    pub fn labels(&self) -> &[Option<i32>] {
        &self.contents.labels
    }
}
