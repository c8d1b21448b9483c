//! The footer of a part: the positions and checksums of its record batches.
//!
//! ```text
//! 0            "ARROW1\0\0", schema message                 head: CRC-32C in the footer
//!              record batch 0: message, body                images: CRC-32C in their rows
//!              record batch 1 ...                           the rest: CRC-32C in the footer
//!              end-of-stream marker, footer flatbuffer,     tail: CRC-32C in dataset.json
//! bytes of     footer length (int32), "ARROW1"
//! the file
//! ```
//!
//! There are no gaps: each record batch begins where the one before it ends.

use super::part_schema;
use super::schema::ROWS_PER_RECORD_BATCH_MAX;
use super::{Columns, DatasetError, PartBytes, PartEntry};
use crate::checksum::crc32c;
use std::collections::BTreeMap;
use std::ops::Range;

/// The first bytes of a part.
pub(super) const HEAD_MAGIC: &[u8] = b"ARROW1\0\0";
/// The last bytes of a part.
pub(super) const TAIL_MAGIC: &[u8] = b"ARROW1";
/// What precedes the length of a message.
pub(super) const CONTINUATION: [u8; 4] = [0xff; 4];
/// A message of length 0: what follows the last record batch.
pub(super) const END_OF_STREAM: &[u8] = &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
/// Continuation marker and length of a message.
pub(super) const MESSAGE_PREFIX_BYTES: u64 = 8;

/// Key of the footer's metadata: CRC-32C of the head, eight hexadecimal digits.
const HEAD_CRC32C_KEY: &str = "meetpoint.head_crc32c";
/// Key of the footer's metadata: `rows:crc32c` of each record batch, comma-separated.
const RECORD_BATCHES_KEY: &str = "meetpoint.record_batches";
/// Key of the footer's metadata: CRC-32C of each further column of each record batch; the columns
/// of a batch are separated by colons, the batches by commas.
const EXTRA_COLUMNS_KEY: &str = "meetpoint.extra_columns";
/// Longest footer: enough for a million record batches without further columns.
pub(super) const FOOTER_BYTES_MAX: u64 = 1 << 26;
/// Bytes at the end of a part that are read at once: enough for most tails.
const TAIL_READ_BYTES: u64 = 1 << 12;
/// Length and magic number after the footer.
const FOOTER_SUFFIX_BYTES: u64 = 10;

/// The position of a record batch in its part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordBatchExtent {
    /// First byte of its message.
    pub offset: u64,
    /// Bytes of the message, prefix and padding included.
    pub metadata_bytes: u64,
    /// Bytes of the body that follows.
    pub body_bytes: u64,
    /// Rows.
    pub rows: u32,
    /// CRC-32C of message and body, excluding the data buffer of the images and further columns.
    pub rest_crc32c: u32,
    /// CRC-32C of each further column.
    pub extra_crc32c: Vec<u32>,
}

impl RecordBatchExtent {
    /// The position of its message and body in the part.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.metadata_bytes + self.body_bytes
    }
}

/// The contents of the footer of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartLayout {
    /// The columns of its samples.
    pub columns: Columns,
    /// Magic number and schema message.
    pub head: Range<u64>,
    /// CRC-32C of the head.
    pub head_crc32c: u32,
    /// The record batches in order.
    pub record_batches: Vec<RecordBatchExtent>,
    /// End-of-stream marker, footer, its length and the magic number.
    pub tail: Range<u64>,
}

impl PartLayout {
    /// Reads the footer of part `index` and checks it against its entry in the manifest.
    pub fn read(
        index: usize,
        entry: &PartEntry,
        parts: &dyn PartBytes,
    ) -> Result<Self, DatasetError> {
        let read = |offset: u64, into: &mut [u8]| {
            parts
                .read_exact_at(index, offset, into)
                .map_err(|source| DatasetError::Io { part: entry.file.clone(), source })
        };
        let bytes = parts
            .part_bytes(index)
            .map_err(|source| DatasetError::Io { part: entry.file.clone(), source })?;
        let broken = |problem: String| DatasetError::Part { part: entry.file.clone(), problem };
        if bytes != entry.bytes {
            return Err(broken(format!(
                "{bytes} bytes long, dataset.json says {}; restore it or pack again",
                entry.bytes
            )));
        }
        let least = HEAD_MAGIC.len() as u64 + END_OF_STREAM.len() as u64 + FOOTER_SUFFIX_BYTES;
        if bytes < least {
            return Err(broken(format!("{bytes} bytes are too few for an Arrow IPC file")));
        }
        let at_once = bytes.min(TAIL_READ_BYTES);
        let mut end = vec![0; usize::try_from(at_once).expect("at most TAIL_READ_BYTES")];
        read(bytes - at_once, &mut end)?;
        let (rest, suffix) = end.split_at(end.len() - FOOTER_SUFFIX_BYTES as usize);
        let (length, magic) = suffix.split_at(4);
        if magic != TAIL_MAGIC {
            return Err(broken("does not end like an Arrow IPC file".to_owned()));
        }
        let length = i32::from_le_bytes(length.try_into().expect("split at 4"));
        let footer_bytes = u64::try_from(length)
            .ok()
            .filter(|length| (1..=(bytes - least).min(FOOTER_BYTES_MAX)).contains(length))
            .ok_or_else(|| broken(format!("a footer of {length} bytes at the end of {bytes}")))?;
        let before_footer = footer_bytes + END_OF_STREAM.len() as u64;
        let tail_start = bytes - FOOTER_SUFFIX_BYTES - before_footer;
        let before_footer = usize::try_from(before_footer).expect("bounded by FOOTER_BYTES_MAX");
        let longer;
        let tail = match rest.len().checked_sub(before_footer) {
            Some(start) => &end[start..],
            None => {
                let mut all = vec![0; before_footer + FOOTER_SUFFIX_BYTES as usize];
                read(tail_start, &mut all)?;
                longer = all;
                &longer
            }
        };
        let got = crc32c(tail);
        if got != entry.tail_crc32c {
            return Err(broken(format!(
                "the footer (bytes {tail_start} to {bytes}) has checksum {got:#010x}, \
                 dataset.json says {:#010x}",
                entry.tail_crc32c
            )));
        }
        parse(tail, tail_start..bytes, entry).map_err(broken)
    }
}

fn parse(tail: &[u8], place: Range<u64>, entry: &PartEntry) -> Result<PartLayout, String> {
    let flatbuffer = tail
        .strip_prefix(END_OF_STREAM)
        .and_then(|rest| rest.get(..rest.len().checked_sub(FOOTER_SUFFIX_BYTES as usize)?))
        .ok_or("no end-of-stream marker before the footer")?;
    let footer = arrow_ipc::root_as_footer(flatbuffer)
        .map_err(|error| format!("the footer does not parse: {error}"))?;
    if footer.dictionaries().is_some_and(|list| !list.is_empty()) {
        return Err("it has dictionaries, which the dataset format does not allow".to_owned());
    }
    let columns = part_schema::check(footer.schema().ok_or("the footer has no schema")?)?;
    let pair = |key: &str| {
        let mut pairs = footer.custom_metadata().into_iter().flatten();
        let found = pairs.find(|pair| pair.key() == Some(key)).and_then(|pair| pair.value());
        found.ok_or_else(|| format!("the footer has no `{key}`"))
    };
    let head_crc32c = parse_crc32c(pair(HEAD_CRC32C_KEY)?)
        .ok_or_else(|| format!("`{HEAD_CRC32C_KEY}` is not eight hexadecimal digits"))?;
    let text = pair(RECORD_BATCHES_KEY)?;
    let mut described = text.split(',').filter(|item| !item.is_empty()).map(parse_described);
    let extras = columns.extra.fields().len();
    let mut extra = match extras {
        0 => None,
        _ => Some(pair(EXTRA_COLUMNS_KEY)?.split(',').map(parse_extra)),
    };
    let blocks = footer.recordBatches().ok_or("the footer lists no record batches")?;
    let mut record_batches = Vec::with_capacity(blocks.len());
    let mut samples = 0;
    let mut expected_offset = None;
    for (number, block) in blocks.iter().enumerate() {
        let sums = described
            .next()
            .flatten()
            .ok_or_else(|| format!("`{RECORD_BATCHES_KEY}` does not describe batch {number}"))?;
        let mut batch = place_of(block, sums, &place, expected_offset).ok_or_else(|| {
            format!("record batch {number} is outside its expected range of the file")
        })?;
        if let Some(extra) = &mut extra {
            let sums = extra.next().flatten().filter(|sums| sums.len() == extras);
            batch.extra_crc32c = sums
                .ok_or_else(|| format!("`{EXTRA_COLUMNS_KEY}` does not describe batch {number}"))?;
        }
        samples += u64::from(batch.rows);
        expected_offset = Some(batch.range().end);
        record_batches.push(batch);
    }
    if described.next().is_some() {
        return Err(format!("`{RECORD_BATCHES_KEY}` describes more batches than the footer lists"));
    }
    if extra.is_some_and(|mut extra| extra.next().is_some_and(|_| !record_batches.is_empty())) {
        return Err(format!("`{EXTRA_COLUMNS_KEY}` describes more batches than the footer lists"));
    }
    if expected_offset.is_some_and(|end| end != place.start) {
        return Err("bytes between the last record batch and the footer".to_owned());
    }
    if samples != entry.samples {
        return Err(format!("{samples} rows, dataset.json says {}", entry.samples));
    }
    let head = 0..record_batches.first().map_or(place.start, |batch| batch.offset);
    Ok(PartLayout { columns, head, head_crc32c, record_batches, tail: place })
}

/// Checks one block of the footer; `None` if it is out of position.
fn place_of(
    block: &arrow_ipc::Block,
    (rows, rest_crc32c): (u32, u32),
    tail: &Range<u64>,
    expected: Option<u64>,
) -> Option<RecordBatchExtent> {
    let offset = u64::try_from(block.offset()).ok()?;
    let metadata_bytes = u64::try_from(block.metaDataLength()).ok()?;
    let body_bytes = u64::try_from(block.bodyLength()).ok()?;
    let end = offset.checked_add(metadata_bytes)?.checked_add(body_bytes)?;
    let fits = offset >= HEAD_MAGIC.len() as u64
        && expected.is_none_or(|expected| offset == expected)
        && metadata_bytes > MESSAGE_PREFIX_BYTES
        && end <= tail.start
        && (1..=ROWS_PER_RECORD_BATCH_MAX).contains(&rows);
    fits.then_some(RecordBatchExtent {
        offset,
        metadata_bytes,
        body_bytes,
        rows,
        rest_crc32c,
        extra_crc32c: Vec::new(),
    })
}

fn parse_described(item: &str) -> Option<(u32, u32)> {
    let (rows, crc) = item.split_once(':')?;
    Some((rows.parse().ok()?, parse_crc32c(crc)?))
}

fn parse_extra(item: &str) -> Option<Vec<u32>> {
    item.split(':').map(parse_crc32c).collect()
}

fn parse_crc32c(digits: &str) -> Option<u32> {
    if digits.len() != 8 {
        return None;
    }
    let mut digits = digits.bytes().map(|byte| char::from(byte).to_digit(16));
    digits.try_fold(0, |value, digit| Some(value << 4 | digit?))
}

/// The flatbuffer of a footer.
pub(super) fn footer(
    columns: &Columns,
    head_crc32c: u32,
    record_batches: &[RecordBatchExtent],
) -> Vec<u8> {
    let mut builder = flatbuffers::FlatBufferBuilder::new();
    let signed = |value: u64| i64::try_from(value).expect("offsets in a file are below 2^63");
    let blocks: Vec<_> = record_batches
        .iter()
        .map(|batch| {
            let metadata = i32::try_from(batch.metadata_bytes).expect("messages are small");
            arrow_ipc::Block::new(signed(batch.offset), metadata, signed(batch.body_bytes))
        })
        .collect();
    let described: Vec<String> = record_batches
        .iter()
        .map(|batch| format!("{}:{:08x}", batch.rows, batch.rest_crc32c))
        .collect();
    let mut pairs = BTreeMap::from([
        (HEAD_CRC32C_KEY.to_owned(), format!("{head_crc32c:08x}")),
        (RECORD_BATCHES_KEY.to_owned(), described.join(",")),
    ]);
    if columns.has_extra() {
        let digits = |crc: &u32| format!("{crc:08x}");
        let of_batch = |batch: &RecordBatchExtent| {
            batch.extra_crc32c.iter().map(digits).collect::<Vec<_>>().join(":")
        };
        let text = record_batches.iter().map(of_batch).collect::<Vec<_>>().join(",");
        pairs.insert(EXTRA_COLUMNS_KEY.to_owned(), text);
    }
    let dictionaries = builder.create_vector::<arrow_ipc::Block>(&[]);
    let blocks = builder.create_vector(&blocks);
    let schema = arrow_ipc::convert::IpcSchemaEncoder::new()
        .schema_to_fb_offset(&mut builder, &columns.schema());
    let metadata = arrow_ipc::convert::metadata_to_fb(&mut builder, &pairs.into_iter().collect());
    let footer = {
        let mut footer = arrow_ipc::FooterBuilder::new(&mut builder);
        footer.add_version(arrow_ipc::MetadataVersion::V5);
        footer.add_schema(schema);
        footer.add_dictionaries(dictionaries);
        footer.add_recordBatches(blocks);
        footer.add_custom_metadata(metadata);
        footer.finish()
    };
    builder.finish(footer, None);
    builder.finished_data().to_vec()
}

/// The range in the part of a buffer of a body; `None` if it is outside of the body.
pub(super) fn range_in(body: &Range<u64>, offset: i64, length: i64) -> Option<Range<u64>> {
    let start = body.start.checked_add(u64::try_from(offset).ok()?)?;
    let end = start.checked_add(u64::try_from(length).ok()?)?;
    (end <= body.end).then_some(start..end)
}
