//! Encodes rows as the bytes of a part: an Arrow IPC file of uncompressed record batches.
//!
//! Bytes go to any `std::io::Write`; opening, syncing and renaming belong to the caller. Images are
//! written without a copy.

use super::encode_extra::{self, EncodedExtra, ExtraCheck};
use super::layout::{self, FOOTER_BYTES_MAX, RecordBatchExtent};
use super::message::finish_message;
use super::row::Row;
use super::schema::{
    ALIGNMENT, ENTRY_POINTS_BYTES_MAX, IMAGE_BYTES_MAX, KEY_BYTES_MAX, RECORD_BATCH_BYTES,
    ROWS_PER_RECORD_BATCH,
};
use super::{Columns, ContentKind, DatasetError};
use crate::checksum::crc32c;
use crc_fast::{CrcAlgorithm, Digest};
use flatbuffers::FlatBufferBuilder;
use std::io::Write;
use std::sync::Arc;

/// A complete part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedPart<W> {
    /// The sink, flushed.
    pub sink: W,
    /// Rows.
    pub samples: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// For [`PartEntry::tail_crc32c`](super::PartEntry::tail_crc32c).
    pub tail_crc32c: u32,
}

/// Writes one part.
pub struct PartEncoder<W: Write> {
    sink: Metered<W>,
    columns: Arc<Columns>,
    extra_check: ExtraCheck,
    head_crc32c: u32,
    record_batches: Vec<RecordBatchExtent>,
    pending: Vec<Row>,
    /// Checksum of the content of each row, computed while the content is still in the CPU cache.
    pending_crc32c: Vec<u32>,
    pending_bytes: u64,
    samples: u64,
    /// Whether content stays in its own files, so that only its checksum is written.
    in_place: bool,
    /// Bytes of the content that is not written.
    left_bytes: u64,
}

impl<W: Write> PartEncoder<W> {
    /// Starts a part: writes the magic number and the schema.
    pub fn new(sink: W, columns: Arc<Columns>) -> Result<Self, DatasetError> {
        columns.check().map_err(|problem| DatasetError::Columns { problem })?;
        let mut sink = Metered { sink, position: 0, crc: None };
        sink.start_crc();
        sink.put(layout::HEAD_MAGIC)?;
        let message = {
            let mut builder = FlatBufferBuilder::new();
            let schema = arrow_ipc::convert::IpcSchemaEncoder::new()
                .schema_to_fb_offset(&mut builder, &columns.schema());
            finish_message(builder, arrow_ipc::MessageHeader::Schema, schema.as_union_value(), 0)
        };
        sink.put_message(&message)?;
        let head_crc32c = sink.end_crc();
        Ok(Self {
            in_place: columns.root().is_some(),
            left_bytes: 0,
            sink,
            columns,
            extra_check: ExtraCheck::default(),
            head_crc32c,
            record_batches: Vec::new(),
            pending: Vec::new(),
            pending_crc32c: Vec::new(),
            pending_bytes: 0,
            samples: 0,
        })
    }

    /// Bytes of the part so far, including rows that wait for their record batch and content that
    /// is not written.
    pub fn bytes(&self) -> u64 {
        self.sink.position + self.pending_bytes + self.left_bytes
    }

    /// Rows so far.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Adds a row; a full record batch is written out.
    pub fn push(&mut self, row: Row) -> Result<(), DatasetError> {
        self.check_row(&row)?;
        let bytes = row.bytes();
        let is_full = self.pending.len() == ROWS_PER_RECORD_BATCH
            || self.pending_bytes + bytes > RECORD_BATCH_BYTES;
        if is_full && !self.pending.is_empty() {
            self.write_record_batch()?;
        }
        self.pending_bytes += bytes;
        self.samples += 1;
        self.pending_crc32c.push(crc32c(&row.image));
        self.pending.push(row);
        Ok(())
    }

    /// Writes the remaining rows and the footer, and returns the sink.
    pub fn finish(mut self) -> Result<FinishedPart<W>, DatasetError> {
        if !self.pending.is_empty() {
            self.write_record_batch()?;
        }
        self.sink.start_crc();
        self.sink.put(layout::END_OF_STREAM)?;
        let footer = layout::footer(&self.columns, self.head_crc32c, &self.record_batches);
        if footer.len() as u64 > FOOTER_BYTES_MAX {
            let (got, batches) = (footer.len(), self.record_batches.len());
            let problem = format!(
                "a footer of {got} bytes for {batches} record batches, the limit is \
                 {FOOTER_BYTES_MAX}; make parts smaller"
            );
            return Err(DatasetError::Columns { problem });
        }
        self.sink.put(&footer)?;
        let length = i32::try_from(footer.len()).expect("at most FOOTER_BYTES_MAX");
        self.sink.put(&length.to_le_bytes())?;
        self.sink.put(layout::TAIL_MAGIC)?;
        let tail_crc32c = self.sink.end_crc();
        self.sink.sink.flush().map_err(DatasetError::Write)?;
        Ok(FinishedPart {
            bytes: self.sink.position,
            samples: self.samples,
            tail_crc32c,
            sink: self.sink.sink,
        })
    }

    fn write_record_batch(&mut self) -> Result<(), DatasetError> {
        let rows = std::mem::take(&mut self.pending);
        let crc32c_of_rows = std::mem::take(&mut self.pending_crc32c);
        self.pending_bytes = 0;
        let extra = encode_extra::encode(&self.columns, &rows)?;
        let core = CoreBuffers::of(&rows, &crc32c_of_rows, self.in_place);
        if self.in_place {
            self.left_bytes += rows.iter().map(|row| row.image.len() as u64).sum::<u64>();
        }
        let body_bytes = core.body_bytes() + extra.body.len() as u64;
        let offset = self.sink.position;
        self.sink.start_crc();
        self.sink.put_message(&core.message(rows.len(), &extra))?;
        let metadata_bytes = self.sink.position - offset;
        for buffer in &core.buffers {
            match buffer {
                Buffer::Bytes(bytes) => self.sink.put(bytes)?,
                Buffer::Images(0) => {}
                Buffer::Images(_) => {
                    for row in &rows {
                        self.sink.put_unchecked(&row.image)?;
                    }
                }
            }
            self.sink.pad()?;
        }
        let rest_crc32c = self.sink.end_crc();
        self.sink.put_unchecked(&extra.body)?;
        self.record_batches.push(RecordBatchExtent {
            offset,
            metadata_bytes,
            body_bytes,
            rows: u32::try_from(rows.len()).expect("at most ROWS_PER_RECORD_BATCH rows"),
            rest_crc32c,
            extra_crc32c: extra.columns.into_iter().map(|at| crc32c(&extra.body[at])).collect(),
        });
        Ok(())
    }

    fn check_row(&mut self, row: &Row) -> Result<(), DatasetError> {
        let entry_points_bytes = row.entry_points.as_ref().map(|bytes| bytes.len() as u64);
        let kind = self.columns.kind;
        let problem = if row.key.is_empty() {
            "the key is empty".to_owned()
        } else if row.key.len() > KEY_BYTES_MAX {
            format!("the key has {} bytes, the limit is {KEY_BYTES_MAX}", row.key.len())
        } else if row.image.is_empty() != (kind == ContentKind::None) {
            let bytes = row.image.len();
            format!(
                "the content ({}) has {}",
                kind.name(),
                match bytes {
                    0 => "no bytes".to_owned(),
                    bytes => format!("{bytes} bytes"),
                }
            )
        } else if row.image.len() as u64 > IMAGE_BYTES_MAX {
            let bytes = row.image.len();
            format!("the {} has {bytes} bytes, the limit is {IMAGE_BYTES_MAX}", kind.name())
        } else if row.label.is_some_and(i32::is_negative) {
            "the label is negative".to_owned()
        } else if entry_points_bytes == Some(0) {
            "the entry points have no bytes".to_owned()
        } else if entry_points_bytes > Some(ENTRY_POINTS_BYTES_MAX) {
            format!("more than {ENTRY_POINTS_BYTES_MAX} bytes of entry points")
        } else if let Err(problem) = self.extra_check.check(&self.columns, row.extra.as_ref()) {
            problem
        } else {
            return Ok(());
        };
        Err(DatasetError::Row { key: row.key.clone(), problem })
    }
}

/// A buffer of a record batch's body.
enum Buffer {
    Bytes(Vec<u8>),
    /// The images of the rows, one after another: their total length in bytes.
    Images(u64),
}

impl Buffer {
    fn bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Images(bytes) => *bytes,
        }
    }
}

/// The buffers of a record batch in the order of `BufferRole`.
struct CoreBuffers {
    buffers: [Buffer; 13],
    /// Rows without a value, for each column.
    nulls: [usize; 5],
}

impl CoreBuffers {
    /// With `in_place`, the buffers exclude the content of the rows, whose checksums are `crc32c`.
    fn of(rows: &[Row], crc32c: &[u32], in_place: bool) -> Self {
        let mut key_offsets = 0_i32.to_le_bytes().to_vec();
        let mut keys = Vec::new();
        let mut image_offsets = 0_i64.to_le_bytes().to_vec();
        let mut image_bytes = 0_u64;
        let mut labels = Vec::new();
        let crcs = crc32c.iter().flat_map(|crc| crc.to_le_bytes()).collect();
        let mut entry_offsets = 0_i32.to_le_bytes().to_vec();
        let mut entries = Vec::new();
        for row in rows {
            keys.extend_from_slice(row.key.as_bytes());
            let end = i32::try_from(keys.len()).expect("rows and keys are bounded to 1 MiB");
            key_offsets.extend_from_slice(&end.to_le_bytes());
            image_bytes += if in_place { 0 } else { row.image.len() as u64 };
            let end = i64::try_from(image_bytes).expect("images are in memory, so below 2^63");
            image_offsets.extend_from_slice(&end.to_le_bytes());
            labels.extend_from_slice(&row.label.unwrap_or(0).to_le_bytes());
            entries.extend_from_slice(row.entry_points.as_deref().unwrap_or_default());
            let end = i32::try_from(entries.len()).expect("bounded by RECORD_BATCH_BYTES");
            entry_offsets.extend_from_slice(&end.to_le_bytes());
        }
        let (label_validity, label_nulls) = validity(rows, |row| row.label.is_some());
        let (entry_validity, entry_nulls) = validity(rows, |row| row.entry_points.is_some());
        let no_validity = || Buffer::Bytes(Vec::new());
        let buffers = [
            no_validity(),
            Buffer::Bytes(key_offsets),
            Buffer::Bytes(keys),
            no_validity(),
            Buffer::Bytes(image_offsets),
            Buffer::Images(image_bytes),
            Buffer::Bytes(label_validity),
            Buffer::Bytes(labels),
            no_validity(),
            Buffer::Bytes(crcs),
            Buffer::Bytes(entry_validity),
            Buffer::Bytes(entry_offsets),
            Buffer::Bytes(entries),
        ];
        Self { buffers, nulls: [0, 0, label_nulls, 0, entry_nulls] }
    }

    fn body_bytes(&self) -> u64 {
        self.buffers.iter().map(|buffer| buffer.bytes().next_multiple_of(ALIGNMENT)).sum()
    }

    /// The flatbuffer that describes the record batch, further columns included.
    fn message(&self, rows: usize, extra: &EncodedExtra) -> Vec<u8> {
        let signed = |value: u64| i64::try_from(value).expect("lengths are below 2^63");
        let mut offset = 0;
        let mut buffers: Vec<_> = self
            .buffers
            .iter()
            .map(|buffer| {
                let start = offset;
                offset += buffer.bytes().next_multiple_of(ALIGNMENT);
                arrow_ipc::Buffer::new(signed(start), signed(buffer.bytes()))
            })
            .collect();
        buffers.extend(extra.buffers.iter().map(|buffer| {
            arrow_ipc::Buffer::new(signed(offset) + buffer.offset(), buffer.length())
        }));
        let of_nulls = |nulls| arrow_ipc::FieldNode::new(signed(rows as u64), signed(nulls as u64));
        let mut nodes = self.nulls.map(of_nulls).to_vec();
        nodes.extend_from_slice(&extra.nodes);
        let body_bytes = offset + extra.body.len() as u64;
        let mut builder = FlatBufferBuilder::new();
        let buffers = builder.create_vector(&buffers);
        let nodes = builder.create_vector(&nodes);
        let batch = {
            let mut batch = arrow_ipc::RecordBatchBuilder::new(&mut builder);
            batch.add_length(signed(rows as u64));
            batch.add_nodes(nodes);
            batch.add_buffers(buffers);
            batch.finish()
        };
        let header = arrow_ipc::MessageHeader::RecordBatch;
        finish_message(builder, header, batch.as_union_value(), signed(body_bytes))
    }
}

/// The validity bitmap of a column (empty if every row has a value), and the number of rows without
/// one.
fn validity(rows: &[Row], is_there: impl Fn(&Row) -> bool) -> (Vec<u8>, usize) {
    let mut bitmap = vec![0_u8; rows.len().div_ceil(8)];
    let mut nulls = 0;
    for (index, row) in rows.iter().enumerate() {
        if is_there(row) {
            bitmap[index / 8] |= 1 << (index % 8);
        } else {
            nulls += 1;
        }
    }
    if nulls == 0 {
        bitmap.clear();
    }
    (bitmap, nulls)
}

/// A sink that tracks its position and, between start and end, a running checksum.
struct Metered<W> {
    sink: W,
    position: u64,
    crc: Option<Digest>,
}

impl<W: Write> Metered<W> {
    fn start_crc(&mut self) {
        self.crc = Some(Digest::new(CrcAlgorithm::Crc32Iscsi));
    }

    fn end_crc(&mut self) -> u32 {
        let digest = self.crc.take().expect("end_crc follows start_crc");
        u32::try_from(digest.finalize()).expect("a CRC-32 fits 32 bits")
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), DatasetError> {
        if let Some(crc) = &mut self.crc {
            crc.update(bytes);
        }
        self.put_unchecked(bytes)
    }

    /// Writes bytes that are not part of the running checksum.
    fn put_unchecked(&mut self, bytes: &[u8]) -> Result<(), DatasetError> {
        self.sink.write_all(bytes).map_err(DatasetError::Write)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    /// Writes zeros up to the next aligned position.
    fn pad(&mut self) -> Result<(), DatasetError> {
        let missing = self.position.next_multiple_of(ALIGNMENT) - self.position;
        let zeros = [0; ALIGNMENT as usize];
        self.put(&zeros[..usize::try_from(missing).expect("less than ALIGNMENT")])
    }

    /// Writes an encapsulated message: continuation marker, length, flatbuffer, padding.
    fn put_message(&mut self, message: &[u8]) -> Result<(), DatasetError> {
        let start = self.position + layout::MESSAGE_PREFIX_BYTES;
        let end = (start + message.len() as u64).next_multiple_of(ALIGNMENT);
        let length = i32::try_from(end - start).expect("a message is a few kilobytes");
        self.put(&layout::CONTINUATION)?;
        self.put(&length.to_le_bytes())?;
        self.put(message)?;
        self.pad()
    }
}
