//! A prepared batch in the spool: a 4 KiB header with a table of columns, and the payload.
//!
//! The header is written last, in one write, so a slot is visible as a whole or not at all; a
//! header whose checksum is wrong is ignored. Little-endian throughout; the layout is in
//! docs/formats.md.

mod error;

pub use error::{ColumnField, SlotError, SlotField};

use crate::checksum::crc32c;
use crate::column::{
    AXES_MAX, BatchColumns, BatchLayout, COLUMNS_MAX, Column, ColumnBytes, Extent,
};
use crate::recipe::RecipeHash;
use std::fmt::Display;

/// Bytes of a header; the payload starts here.
pub const HEADER_BYTES: usize = 4096;

/// Version of the layout; another one is refused.
pub const VERSION: u32 = 3;

/// "MEETSLOT" as a little-endian number.
const MAGIC: u64 = u64::from_le_bytes(*b"MEETSLOT");

// The offset of each field. Bytes outside of fields are zero. The checksum is in the last of the
// header's 512-byte sectors, so it detects a torn write at any sector.
const MAGIC_AT: usize = 0;
const VERSION_AT: usize = 8;
const COLUMNS_AT: usize = 12;
const EPOCH_AT: usize = 16;
const BATCH_AT: usize = 20;
const GENERATION_AT: usize = 24;
const SAMPLES_AT: usize = 28;
const SEED_AT: usize = 32;
const PAYLOAD_BYTES_AT: usize = 40;
const RECIPE_AT: usize = 48;
const RESERVED_AT: usize = 80;
const TABLE_AT: usize = 128;
const HEADER_CRC32C_AT: usize = HEADER_BYTES - 4;

/// Bytes of an entry of the table of columns.
const ENTRY_BYTES: usize = 64;

// The offset of each field of an entry.
const NAME_CRC32C_AT: usize = 0;
const KIND_AT: usize = 4;
const ELEMENT_AT: usize = 6;
const AXES_COUNT_AT: usize = 8;
const COLUMN_CRC32C_AT: usize = 12;
const OFFSET_AT: usize = 16;
const BYTES_AT: usize = 24;
const ROWS_AT: usize = 32;
const AXES_AT: usize = 40;

const _: () = assert!(TABLE_AT + COLUMNS_MAX * ENTRY_BYTES <= HEADER_CRC32C_AT);
const _: () = assert!(AXES_AT + 4 * AXES_MAX == ENTRY_BYTES);

/// An entry of the table of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlotColumn {
    /// CRC-32C of the name.
    pub name_crc32c: u32,
    /// Kind, as [`crate::column::ColumnKind::code`] numbers them.
    pub kind: u16,
    /// Element type, as [`crate::column::ElementType::code`] numbers them.
    pub element: u16,
    /// Number of axes after the sample axis.
    pub axes_count: u32,
    /// Their lengths, outermost first; zero after the last, and for an axis whose length differs
    /// between samples.
    pub axes: [u32; AXES_MAX],
    /// The position of the column in the payload.
    pub extent: Extent,
    /// CRC-32C of the column's bytes.
    pub crc32c: u32,
}

impl SlotColumn {
    /// The entry of a column.
    pub fn new(column: &Column, index: usize, layout: &BatchLayout, crc32c: u32) -> Self {
        let axes = column.kind.axes();
        Self {
            name_crc32c: crate::checksum::crc32c(column.name.as_bytes()),
            kind: column.kind.code(),
            element: column.kind.element().code(),
            axes_count: u32::try_from(axes.len()).expect("a sample has at most AXES_MAX axes"),
            axes: *layout.all_axes(index),
            extent: layout.extent(index),
            crc32c,
        }
    }
}

/// The contents of a slot's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotHeader {
    /// Epoch, from 0.
    pub epoch: u32,
    /// Batch in the epoch.
    pub batch: u32,
    /// Fence number under which it was prepared.
    pub generation: u32,
    /// Samples in the batch.
    pub samples: u32,
    /// Seed of the job.
    pub seed: u64,
    /// The recipe that prepared it.
    pub recipe: RecipeHash,
    /// Bytes of the payload.
    pub payload_bytes: u64,
    /// The columns, in the order in which the job names them; at most
    /// [`COLUMNS_MAX`].
    pub columns: Vec<SlotColumn>,
}

impl SlotHeader {
    /// The entries of the table for a written payload.
    ///
    /// Panics if the payload is shorter than the layout.
    pub fn table(columns: &BatchColumns, layout: &BatchLayout, payload: &[u8]) -> Vec<SlotColumn> {
        let entry = |(index, column): (usize, &Column)| {
            let extent = layout.extent(index);
            let bytes = bytes_of(&extent, payload).expect("the payload has the layout's length");
            SlotColumn::new(column, index, layout, crc32c(bytes))
        };
        columns.as_slice().iter().enumerate().map(entry).collect()
    }

    /// The header's bytes.
    ///
    /// Panics if there are more than [`COLUMNS_MAX`] columns.
    pub fn encode(&self) -> Box<[u8; HEADER_BYTES]> {
        let mut bytes = Box::new([0; HEADER_BYTES]);
        let mut put = |at: usize, field: &[u8]| {
            bytes[at..at + field.len()].copy_from_slice(field);
        };
        assert!(self.columns.len() <= COLUMNS_MAX, "a batch has at most {COLUMNS_MAX} columns");
        let columns = u32::try_from(self.columns.len()).expect("the number was checked");
        put(MAGIC_AT, &MAGIC.to_le_bytes());
        put(VERSION_AT, &VERSION.to_le_bytes());
        put(COLUMNS_AT, &columns.to_le_bytes());
        put(EPOCH_AT, &self.epoch.to_le_bytes());
        put(BATCH_AT, &self.batch.to_le_bytes());
        put(GENERATION_AT, &self.generation.to_le_bytes());
        put(SAMPLES_AT, &self.samples.to_le_bytes());
        put(SEED_AT, &self.seed.to_le_bytes());
        put(PAYLOAD_BYTES_AT, &self.payload_bytes.to_le_bytes());
        put(RECIPE_AT, &self.recipe.0);
        for (index, column) in self.columns.iter().enumerate() {
            let entry = TABLE_AT + index * ENTRY_BYTES;
            put(entry + NAME_CRC32C_AT, &column.name_crc32c.to_le_bytes());
            put(entry + KIND_AT, &column.kind.to_le_bytes());
            put(entry + ELEMENT_AT, &column.element.to_le_bytes());
            put(entry + AXES_COUNT_AT, &column.axes_count.to_le_bytes());
            put(entry + COLUMN_CRC32C_AT, &column.crc32c.to_le_bytes());
            put(entry + OFFSET_AT, &column.extent.offset.to_le_bytes());
            put(entry + BYTES_AT, &column.extent.bytes.to_le_bytes());
            put(entry + ROWS_AT, &column.extent.rows.to_le_bytes());
            for (axis, length) in column.axes.iter().enumerate() {
                put(entry + AXES_AT + 4 * axis, &length.to_le_bytes());
            }
        }
        let checksum = crc32c(&bytes[..HEADER_CRC32C_AT]);
        bytes[HEADER_CRC32C_AT..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Parses a header and checks magic, version and its own checksum. Bytes after the first
    /// [`HEADER_BYTES`] are not read.
    pub fn decode(bytes: &[u8]) -> Result<Self, SlotError> {
        let bytes: &[u8; HEADER_BYTES] =
            bytes.first_chunk().ok_or(SlotError::Short { got: bytes.len() })?;
        let magic = read_u64(bytes, MAGIC_AT);
        if magic != MAGIC {
            return Err(SlotError::Magic { got: magic });
        }
        let version = read_u32(bytes, VERSION_AT);
        if version != VERSION {
            return Err(SlotError::Version { got: version, expected: VERSION });
        }
        let (got, expected) =
            (crc32c(&bytes[..HEADER_CRC32C_AT]), read_u32(bytes, HEADER_CRC32C_AT));
        if got != expected {
            return Err(SlotError::HeaderChecksum { got, expected });
        }
        let count = read_u32(bytes, COLUMNS_AT);
        let columns = usize::try_from(count).ok().filter(|count| *count <= COLUMNS_MAX);
        let columns = columns
            .ok_or_else(|| field(SlotField::Columns, count, format!("at most {COLUMNS_MAX}")))?;
        let end = TABLE_AT + columns * ENTRY_BYTES;
        let mut reserved = bytes[RESERVED_AT..TABLE_AT].iter().chain(&bytes[end..HEADER_CRC32C_AT]);
        if reserved.any(|byte| *byte != 0) {
            return Err(field(SlotField::Reserved, "not zero", "zero"));
        }
        let column = |index: usize| {
            let entry = TABLE_AT + index * ENTRY_BYTES;
            SlotColumn {
                name_crc32c: read_u32(bytes, entry + NAME_CRC32C_AT),
                kind: u16::from_le_bytes(read(bytes, entry + KIND_AT)),
                element: u16::from_le_bytes(read(bytes, entry + ELEMENT_AT)),
                axes_count: read_u32(bytes, entry + AXES_COUNT_AT),
                axes: std::array::from_fn(|axis| read_u32(bytes, entry + AXES_AT + 4 * axis)),
                extent: Extent {
                    offset: read_u64(bytes, entry + OFFSET_AT),
                    bytes: read_u64(bytes, entry + BYTES_AT),
                    rows: read_u64(bytes, entry + ROWS_AT),
                },
                crc32c: read_u32(bytes, entry + COLUMN_CRC32C_AT),
            }
        };
        Ok(Self {
            epoch: read_u32(bytes, EPOCH_AT),
            batch: read_u32(bytes, BATCH_AT),
            generation: read_u32(bytes, GENERATION_AT),
            samples: read_u32(bytes, SAMPLES_AT),
            seed: read_u64(bytes, SEED_AT),
            recipe: RecipeHash(read(bytes, RECIPE_AT)),
            payload_bytes: read_u64(bytes, PAYLOAD_BYTES_AT),
            columns: (0..columns).map(column).collect(),
        })
    }

    /// Checks every field except the columns' checksums against what was granted, and returns the
    /// positions of the columns, all inside the payload and without overlaps.
    pub fn check(&self, expected: &SlotExpectation<'_>) -> Result<BatchLayout, SlotError> {
        same(SlotField::Epoch, self.epoch, expected.epoch)?;
        same(SlotField::Generation, self.generation, expected.generation)?;
        same(SlotField::Batch, self.batch, expected.batch)?;
        same(SlotField::Seed, self.seed, expected.seed)?;
        same(SlotField::Recipe, self.recipe, expected.recipe)?;
        same(SlotField::Samples, self.samples, expected.samples)?;
        let columns = expected.columns.as_slice();
        same(SlotField::Columns, self.columns.len(), columns.len())?;
        let limit = expected.payload_bytes_max;
        let beyond =
            || field(SlotField::PayloadBytes, self.payload_bytes, format!("at most {limit}"));
        let rows = |index: usize| self.columns[index].extent.rows;
        // Lengths of padded axes come from the batch; those of other axes are compared below.
        let axes = |index: usize| self.columns[index].axes;
        let layout = BatchLayout::with_axes(expected.columns, self.samples, rows, axes);
        let layout = layout.ok_or_else(beyond)?;
        for (index, (own, column)) in self.columns.iter().zip(columns).enumerate() {
            own.check(column, index, &layout)?;
        }
        same(SlotField::PayloadBytes, self.payload_bytes, layout.bytes())?;
        if layout.bytes() > limit {
            return Err(beyond());
        }
        Ok(layout)
    }

    /// Checks the columns of a payload: length, checksums, offsets, UTF-8 and bools. `layout` is
    /// the result of [`Self::check`] for the same columns.
    pub fn check_payload(
        &self,
        columns: &BatchColumns,
        layout: &BatchLayout,
        payload: &[u8],
    ) -> Result<(), SlotError> {
        let got = payload.len() as u64;
        for (index, (own, column)) in self.columns.iter().zip(columns.as_slice()).enumerate() {
            let short = || field(SlotField::PayloadBytes, got, layout.bytes());
            let bytes = bytes_of(&layout.extent(index), payload).ok_or_else(short)?;
            let name = || column.name.clone();
            let (got, expected) = (crc32c(bytes), own.crc32c);
            if got != expected {
                return Err(SlotError::ColumnChecksum { column: name(), got, expected });
            }
            let view = ColumnBytes::new(column, index, layout, payload).ok_or_else(short)?;
            view.check().map_err(|source| SlotError::Content { column: name(), source })?;
        }
        Ok(())
    }
}

impl SlotColumn {
    /// Compares an entry with the declaration and the position of its column.
    fn check(&self, column: &Column, index: usize, layout: &BatchLayout) -> Result<(), SlotError> {
        let expected = Self::new(column, index, layout, self.crc32c);
        let refuse = |field, got: String, expected: String| {
            Err(SlotError::Column { column: column.name.clone(), field, got, expected })
        };
        let numbers = [
            (ColumnField::Name, self.name_crc32c.into(), expected.name_crc32c.into()),
            (ColumnField::Kind, self.kind.into(), expected.kind.into()),
            (ColumnField::Dtype, self.element.into(), expected.element.into()),
            (ColumnField::Axes, self.axes_count.into(), expected.axes_count.into()),
            (ColumnField::Rows, self.extent.rows, expected.extent.rows),
            (ColumnField::Offset, self.extent.offset, expected.extent.offset),
            (ColumnField::Bytes, self.extent.bytes, expected.extent.bytes),
        ];
        if let Some((field, got, expected)) = numbers.into_iter().find(|(_, got, it)| got != it) {
            return refuse(field, u64::to_string(&got), expected.to_string());
        }
        if self.axes != expected.axes {
            let [got, expected] = [self.axes, expected.axes].map(|axes| format!("{axes:?}"));
            return refuse(ColumnField::Shape, got, expected);
        }
        Ok(())
    }
}

/// The bytes of a column in a payload.
fn bytes_of<'a>(extent: &Extent, payload: &'a [u8]) -> Option<&'a [u8]> {
    let start = usize::try_from(extent.offset).ok()?;
    payload.get(start..start.checked_add(usize::try_from(extent.bytes).ok()?)?)
}

/// What the host granted; a slot is compared with it before it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotExpectation<'c> {
    /// Epoch.
    pub epoch: u32,
    /// Batch.
    pub batch: u32,
    /// Generation of the grant.
    pub generation: u32,
    /// Samples of the batch.
    pub samples: u32,
    /// Seed.
    pub seed: u64,
    /// Recipe.
    pub recipe: RecipeHash,
    /// Columns, in order.
    pub columns: &'c BatchColumns,
    /// Bytes of the slot after its header.
    pub payload_bytes_max: u64,
}

/// Bytes of a slot with `payload_bytes`: header and payload, rounded up to 4 KiB so that every slot
/// starts on a block; `u64::MAX`, more than any spool, if the sum exceeds 64 bits.
pub fn slot_bytes(payload_bytes: u64) -> u64 {
    let block = HEADER_BYTES as u64;
    payload_bytes
        .checked_next_multiple_of(block)
        .and_then(|bytes| bytes.checked_add(block))
        .unwrap_or(u64::MAX)
}

fn read<const N: usize>(bytes: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the slice has the array's length")
}

fn read_u32(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes(read(bytes, at))
}

fn read_u64(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    u64::from_le_bytes(read(bytes, at))
}

fn same<T: PartialEq + Display>(name: SlotField, got: T, expected: T) -> Result<(), SlotError> {
    if got == expected { Ok(()) } else { Err(field(name, got, expected)) }
}

fn field(name: SlotField, got: impl Display, expected: impl Display) -> SlotError {
    SlotError::Field { field: name, got: got.to_string(), expected: expected.to_string() }
}

#[cfg(test)]
mod tests;
