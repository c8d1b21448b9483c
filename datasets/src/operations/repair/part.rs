//! Recovers the rows of a damaged part that can be proven intact.
//!
//! A row is recovered if the checksums of its record batch's tables, its further columns and its
//! content are correct. They are evidence even if the checksum of the footer that lists them is
//! unknown: a damaged checksum matches damaged bytes once in four billion times.

use super::Lost;
use crate::Error;
use crate::stored_part::StoredPart;
use crate::verify::cause_of;
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_ipc::convert::try_fb_to_schema;
use meetpoint_format::checksum::crc32c;
use meetpoint_format::dataset::{
    BufferRole, Columns, ExtraBytes, PartBytes, PartEntry, PartLayout, RecordBatchExtent,
    RecordBatchMetadata, Row,
};
use std::path::Path;
use std::sync::Arc;

/// Key of the footer's metadata with the rows of each record batch (`docs/dataset-format.md`).
const RECORD_BATCHES_KEY: &str = "meetpoint.record_batches";
/// Longest footer that is read.
const TAIL_BYTES_MAX: u64 = 1 << 26;
/// Bytes of the end-of-stream marker before a footer, and of the length and magic number after it.
const BESIDE_FOOTER_BYTES: u64 = 18;

/// A part whose footer can be read.
pub(super) struct Part {
    file: StoredPart,
    name: String,
    layout: PartLayout,
    /// Whether its footer matches the manifest.
    pub(super) is_proven: bool,
}

/// The problems that were found.
#[derive(Default)]
pub(super) struct RepairLosses {
    pub(super) lost: Vec<Lost>,
}

impl Part {
    /// Reads the footer of a part: at the position in the manifest, or else at that in the file.
    /// The error is why it cannot be read.
    pub(super) fn open(
        folder: &Path,
        name: &str,
        listed: Option<&PartEntry>,
    ) -> Result<Self, String> {
        let file = StoredPart { path: folder.join(name) };
        let part = |layout, is_proven| {
            let (file, name) = (StoredPart { path: file.path.clone() }, name.to_owned());
            Self { file, name, layout, is_proven }
        };
        let bytes = file.part_bytes(0).map_err(|error| format!("does not open: {error}"))?;
        let known = listed.map(|entry| PartLayout::read(0, entry, &file));
        if let Some(Ok(layout)) = known {
            return Ok(part(layout, true));
        }
        let as_found = entry_as_found(&file, name, bytes)?;
        match PartLayout::read(0, &as_found, &file) {
            Ok(layout) if schemas_differ(&file, &layout) => {
                Err("the schemas at its beginning and in its footer differ".to_owned())
            }
            Ok(layout) => Ok(part(layout, listed.is_none())),
            Err(error) => Err(cause_of(error)),
        }
    }

    /// Whether the schema at its beginning is intact. Rows do not need it.
    pub(super) fn has_sound_head(&self) -> bool {
        let head = &self.layout.head;
        let bytes = (head.end - head.start).min(TAIL_BYTES_MAX);
        let mut read = vec![0; usize::try_from(bytes).expect("bounded by TAIL_BYTES_MAX")];
        let is_read = self.file.read_exact_at(0, head.start, &mut read).is_ok();
        is_read && crc32c(&read) == self.layout.head_crc32c
    }

    /// The columns of its samples.
    pub(super) fn columns(&self) -> &Columns {
        &self.layout.columns
    }

    /// Number of samples according to its footer.
    pub(super) fn samples(&self) -> u64 {
        self.layout.record_batches.iter().map(|batch| u64::from(batch.rows)).sum()
    }

    /// Name of its file.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Passes each sound row, with its position in the part, to `receive`; adds the others to
    /// `found`.
    pub(super) fn rows(
        &self,
        found: &mut RepairLosses,
        receive: &mut dyn FnMut(&mut RepairLosses, u64, Row) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut first_row = 0;
        for batch in &self.layout.record_batches {
            let rows = SalvagedBatch { part: self, batch, first_row };
            match rows.read_tables() {
                Ok(tables) => rows.each(&tables, found, receive)?,
                Err(reason) => found.lost.push(rows.all_lost(reason)),
            }
            first_row += u64::from(batch.rows);
        }
        Ok(())
    }
}

/// Bytes from the end-of-stream marker to the end, according to the footer length at the end of the
/// file.
fn tail_bytes(file: &StoredPart, bytes: u64) -> Option<u64> {
    let mut last = [0; 10];
    file.read_exact_at(0, bytes.checked_sub(10)?, &mut last).ok()?;
    let length = i32::from_le_bytes(last[..4].try_into().expect("4 of 10 bytes"));
    let tail = u64::try_from(length).ok()?.checked_add(BESIDE_FOOTER_BYTES)?;
    (tail <= bytes.min(TAIL_BYTES_MAX)).then_some(tail)
}

/// Whether the footer and the schema at the beginning list different columns; `false` if the schema
/// is damaged.
fn schemas_differ(file: &StoredPart, layout: &PartLayout) -> bool {
    let read = |range: &std::ops::Range<u64>| {
        let bytes = range.end - range.start;
        let mut region = vec![0; usize::try_from(bytes.min(TAIL_BYTES_MAX)).ok()?];
        file.read_exact_at(0, range.start, &mut region).ok()?;
        Some(region)
    };
    let differ = || {
        let (head, tail) = (read(&layout.head)?, read(&layout.tail)?);
        if crc32c(&head) != layout.head_crc32c {
            // The schema at the beginning is damaged, not the footer.
            return Some(false);
        }
        // Magic number and prefix are 8 bytes each.
        let message = arrow_ipc::root_as_message(head.get(16..)?).ok()?;
        let footer = arrow_ipc::root_as_footer(&tail[8..tail.len() - 10]).ok()?;
        let first = try_fb_to_schema(message.header_as_schema()?).ok()?;
        Some(first != try_fb_to_schema(footer.schema()?).ok()?)
    };
    differ().unwrap_or(true)
}

/// The manifest entry of a part, without its SHA-256, derived from the file itself.
fn entry_as_found(file: &StoredPart, name: &str, bytes: u64) -> Result<PartEntry, String> {
    let tail_bytes = tail_bytes(file, bytes)
        .ok_or("it does not end like a part: its end is truncated or damaged")?;
    let mut tail = vec![0; usize::try_from(tail_bytes).expect("bounded by TAIL_BYTES_MAX")];
    file.read_exact_at(0, bytes - tail_bytes, &mut tail)
        .map_err(|error| format!("cannot be read: {error}"))?;
    let footer = &tail[8..tail.len() - 10];
    let footer = arrow_ipc::root_as_footer(footer)
        .map_err(|error| format!("its footer does not parse: {error}"))?;
    let mut pairs = footer.custom_metadata().into_iter().flatten();
    let described = pairs
        .find(|pair| pair.key() == Some(RECORD_BATCHES_KEY))
        .and_then(|pair| pair.value())
        .ok_or_else(|| format!("its footer has no `{RECORD_BATCHES_KEY}`"))?;
    let samples = described
        .split(',')
        .filter_map(|item| item.split_once(':')?.0.parse::<u32>().ok())
        .map(u64::from)
        .sum();
    let (file, sha256) = (name.to_owned(), "0".repeat(64));
    Ok(PartEntry { file, samples, bytes, tail_crc32c: crc32c(&tail), sha256 })
}

/// A record batch whose rows are being recovered.
struct SalvagedBatch<'a> {
    part: &'a Part,
    batch: &'a RecordBatchExtent,
    first_row: u64,
}

/// Everything in a record batch except the content of its samples.
struct Tables {
    metadata: RecordBatchMetadata,
    extra: Option<Arc<RecordBatch>>,
}

impl SalvagedBatch<'_> {
    /// Reads and checks the tables; the error is why none of the rows can be proven intact.
    fn read_tables(&self) -> Result<Tables, String> {
        let Part { file, name, .. } = self.part;
        let metadata = RecordBatchMetadata::read(0, name, self.batch, file).map_err(cause_of)?;
        if metadata.crc32c() != self.batch.rest_crc32c {
            return Err("its keys, labels or offsets are damaged".to_owned());
        }
        let extra = match self.part.columns().has_extra() {
            true => Some(Arc::new(self.read_extra(&metadata)?)),
            false => None,
        };
        Ok(Tables { metadata, extra })
    }

    /// Reads the further columns.
    fn read_extra(&self, metadata: &RecordBatchMetadata) -> Result<RecordBatch, String> {
        let columns = self.part.columns();
        let table = metadata.extra(columns)?;
        let mut arrays = Vec::with_capacity(table.columns());
        for (column, field) in columns.extra.fields().iter().enumerate() {
            let of_column = |problem: String| format!("column `{}`: {problem}", field.name());
            let range = table.range(column).map_err(of_column)?;
            let length = usize::try_from(range.end - range.start).expect("it has a limit");
            let mut bytes = ExtraBytes::zeroed(length);
            self.part
                .file
                .read_exact_at(0, range.start, bytes.as_mut_slice())
                .map_err(|error| of_column(format!("cannot be read: {error}")))?;
            check(bytes.as_mut_slice(), self.batch.extra_crc32c[column]).map_err(of_column)?;
            arrays.push(table.decode(column, field, bytes).map_err(of_column)?);
        }
        let rows = usize::try_from(self.batch.rows).expect("at most 65,536");
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&columns.extra), arrays, &options)
            .map_err(|error| error.to_string())
    }

    fn each(
        &self,
        tables: &Tables,
        found: &mut RepairLosses,
        receive: &mut dyn FnMut(&mut RepairLosses, u64, Row) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Tables { metadata, extra } = tables;
        let read = metadata.rows().and_then(|table| Ok((table, metadata.entry_points()?)));
        let (table, entry_points) = match read {
            Ok(read) => read,
            Err(reason) => {
                found.lost.push(self.all_lost(reason));
                return Ok(());
            }
        };
        let images = metadata.buffer(BufferRole::ImageData);
        debug_assert!(
            table.image_offsets.iter().all(|at| (images.start..=images.end).contains(at))
        );
        for row in 0..self.batch.rows {
            let index = row as usize;
            let place = self.first_row + u64::from(row);
            let key = match metadata.key(row) {
                Ok(key) => key.to_owned(),
                Err(reason) => {
                    found.lost.push(self.lost(place, None, reason));
                    continue;
                }
            };
            let (start, end) = (table.image_offsets[index], table.image_offsets[index + 1]);
            let mut image = vec![0; usize::try_from(end - start).expect("at most 256 MiB")];
            let read = self
                .part
                .file
                .read_exact_at(0, start, &mut image)
                .map_err(|error| format!("cannot be read: {error}"))
                .and_then(|()| check(&image, table.crc32c[index]));
            if let Err(reason) = read {
                found.lost.push(self.lost(place, Some(key), format!("its content: {reason}")));
                continue;
            }
            let entry_points = entry_points.as_ref().and_then(|table| table.row(index));
            let row = Row {
                key,
                image,
                label: table.labels[index],
                entry_points: entry_points.map(|points| points.as_ref().to_vec()),
                extra: extra.as_ref().map(|batch| (Arc::clone(batch), index)),
            };
            receive(found, place, row)?;
        }
        Ok(())
    }

    fn lost(&self, row: u64, key: Option<String>, reason: String) -> Lost {
        let part = self.part.name.clone();
        Lost { part, first_row: row, samples: 1, key, reason }
    }

    fn all_lost(&self, reason: String) -> Lost {
        let (part, samples) = (self.part.name.clone(), u64::from(self.batch.rows));
        Lost { part, first_row: self.first_row, samples, key: None, reason }
    }
}

/// Compares bytes with their checksum.
fn check(bytes: &[u8], expected: u32) -> Result<(), String> {
    let got = crc32c(bytes);
    if got == expected {
        return Ok(());
    }
    Err(format!("checksum is {got:#010x}, expected {expected:#010x}"))
}
