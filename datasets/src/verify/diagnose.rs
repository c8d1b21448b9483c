//! Locates damage in a part that differs from its SHA-256, by the checksums inside it.

use super::DamageLocation;
use super::locate::changed_byte;
use meetpoint_format::checksum::crc32c;
use meetpoint_format::dataset::{
    BufferRole, Columns, DatasetError, PartBytes, PartEntry, PartLayout, RecordBatchExtent,
    RecordBatchMetadata, RowTable,
};
use std::ops::Range;

/// Longest region that is read for a diagnosis.
const REGION_BYTES_MAX: u64 = 1 << 30;

/// Diagnoses a part whose length is correct but whose SHA-256 is not.
pub(super) fn diagnose(part: &dyn PartBytes, entry: &PartEntry) -> Vec<(DamageLocation, String)> {
    let layout = match PartLayout::read(0, entry, part) {
        Ok(layout) => layout,
        Err(error) => return vec![footer_place(part, entry, error)],
    };
    let mut found = Vec::new();
    if let Some(place) = region(part, layout.head.clone(), layout.head_crc32c, "Arrow schema") {
        found.push((place, damaged("the schema at its beginning")));
    }
    let mut first_row = 0;
    for batch in &layout.record_batches {
        let columns = &layout.columns;
        RecordBatchRows { part, entry, columns, batch, first_row }.diagnose(&mut found);
        first_row += u64::from(batch.rows);
    }
    if found.is_empty() {
        let problem = "its SHA-256 is not that of dataset.json, although every checksum in it is \
                       correct: it is not the file that was packed; restore it";
        found.push((DamageLocation::File, problem.to_owned()));
    }
    found
}

/// Locates damage in the footer, whose start follows from the length before the last magic number,
/// if that is intact.
fn footer_place(
    part: &dyn PartBytes,
    entry: &PartEntry,
    error: DatasetError,
) -> (DamageLocation, String) {
    let mut last = [0; 10];
    let tail_bytes = part
        .read_exact_at(0, entry.bytes.saturating_sub(10), &mut last)
        .ok()
        .and_then(|()| {
            let length: [u8; 4] = last[..4].try_into().expect("4 of 10 bytes");
            u64::try_from(i32::from_le_bytes(length)).ok()
        })
        .map(|length| length + 18)
        .filter(|bytes| (18..=entry.bytes.min(REGION_BYTES_MAX)).contains(bytes));
    let start = entry.bytes - tail_bytes.unwrap_or(entry.bytes.min(10));
    let place = region(part, start..entry.bytes, entry.tail_crc32c, "Arrow footer").unwrap_or(
        DamageLocation::Bytes { start, end: entry.bytes, region: "Arrow footer".to_owned() },
    );
    let cause = cause_of(error);
    (
        place,
        format!("{cause}; its rows cannot be checked without it: restore the part or pack again"),
    )
}

/// Locates the damage of a region by its checksum; `None` if it is intact.
pub(super) fn region(
    part: &dyn PartBytes,
    range: Range<u64>,
    expected: u32,
    name: &str,
) -> Option<DamageLocation> {
    let whole =
        DamageLocation::Bytes { start: range.start, end: range.end, region: name.to_owned() };
    let length = range.end - range.start;
    if length > REGION_BYTES_MAX {
        return Some(whole);
    }
    let length = usize::try_from(length).expect("at most REGION_BYTES_MAX");
    let mut bytes = vec![0; length];
    if part.read_exact_at(0, range.start, &mut bytes).is_err() {
        return Some(whole);
    }
    let got = crc32c(&bytes);
    if got == expected {
        return None;
    }
    Some(match changed_byte(length, got, expected) {
        Some(byte) => {
            let start = range.start + byte.index as u64;
            DamageLocation::Bytes { start, end: start + 1, region: name.to_owned() }
        }
        None => whole,
    })
}

/// A part as it was before one byte changed.
pub(crate) struct Repaired<'a> {
    pub(crate) part: &'a dyn PartBytes,
    pub(crate) offset: u64,
    pub(crate) xor: u8,
}

impl PartBytes for Repaired<'_> {
    fn part_bytes(&self, part: usize) -> std::io::Result<u64> {
        self.part.part_bytes(part)
    }

    fn read_exact_at(&self, part: usize, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
        self.part.read_exact_at(part, offset, into)?;
        let index = self.offset.checked_sub(offset).and_then(|index| usize::try_from(index).ok());
        if let Some(byte) = index.and_then(|index| into.get_mut(index)) {
            *byte ^= self.xor;
        }
        Ok(())
    }
}

/// A record batch that is being diagnosed.
struct RecordBatchRows<'a> {
    part: &'a dyn PartBytes,
    entry: &'a PartEntry,
    columns: &'a Columns,
    batch: &'a RecordBatchExtent,
    first_row: u64,
}

impl RecordBatchRows<'_> {
    fn diagnose(&self, found: &mut Vec<(DamageLocation, String)>) {
        let read = RecordBatchMetadata::read(0, &self.entry.file, self.batch, self.part);
        let mut metadata = match read {
            Ok(metadata) => metadata,
            Err(error) => {
                let start = self.batch.offset;
                let end = start + self.batch.metadata_bytes;
                found.push((
                    DamageLocation::Bytes { start, end, region: self.words("header") },
                    format!("{}; restore the part or pack again", cause_of(error)),
                ));
                return;
            }
        };
        let got = metadata.crc32c();
        if got != self.batch.rest_crc32c {
            let length = metadata.bytes().len();
            let Some(byte) = changed_byte(length, got, self.batch.rest_crc32c) else {
                let Range { start, end } = self.batch.range();
                let region = self.words("header, keys, labels or offsets");
                found.push((
                    DamageLocation::Bytes { start, end, region },
                    damaged("the header or several bytes (so that its rows cannot be checked)"),
                ));
                return;
            };
            let offset = metadata.part_offset(byte.index);
            // With the byte corrected, the tables can be read, so the images are checked as well.
            let repaired = Repaired { part: self.part, offset, xor: byte.xor };
            match RecordBatchMetadata::read(0, &self.entry.file, self.batch, &repaired) {
                Ok(repaired) => metadata = repaired,
                Err(error) => {
                    let region = self.words("header");
                    let place = DamageLocation::Bytes { start: offset, end: offset + 1, region };
                    let problem = format!("{}; restore the part or pack again", cause_of(error));
                    found.push((place, problem));
                    return;
                }
            }
            found.push(self.place_of_byte(&metadata, offset));
        }
        self.check_extra(&metadata, found);
        match metadata.rows() {
            Ok(table) => self.check_images(&metadata, &table, found),
            Err(problem) => {
                let Range { start, end } = self.batch.range();
                found.push((
                    DamageLocation::Bytes { start, end, region: self.words("tables") },
                    format!("{problem}; restore the part or pack again"),
                ));
            }
        }
    }

    /// Compares each further column with its checksum.
    fn check_extra(
        &self,
        metadata: &RecordBatchMetadata,
        found: &mut Vec<(DamageLocation, String)>,
    ) {
        let Range { start, end } = self.batch.range();
        let all = |region| DamageLocation::Bytes { start, end, region };
        let table = match metadata.extra(self.columns) {
            Ok(table) => table,
            Err(problem) => {
                let problem = format!("{problem}; restore the part or pack again");
                found.push((all(self.words("further columns")), problem));
                return;
            }
        };
        for (column, field) in self.columns.extra.fields().iter().enumerate() {
            let name = self.words(&format!("column `{}`", field.name()));
            let expected = self.batch.extra_crc32c[column];
            let place = match table.range(column) {
                Ok(range) => region(self.part, range, expected, &name),
                Err(_) => Some(all(name)),
            };
            if let Some(place) = place {
                found.push((place, damaged("a further column")));
            }
        }
    }

    fn check_images(
        &self,
        metadata: &RecordBatchMetadata,
        table: &RowTable,
        found: &mut Vec<(DamageLocation, String)>,
    ) {
        let mut image = Vec::new();
        let pairs = table.image_offsets.windows(2);
        for ((row, pair), expected) in (0..self.batch.rows).zip(pairs).zip(&table.crc32c) {
            let bytes = usize::try_from(pair[1] - pair[0]).expect("at most IMAGE_BYTES_MAX");
            image.resize(bytes, 0);
            let problem = match self.part.read_exact_at(0, pair[0], &mut image) {
                Err(error) => format!("the image cannot be read: {error}"),
                Ok(()) if crc32c(&image) == *expected => continue,
                Ok(()) => match changed_byte(bytes, crc32c(&image), *expected) {
                    Some(byte) => format!("the image (byte {} of {bytes})", byte.index),
                    None => format!("the image ({bytes} bytes)"),
                },
            };
            found.push((self.row(metadata, row), damaged(&problem)));
        }
        let images = metadata.buffer(BufferRole::ImageData);
        let (first, last) = (table.image_offsets.first(), table.image_offsets.last());
        if first != Some(&images.start) || last != Some(&images.end) {
            let region = self.words("images, beyond those of the rows");
            let place = DamageLocation::Bytes { start: images.start, end: images.end, region };
            found.push((place, damaged("bytes that belong to no row")));
        }
    }

    /// The row or region of a damaged byte outside the images, according to the repaired metadata.
    fn place_of_byte(
        &self,
        metadata: &RecordBatchMetadata,
        offset: u64,
    ) -> (DamageLocation, String) {
        let role =
            BufferRole::ALL.into_iter().find(|role| metadata.buffer(*role).contains(&offset));
        let element = |role: BufferRole, width: u64| {
            let index = (offset - metadata.buffer(role).start) / width;
            u32::try_from(index).ok().filter(|row| *row < self.batch.rows)
        };
        let (row, what) = match role {
            Some(BufferRole::KeyData) => {
                let holds =
                    |row: &u32| metadata.key_range(*row).is_ok_and(|range| range.contains(&offset));
                ((0..self.batch.rows).find(holds), "the key")
            }
            Some(role @ BufferRole::KeyOffsets) => (element(role, 4), "the key's offset"),
            Some(role @ BufferRole::ImageOffsets) => (element(role, 8), "the image's offset"),
            Some(role @ BufferRole::LabelData) => (element(role, 4), "the label"),
            Some(role @ BufferRole::CrcData) => (element(role, 4), "the image's checksum"),
            Some(role @ BufferRole::EntryPointsOffsets) => {
                (element(role, 4), "the offset of the entry points")
            }
            Some(BufferRole::EntryPointsData) => {
                let start = metadata.buffer(BufferRole::EntryPointsData).start;
                let byte = u32::try_from(offset - start).unwrap_or(u32::MAX);
                let table = metadata.entry_points().ok().flatten();
                (table.and_then(|table| table.row_of(byte)), "the entry points")
            }
            Some(BufferRole::EntryPointsValidity) => (None, "marks of rows without entry points"),
            Some(BufferRole::LabelValidity) => (None, "marks of rows without a label"),
            Some(_) => (None, "a validity bitmap"),
            None if offset < self.batch.offset + self.batch.metadata_bytes => (None, "header"),
            None => (None, "padding or an unknown column"),
        };
        match row {
            Some(row) => (self.row(metadata, row), damaged(&format!("{what} (byte {offset})"))),
            None => {
                let region = self.words(what);
                (
                    DamageLocation::Bytes { start: offset, end: offset + 1, region },
                    damaged("one byte"),
                )
            }
        }
    }

    fn row(&self, metadata: &RecordBatchMetadata, row: u32) -> DamageLocation {
        let key = match metadata.key(row) {
            Ok(key) => key.to_owned(),
            Err(problem) => format!("(unreadable: {problem})"),
        };
        DamageLocation::Row { row: self.first_row + u64::from(row), key }
    }

    /// The description of a region of this record batch, with its rows.
    fn words(&self, region: &str) -> String {
        let last = self.first_row + u64::from(self.batch.rows) - 1;
        format!("{region} of rows {} to {last}", self.first_row)
    }
}

/// The text of an error without the name of the part, which every problem contains.
pub(crate) fn cause_of(error: DatasetError) -> String {
    match error {
        DatasetError::Part { problem, .. } => problem,
        DatasetError::Io { source, .. } => format!("cannot be read: {source}"),
        error => error.to_string(),
    }
}

fn damaged(what: &str) -> String {
    format!("{what} changed since it was packed; restore the part or pack again")
}
