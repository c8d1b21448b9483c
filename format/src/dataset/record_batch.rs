//! A record batch without its images and further columns: keys, offsets, labels, checksums, entry
//! points.
//!
//! It is small, and one CRC-32C in the footer covers it, so damage to a table is always detected.

use super::layout::{CONTINUATION, MESSAGE_PREFIX_BYTES, RecordBatchExtent, range_in};
use super::part_schema::COLUMNS;
use super::schema::{ENTRY_POINTS_BYTES_MAX, IMAGE_BYTES_MAX, KEY_BYTES_MAX};
use super::{Columns, DatasetError, ExtraTable, PartBytes};
use crc_fast::{CrcAlgorithm, Digest};
use std::ops::Range;
use std::sync::Arc;

/// Maximum bytes of a record batch without its images and further columns.
const REST_BYTES_MAX: u64 = 1 << 28;
/// Buffers of the columns that every dataset has.
const BUFFERS: usize = 13;

/// The buffers of the columns that every dataset has, in the order of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "column and buffer, as the Arrow format names them")]
pub enum BufferRole {
    KeyValidity,
    KeyOffsets,
    KeyData,
    ImageValidity,
    ImageOffsets,
    ImageData,
    LabelValidity,
    LabelData,
    CrcValidity,
    CrcData,
    EntryPointsValidity,
    EntryPointsOffsets,
    EntryPointsData,
}

impl BufferRole {
    /// All of them, in the order of the body.
    pub const ALL: [Self; BUFFERS] = [
        Self::KeyValidity,
        Self::KeyOffsets,
        Self::KeyData,
        Self::ImageValidity,
        Self::ImageOffsets,
        Self::ImageData,
        Self::LabelValidity,
        Self::LabelData,
        Self::CrcValidity,
        Self::CrcData,
        Self::EntryPointsValidity,
        Self::EntryPointsOffsets,
        Self::EntryPointsData,
    ];
}

/// The properties of the rows of a record batch that are known without reading an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowTable {
    /// The start of each image in the part, followed by the end of the last one: rows + 1 entries.
    pub image_offsets: Vec<u64>,
    /// CRC-32C of each image.
    pub crc32c: Vec<u32>,
    /// Label of each row.
    pub labels: Vec<Option<i32>>,
}

/// The entry points of the rows of a record batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPointTable {
    /// Those of all rows, one after another.
    bytes: Arc<[u8]>,
    /// The range of each row.
    ranges: Vec<Option<Range<u32>>>,
}

impl EntryPointTable {
    /// The entry points of a row.
    pub fn row(&self, row: usize) -> Option<EntryPoints> {
        let range = self.ranges.get(row)?.clone()?;
        Some(EntryPoints { bytes: Arc::clone(&self.bytes), range })
    }

    /// The row that contains a byte of the column's data.
    pub fn row_of(&self, byte: u32) -> Option<u32> {
        let holds =
            |range: &Option<Range<u32>>| range.as_ref().is_some_and(|range| range.contains(&byte));
        self.ranges.iter().position(holds).and_then(|row| u32::try_from(row).ok())
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> u64 {
        let ranges = self.ranges.len() * size_of::<Option<Range<u32>>>();
        (self.bytes.len() + ranges) as u64
    }
}

/// The entry points of one sample, as they were packed: a range of its record batch's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPoints {
    bytes: Arc<[u8]>,
    range: Range<u32>,
}

impl AsRef<[u8]> for EntryPoints {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.range.start as usize..self.range.end as usize]
    }
}

/// The bytes of a record batch without the data of its images and without further columns.
#[derive(Debug, Clone)]
pub struct RecordBatchMetadata {
    place: RecordBatchExtent,
    /// Message and body, without the data of the images.
    bytes: Vec<u8>,
    core: Core,
}

/// What a message says about the columns that every dataset has.
#[derive(Debug, Clone)]
struct Core {
    /// The position of each buffer in the part.
    buffers: [Range<u64>; BUFFERS],
    nulls: Nulls,
    /// Where these columns end in the part and further columns begin.
    end: u64,
}

/// Null counts of the columns that may have nulls.
#[derive(Debug, Clone, Copy)]
struct Nulls {
    label: u64,
    entry_points: u64,
}

impl RecordBatchMetadata {
    /// Reads a record batch of part `part` (whose file name is `name`) without its images and
    /// further columns.
    ///
    /// The caller compares [`Self::crc32c`] with the expected checksum; it is not checked here.
    pub fn read(
        part: usize,
        name: &str,
        place: &RecordBatchExtent,
        parts: &dyn PartBytes,
    ) -> Result<Self, DatasetError> {
        let read = |range: Range<u64>, into: &mut Vec<u8>| {
            let start = into.len();
            let bytes = usize::try_from(range.end - range.start).expect("at most REST_BYTES_MAX");
            into.resize(start + bytes, 0);
            parts
                .read_exact_at(part, range.start, &mut into[start..])
                .map_err(|source| DatasetError::Io { part: name.to_owned(), source })
        };
        let broken = |problem: String| DatasetError::Part {
            part: name.to_owned(),
            problem: format!("record batch at byte {}: {problem}", place.offset),
        };
        let body = place.offset + place.metadata_bytes..place.range().end;
        if place.metadata_bytes > REST_BYTES_MAX {
            return Err(broken(format!("metadata of {} bytes", place.metadata_bytes)));
        }
        let mut bytes = Vec::new();
        read(place.offset..body.start, &mut bytes)?;
        let core = parse_message(&bytes, place, &body).map_err(broken)?;
        let images = core.buffers[BufferRole::ImageData as usize].clone();
        let rest = (core.end - place.offset) - (images.end - images.start);
        if rest > REST_BYTES_MAX {
            return Err(broken(format!("{rest} bytes beside its images")));
        }
        read(body.start..images.start, &mut bytes)?;
        read(images.end..core.end, &mut bytes)?;
        Ok(Self { place: place.clone(), bytes, core })
    }

    /// The positions of the further columns of the part.
    pub fn extra(&self, columns: &Columns) -> Result<ExtraTable, String> {
        let end = usize::try_from(self.place.metadata_bytes).expect("at most REST_BYTES_MAX");
        let message = arrow_ipc::root_as_message(&self.bytes[MESSAGE_PREFIX_BYTES as usize..end])
            .map_err(|error| format!("the message does not parse: {error}"))?;
        let batch = message.header_as_record_batch().ok_or("not a record batch")?;
        let known = (COLUMNS.len(), BUFFERS);
        let body = self.place.offset + self.place.metadata_bytes..self.place.range().end;
        ExtraTable::parse(&batch, columns, known, self.core.end, &body)
    }

    /// CRC-32C of the bytes that were read, to be compared with [`RecordBatchExtent::rest_crc32c`].
    pub fn crc32c(&self) -> u32 {
        let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
        digest.update(&self.bytes);
        u32::try_from(digest.finalize()).expect("a CRC-32 fits 32 bits")
    }

    /// The bytes that [`Self::crc32c`] covers.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The offset in the part of byte `index` of [`Self::bytes`].
    pub fn part_offset(&self, index: usize) -> u64 {
        let images = &self.core.buffers[BufferRole::ImageData as usize];
        let offset = self.place.offset + index as u64;
        if offset < images.start { offset } else { offset + (images.end - images.start) }
    }

    /// The position of a buffer in the part.
    pub fn buffer(&self, role: BufferRole) -> Range<u64> {
        self.core.buffers[role as usize].clone()
    }

    /// The bytes of a buffer other than the images' data.
    fn bytes_of(&self, role: BufferRole) -> &[u8] {
        let range = self.buffer(role);
        let images = &self.core.buffers[BufferRole::ImageData as usize];
        let cut = if range.start >= images.end { images.end - images.start } else { 0 };
        let index = |offset: u64| {
            usize::try_from(offset - cut - self.place.offset).expect("inside what was read")
        };
        &self.bytes[index(range.start)..index(range.end)]
    }

    /// Reads the table of its rows.
    pub fn rows(&self) -> Result<RowTable, String> {
        let images = &self.core.buffers[BufferRole::ImageData as usize];
        let (length, base) = (images.end - images.start, images.start);
        let mut image_offsets = Vec::with_capacity(self.place.rows as usize + 1);
        let mut last = 0;
        for (row, bytes) in self.elements::<8>(BufferRole::ImageOffsets, 1).enumerate() {
            let offset = u64::try_from(i64::from_le_bytes(bytes)).unwrap_or(u64::MAX);
            let fits =
                (last..=length).contains(&offset) && (row == 0 || offset - last <= IMAGE_BYTES_MAX);
            if !fits {
                return Err(format!("offset {row} of the images is {offset} of {length}"));
            }
            last = offset;
            image_offsets.push(base + offset);
        }
        let labels = self
            .elements::<4>(BufferRole::LabelData, 0)
            .enumerate()
            .map(|(row, bytes)| {
                let is_null = self.is_null(BufferRole::LabelValidity, self.core.nulls.label, row);
                (!is_null).then(|| i32::from_le_bytes(bytes))
            })
            .collect();
        let crc32c = self.elements::<4>(BufferRole::CrcData, 0).map(u32::from_le_bytes).collect();
        Ok(RowTable { image_offsets, crc32c, labels })
    }

    /// Reads the entry points of its rows; `None` when no row has any.
    pub fn entry_points(&self) -> Result<Option<EntryPointTable>, String> {
        let data = self.bytes_of(BufferRole::EntryPointsData);
        if data.is_empty() {
            return Ok(None);
        }
        let mut ranges = Vec::with_capacity(self.place.rows as usize);
        let mut start = None;
        for (index, bytes) in self.elements::<4>(BufferRole::EntryPointsOffsets, 1).enumerate() {
            let end = u32::try_from(i32::from_le_bytes(bytes)).unwrap_or(u32::MAX);
            let begin = start.unwrap_or(end);
            let fits = begin <= end
                && end as usize <= data.len()
                && u64::from(end - begin) <= ENTRY_POINTS_BYTES_MAX;
            if !fits {
                return Err(format!("offset {index} of the entry points is {end}"));
            }
            if let Some(row) = index.checked_sub(1) {
                let (role, nulls) = (BufferRole::EntryPointsValidity, self.core.nulls.entry_points);
                // An empty value means no entry points, as null does.
                let is_there = begin < end && !self.is_null(role, nulls, row);
                ranges.push(is_there.then_some(begin..end));
            }
            start = Some(end);
        }
        Ok(Some(EntryPointTable { bytes: data.into(), ranges }))
    }

    /// Whether a row has no value in a column, given the column's validity and count of nulls.
    fn is_null(&self, validity: BufferRole, nulls: u64, row: usize) -> bool {
        nulls > 0 && self.bytes_of(validity)[row / 8] >> (row % 8) & 1 == 0
    }

    /// The position of the key of a row in the part.
    pub fn key_range(&self, row: u32) -> Result<Range<u64>, String> {
        let data = self.buffer(BufferRole::KeyData);
        let mut ends = self
            .elements::<4>(BufferRole::KeyOffsets, 1)
            .skip(row as usize)
            .map(|bytes| u64::try_from(i32::from_le_bytes(bytes)).unwrap_or(u64::MAX));
        let start = ends.next().unwrap_or(u64::MAX);
        let end = ends.next().unwrap_or(u64::MAX);
        let fits = start <= end && end <= data.end - data.start;
        if !fits || end - start > KEY_BYTES_MAX as u64 {
            return Err(format!("the key of row {row} of the batch is out of bounds"));
        }
        Ok(data.start + start..data.start + end)
    }

    /// The key of a row.
    pub fn key(&self, row: u32) -> Result<&str, String> {
        let range = self.key_range(row)?;
        let data = self.buffer(BufferRole::KeyData);
        let index =
            |offset: u64| usize::try_from(offset - data.start).expect("inside what was read");
        let bytes = &self.bytes_of(BufferRole::KeyData)[index(range.start)..index(range.end)];
        std::str::from_utf8(bytes)
            .map_err(|_| format!("the key of row {row} of the batch is not UTF-8"))
    }

    /// The elements of a fixed-width buffer: rows + `extra`.
    fn elements<const BYTES: usize>(
        &self,
        role: BufferRole,
        extra: usize,
    ) -> impl Iterator<Item = [u8; BYTES]> {
        let (elements, _) = self.bytes_of(role).as_chunks::<BYTES>();
        elements.iter().take(self.place.rows as usize + extra).copied()
    }
}

/// Finds the buffers in the part, and checks that every later access stays inside them.
fn parse_message(
    bytes: &[u8],
    place: &RecordBatchExtent,
    body: &Range<u64>,
) -> Result<Core, String> {
    let (prefix, rest) =
        bytes.split_at_checked(MESSAGE_PREFIX_BYTES as usize).ok_or("the message has no length")?;
    let length = i32::from_le_bytes(prefix[4..].try_into().expect("8 - 4 bytes"));
    if prefix[..4] != CONTINUATION || usize::try_from(length) != Ok(rest.len()) {
        return Err("the message has an invalid header".to_owned());
    }
    let message = arrow_ipc::root_as_message(rest)
        .map_err(|error| format!("the message does not parse: {error}"))?;
    let batch = message.header_as_record_batch().ok_or("not a record batch")?;
    if batch.compression().is_some() {
        return Err(
            "its buffers are compressed, which the dataset format does not allow".to_owned()
        );
    }
    let rows = u64::from(place.rows);
    let stated = u64::try_from(batch.length()).unwrap_or(u64::MAX);
    if stated != rows {
        return Err(format!("{stated} rows, the footer says {rows}"));
    }
    let nodes = batch.nodes().ok_or("no columns")?;
    let buffers = batch.buffers().ok_or("no buffers")?;
    if nodes.len() < COLUMNS.len() || buffers.len() < BUFFERS {
        return Err(format!("{} columns, {} buffers", nodes.len(), buffers.len()));
    }
    let null_counts: [i64; COLUMNS.len()] =
        std::array::from_fn(|column| nodes.get(column).null_count());
    if [null_counts[0], null_counts[1], null_counts[3]] != [0; 3] {
        return Err("a null in a column that must have none".to_owned());
    }
    let count =
        |column: usize| u64::try_from(null_counts[column]).map_err(|_| "a negative count of nulls");
    let nulls = Nulls { label: count(2)?, entry_points: count(4)? };
    let mut places: [Range<u64>; BUFFERS] = Default::default();
    let mut end = body.start;
    for (role, buffer) in BufferRole::ALL.into_iter().zip(buffers) {
        let needed = match role {
            BufferRole::KeyOffsets | BufferRole::EntryPointsOffsets => (rows + 1) * 4,
            BufferRole::ImageOffsets => (rows + 1) * 8,
            BufferRole::LabelData | BufferRole::CrcData => rows * 4,
            BufferRole::LabelValidity if nulls.label > 0 => rows.div_ceil(8),
            BufferRole::EntryPointsValidity if nulls.entry_points > 0 => rows.div_ceil(8),
            // Columns without nulls have no validity buffer; data is checked together with its
            // offsets.
            BufferRole::KeyValidity
            | BufferRole::ImageValidity
            | BufferRole::LabelValidity
            | BufferRole::CrcValidity
            | BufferRole::EntryPointsValidity
            | BufferRole::KeyData
            | BufferRole::ImageData
            | BufferRole::EntryPointsData => 0,
        };
        let range = range_in(body, buffer.offset(), buffer.length())
            .filter(|range| range.start >= end && range.end - range.start >= needed)
            .ok_or_else(|| format!("{role:?} extends beyond the body"))?;
        end = range.end;
        places[role as usize] = range;
    }
    let further = if buffers.len() > BUFFERS {
        let offset = u64::try_from(buffers.get(BUFFERS).offset()).ok();
        let start = offset.and_then(|offset| body.start.checked_add(offset));
        let fits = |start: &u64| (end..=body.end).contains(start);
        start.filter(fits).ok_or("further columns extend beyond the body")?
    } else {
        body.end
    };
    Ok(Core { buffers: places, nulls, end: further })
}
