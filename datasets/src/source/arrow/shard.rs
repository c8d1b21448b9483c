//! One Arrow file: its schema, its record batches, and the positions of their bytes.
//!
//! Lengths in the file are validated before memory is allocated, and before another crate slices by
//! them.

use super::layout;
use super::message::{Message, Messages};
use crate::Error;
use crate::source::OpenFile;
use crate::source::budget::MemoryBudget;
use crate::source::rows::table::{guarded, open_file, read_at, too_large};
use crate::source::rows::{ContentColumn, malformed};
use crate::store::StorePath;
use arrow_array::RecordBatch;
use arrow_buffer::MutableBuffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::FileDecoder;
use arrow_ipc::{Block, CompressionType, MessageHeader};
use arrow_schema::SchemaRef;
use std::sync::Arc;

/// Maximum expansion of a byte by LZ4.
const LZ4_RATIO_MAX: u64 = 255;
/// Largest body that is decoded; a record batch is held in memory, except for the content's bytes.
const BODY_BYTES_MAX: u64 = 64 << 30;

/// An open file.
pub(super) struct Shard {
    pub(super) file: Arc<OpenFile>,
    /// As in the file, before conversion to plain types.
    pub(super) schema: SchemaRef,
    /// Length of the file.
    pub(super) bytes: u64,
    messages: Messages,
    decoder: FileDecoder,
    budget: MemoryBudget,
}

/// A record batch, and, if the content was not read, the file offset to which the content's offsets
/// are relative.
pub(super) type Decoded = (RecordBatch, Option<u64>);

impl Shard {
    /// Opens a file and reads its schema.
    pub(super) fn open(path: &StorePath, budget: &MemoryBudget) -> Result<Self, Error> {
        let (file, bytes) = open_file(path)?;
        let mut messages = Messages::open(&file, bytes)?;
        let first = if messages.footer().is_none() { messages.next(&file)? } else { None };
        let metadata = first.as_ref().map(Message::metadata);
        let found = match (messages.footer(), &metadata) {
            (Some(footer), _) => footer.schema().map(|schema| (schema, footer.version())),
            (None, Some(first)) => first.header_as_schema().map(|s| (s, first.version())),
            (None, None) => None,
        };
        let Some((schema, version)) = found else {
            let problem = "holds no schema; it is empty, truncated, or not an Arrow file or stream";
            return Err(malformed(path, None, problem));
        };
        if schema.endianness() != arrow_ipc::Endianness::Little {
            return Err(malformed(path, None, "is big-endian, which is not read"));
        }
        let schema = guarded(path, "schema", || {
            let schema = try_fb_to_schema(schema);
            schema.map(Arc::new).map_err(|error| malformed(path, None, error.to_string()))
        })?;
        let decoder = FileDecoder::new(Arc::clone(&schema), version);
        let budget = budget.clone();
        Ok(Self { file, schema, bytes, messages, decoder, budget })
    }

    /// The number of remaining rows; reads each message without its body.
    pub(super) fn count_rows(mut self) -> Result<u64, Error> {
        let mut rows = 0u64;
        while let Some(message) = self.messages.next(&self.file)? {
            if let Some(batch) = message.metadata().header_as_record_batch() {
                let more = u64::try_from(batch.length()).ok();
                rows = more.and_then(|more| rows.checked_add(more)).ok_or_else(|| {
                    malformed(&self.file.path, Some(message.offset), "a negative number of rows")
                })?;
            }
        }
        Ok(rows)
    }

    /// The next record batch; `None` at the end. If the file contains the bytes of `content`
    /// unchanged, they are not read, and the batch contains zeros instead.
    pub(super) fn next(
        &mut self,
        content: Option<ContentColumn>,
    ) -> Result<Option<Decoded>, Error> {
        while let Some(message) = self.messages.next(&self.file)? {
            let metadata = message.metadata();
            let fault = |problem: String| malformed(&self.file.path, Some(message.offset), problem);
            let batch = match metadata.header_type() {
                MessageHeader::RecordBatch => metadata.header_as_record_batch(),
                MessageHeader::DictionaryBatch => {
                    let dictionary = metadata.header_as_dictionary_batch();
                    let data = dictionary.and_then(|dictionary| dictionary.data());
                    self.check(&message, data)?;
                    self.read_dictionary(&message)?;
                    continue;
                }
                other => {
                    return Err(fault(format!("a message of an unexpected kind, {other:?}")));
                }
            };
            self.check(&message, batch)?;
            let batch = batch.expect("the check refuses a message without it");
            let skipped = content.filter(|_| batch.compression().is_none());
            let skipped = skipped.and_then(|column| layout::bytes_buffer(&self.schema, column));
            let buffers = batch.buffers();
            let skipped = skipped
                .and_then(|index| {
                    buffers.filter(|buffers| index < buffers.len())?.get(index).into()
                })
                .map(|buffer| (buffer.offset() as u64, buffer.length() as u64));
            let block = block_of(&message);
            let body = self.body(&message, skipped)?.into();
            let path = &self.file.path;
            let decoded = guarded(path, "record batch", || {
                self.decoder.read_record_batch(&block, &body).map_err(|error| {
                    fault(format!("a record batch that cannot be decoded: {error}"))
                })
            })?;
            let base = skipped.map(|(offset, _)| message.body_offset() + offset);
            match decoded {
                Some(batch) => return Ok(Some((batch, base))),
                None => return Err(fault("a record batch without content".to_owned())),
            }
        }
        Ok(None)
    }

    fn read_dictionary(&mut self, message: &Message) -> Result<(), Error> {
        let block = block_of(message);
        let body = self.body(message, None)?.into();
        let file = Arc::clone(&self.file);
        guarded(&file.path, "dictionary", || {
            self.decoder.read_dictionary(&block, &body).map_err(|error| {
                let problem = format!("a dictionary that cannot be decoded: {error}");
                malformed(&file.path, Some(message.offset), problem)
            })
        })
    }

    /// The message with its body; the range `skipped` (offset in the body, length) is zero.
    fn body(&self, message: &Message, skipped: Option<(u64, u64)>) -> Result<MutableBuffer, Error> {
        let head = message.head.len();
        let bytes = usize::try_from(message.body_bytes).expect("usize has 64 bits here");
        // Zeroed pages that are never accessed take no memory.
        let mut buffer = MutableBuffer::from_len_zeroed(head + bytes);
        buffer[..head].copy_from_slice(&message.head);
        let at = message.body_offset();
        match skipped {
            None => read_at(&self.file, &mut buffer[head..], at)?,
            Some((offset, length)) => {
                let (start, end) = (offset as usize, (offset + length) as usize);
                read_at(&self.file, &mut buffer[head..head + start], at)?;
                read_at(&self.file, &mut buffer[head + end..], at + offset + length)?;
            }
        }
        Ok(buffer)
    }

    /// Checks that buffers are within the body and do not claim an impossible decompressed size.
    fn check(
        &self,
        message: &Message,
        batch: Option<arrow_ipc::RecordBatch<'_>>,
    ) -> Result<(), Error> {
        let fault = |problem: &str| malformed(&self.file.path, Some(message.offset), problem);
        let batch = batch.ok_or_else(|| fault("a message without its record batch"))?;
        if message.body_bytes > BODY_BYTES_MAX || batch.length() < 0 {
            return Err(fault("a record batch of an impossible length; the file is damaged"));
        }
        let compression = batch.compression().map(|compression| compression.codec());
        if compression.is_some_and(|codec| codec != CompressionType::LZ4_FRAME) {
            let problem = crate::Message::from("is compressed with ZSTD, which is not read here")
                .remedy("write it with LZ4 or without compression");
            return Err(malformed(&self.file.path, Some(message.offset), problem));
        }
        let mut plain_bytes = 0u64;
        for buffer in batch.buffers().into_iter().flatten() {
            let range =
                u64::try_from(buffer.offset()).ok().zip(u64::try_from(buffer.length()).ok());
            let range = range.filter(|(offset, length)| {
                offset.checked_add(*length).is_some_and(|end| end <= message.body_bytes)
            });
            let Some((offset, length)) = range else {
                return Err(fault("a buffer outside of its message; the file is damaged"));
            };
            if compression.is_some() && length > 0 {
                let mut unfolded = [0; 8];
                if length < 8 {
                    return Err(fault("a compressed buffer without its length"));
                }
                read_at(&self.file, &mut unfolded, message.body_offset() + offset)?;
                let unfolded = i64::from_le_bytes(unfolded);
                let is_sound = unfolded == -1
                    || u64::try_from(unfolded).is_ok_and(|bytes| bytes / LZ4_RATIO_MAX <= length);
                if !is_sound {
                    return Err(fault("a compressed buffer that claims an impossible length"));
                }
                let plain = u64::try_from(unfolded).unwrap_or(length);
                plain_bytes = plain_bytes.saturating_add(plain);
            }
        }
        if compression.is_some() {
            // The compressed and the decompressed bytes are in memory together.
            let held = self.budget.hold(plain_bytes.saturating_add(message.body_bytes));
            held.map_err(|over| too_large(&self.file.path, None, Some(message.offset), over))?;
        }
        for node in batch.nodes().into_iter().flatten() {
            if node.length() < 0 || node.null_count() < 0 {
                return Err(fault("a column of a negative length; the file is damaged"));
            }
        }
        Ok(())
    }
}

fn block_of(message: &Message) -> Block {
    let head = i32::try_from(message.head.len()).expect("limited when the message was read");
    let body = i64::try_from(message.body_bytes).expect("limited by the length of the file");
    Block::new(0, head, body)
}
