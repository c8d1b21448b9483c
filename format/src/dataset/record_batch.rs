//! Everything of a record batch but its images: keys, offsets, labels, checksums.
//!
//! It is small, and one CRC-32C in the footer covers it, so that a table that was read is a table
//! that was written.

use super::layout::{CONTINUATION, MESSAGE_PREFIX_BYTES, RecordBatchPlace};
use super::schema::{IMAGE_BYTES_MAX, KEY_BYTES_MAX};
use super::{DatasetError, PartBytes};
use crc_fast::{CrcAlgorithm, Digest};
use std::ops::Range;

/// Most bytes of a record batch without its images.
const REST_BYTES_MAX: u64 = 1 << 28;

/// The buffers of the four columns that a reader knows, in the order of the body.
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
}

impl BufferRole {
    /// All of them, in the order of the body.
    pub const ALL: [Self; 10] = [
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
    ];
}

/// What is known of the rows of a record batch without reading an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowTable {
    /// Where each image begins in the part, and where the last one ends: one more than rows.
    pub image_offsets: Vec<u64>,
    /// CRC-32C of each image.
    pub crc32c: Vec<u32>,
    /// Label of each row.
    pub labels: Vec<Option<i32>>,
}

/// The bytes of a record batch without the data of its images.
#[derive(Debug, Clone)]
pub struct RecordBatchMetadata {
    place: RecordBatchPlace,
    /// Message and body, the data of the images cut out.
    bytes: Vec<u8>,
    /// Where each buffer lies in the part.
    buffers: [Range<u64>; 10],
    label_nulls: u64,
}

impl RecordBatchMetadata {
    /// Reads a record batch of part `part` (whose file name is `name`) without its images.
    ///
    /// Whether the bytes are those that were written is told by [`Self::crc32c`], not checked here.
    pub fn read(
        part: usize,
        name: &str,
        place: &RecordBatchPlace,
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
        let (buffers, label_nulls) = parse_message(&bytes, place, &body).map_err(broken)?;
        let images = buffers[BufferRole::ImageData as usize].clone();
        let rest = (place.range().end - place.offset) - (images.end - images.start);
        if rest > REST_BYTES_MAX {
            return Err(broken(format!("{rest} bytes beside its images")));
        }
        read(body.start..images.start, &mut bytes)?;
        read(images.end..body.end, &mut bytes)?;
        Ok(Self { place: place.clone(), bytes, buffers, label_nulls })
    }

    /// CRC-32C of what was read, to be held against [`RecordBatchPlace::rest_crc32c`].
    pub fn crc32c(&self) -> u32 {
        let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
        digest.update(&self.bytes);
        u32::try_from(digest.finalize()).expect("a CRC-32 fits 32 bits")
    }

    /// The bytes that [`Self::crc32c`] is of.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The byte of the part that byte `index` of [`Self::bytes`] is.
    pub fn part_offset(&self, index: usize) -> u64 {
        let images = &self.buffers[BufferRole::ImageData as usize];
        let offset = self.place.offset + index as u64;
        if offset < images.start { offset } else { offset + (images.end - images.start) }
    }

    /// Where a buffer lies in the part.
    pub fn buffer(&self, role: BufferRole) -> Range<u64> {
        self.buffers[role as usize].clone()
    }

    /// The bytes of a buffer other than the images' data.
    fn bytes_of(&self, role: BufferRole) -> &[u8] {
        let range = self.buffer(role);
        let images = &self.buffers[BufferRole::ImageData as usize];
        let cut = if range.start >= images.end { images.end - images.start } else { 0 };
        let index = |offset: u64| {
            usize::try_from(offset - cut - self.place.offset).expect("inside what was read")
        };
        &self.bytes[index(range.start)..index(range.end)]
    }

    /// Reads the table of its rows.
    pub fn rows(&self) -> Result<RowTable, String> {
        let images = &self.buffers[BufferRole::ImageData as usize];
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
        let validity = self.bytes_of(BufferRole::LabelValidity);
        let is_null = |row: usize| self.label_nulls > 0 && validity[row / 8] >> (row % 8) & 1 == 0;
        let labels = self
            .elements::<4>(BufferRole::LabelData, 0)
            .enumerate()
            .map(|(row, bytes)| (!is_null(row)).then(|| i32::from_le_bytes(bytes)))
            .collect();
        let crc32c = self.elements::<4>(BufferRole::CrcData, 0).map(u32::from_le_bytes).collect();
        Ok(RowTable { image_offsets, crc32c, labels })
    }

    /// Where the key of a row lies in the part.
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
            return Err(format!("the key of row {row} of the batch has no place"));
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

    /// The elements of a fixed-width buffer, `extra` more than rows.
    fn elements<const BYTES: usize>(
        &self,
        role: BufferRole,
        extra: usize,
    ) -> impl Iterator<Item = [u8; BYTES]> {
        let (elements, _) = self.bytes_of(role).as_chunks::<BYTES>();
        elements.iter().take(self.place.rows as usize + extra).copied()
    }
}

/// Finds the buffers in the part, checked so that every later access is inside them.
fn parse_message(
    bytes: &[u8],
    place: &RecordBatchPlace,
    body: &Range<u64>,
) -> Result<([Range<u64>; 10], u64), String> {
    let (prefix, rest) =
        bytes.split_at_checked(MESSAGE_PREFIX_BYTES as usize).ok_or("the message has no length")?;
    let length = i32::from_le_bytes(prefix[4..].try_into().expect("8 - 4 bytes"));
    if prefix[..4] != CONTINUATION || usize::try_from(length) != Ok(rest.len()) {
        return Err("the message does not begin as one".to_owned());
    }
    let message = arrow_ipc::root_as_message(rest)
        .map_err(|error| format!("the message does not parse: {error}"))?;
    let batch = message.header_as_record_batch().ok_or("not a record batch")?;
    if batch.compression().is_some() {
        return Err("its buffers are compressed, these conventions want them plain".to_owned());
    }
    let rows = u64::from(place.rows);
    let stated = u64::try_from(batch.length()).unwrap_or(u64::MAX);
    if stated != rows {
        return Err(format!("{stated} rows, the footer says {rows}"));
    }
    let nodes = batch.nodes().ok_or("no columns")?;
    let buffers = batch.buffers().ok_or("no buffers")?;
    if nodes.len() < 4 || buffers.len() < BufferRole::ALL.len() {
        return Err(format!("{} columns, {} buffers", nodes.len(), buffers.len()));
    }
    let nulls: Vec<i64> = nodes.iter().take(4).map(|node| node.null_count()).collect();
    if (nulls[0], nulls[1], nulls[3]) != (0, 0, 0) {
        return Err("null in a column that has none".to_owned());
    }
    let label_nulls = u64::try_from(nulls[2]).map_err(|_| "a negative count of nulls")?;
    let mut places: [Range<u64>; 10] = Default::default();
    let mut end = body.start;
    for (role, buffer) in BufferRole::ALL.into_iter().zip(buffers.iter()) {
        let needed = match role {
            BufferRole::KeyOffsets => (rows + 1) * 4,
            BufferRole::ImageOffsets => (rows + 1) * 8,
            BufferRole::LabelData | BufferRole::CrcData => rows * 4,
            BufferRole::LabelValidity if label_nulls > 0 => rows.div_ceil(8),
            _ => 0,
        };
        let range = range_in(body, buffer.offset(), buffer.length())
            .filter(|range| range.start >= end && range.end - range.start >= needed)
            .ok_or_else(|| format!("{role:?} has no room in the body"))?;
        end = range.end;
        places[role as usize] = range;
    }
    Ok((places, label_nulls))
}

fn range_in(body: &Range<u64>, offset: i64, length: i64) -> Option<Range<u64>> {
    let start = body.start.checked_add(u64::try_from(offset).ok()?)?;
    let end = start.checked_add(u64::try_from(length).ok()?)?;
    (end <= body.end).then_some(start..end)
}
