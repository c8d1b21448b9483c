//! Compares the manifest with a part that is unchanged since it was packed.
//!
//! The checksum of a manifest detects accidental changes, but does not prove that the manifest is
//! correct.

use super::DamageLocation;
use super::diagnose::{cause_of, region};
use meetpoint_format::checksum::crc32c;
use meetpoint_format::dataset::{
    BufferRole, Columns, ExtraBytes, Manifest, PartBytes, PartEntry, PartLayout, RecordBatchExtent,
    RecordBatchMetadata,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// What all parts together have, to be compared with the manifest.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Sums {
    image_bytes: u64,
    image_bytes_max: u64,
    entry_points: u64,
    entry_points_bytes: u64,
}

impl Sums {
    /// Adds those of other parts.
    pub(super) fn add(&mut self, other: &Self) {
        self.image_bytes += other.image_bytes;
        self.image_bytes_max = self.image_bytes_max.max(other.image_bytes_max);
        self.entry_points += other.entry_points;
        self.entry_points_bytes += other.entry_points_bytes;
    }

    /// What of the manifest is not so.
    pub(super) fn differences(&self, manifest: &Manifest) -> Vec<String> {
        let stored = manifest.stored.as_ref();
        let entry_points = stored.map(|stored| &stored.entry_points);
        let pairs = [
            ("image_bytes", Some(manifest.image_bytes), self.image_bytes),
            ("image_bytes_max", Some(manifest.image_bytes_max), self.image_bytes_max),
            ("stored.entry_points.samples", entry_points.map(|e| e.samples), self.entry_points),
            ("stored.entry_points.bytes", entry_points.map(|e| e.bytes), self.entry_points_bytes),
        ];
        // With content in place, the parts do not contain the image bytes, so those totals are
        // skipped.
        let left = if manifest.is_in_place() { 2 } else { 0 };
        pairs
            .into_iter()
            .skip(left)
            .filter(|(_, said, found)| said.is_some_and(|said| said != *found))
            .map(|(name, said, found)| {
                let said = said.unwrap_or_default();
                format!("{name} is {said}, the parts have {found}; {REMEDY}")
            })
            .collect()
    }
}

const REMEDY: &str = "part and manifest do not belong together: pack again";

/// Compares a part whose SHA-256 is correct with the manifest, and adds it to the totals.
pub(super) fn check(
    part: &dyn PartBytes,
    entry: &PartEntry,
    manifest: &Manifest,
    sums: &mut Sums,
) -> Vec<(DamageLocation, String)> {
    let layout = match PartLayout::read(0, entry, part) {
        Ok(layout) => layout,
        Err(error) => {
            return vec![(DamageLocation::File, format!("{}; {REMEDY}", cause_of(error)))];
        }
    };
    let mut found = Vec::new();
    if let Some(problem) = manifest.differs(&layout.columns) {
        found.push((DamageLocation::File, format!("{problem}; {REMEDY}")));
    }
    if let Some(place) = region(part, layout.head.clone(), layout.head_crc32c, "Arrow schema") {
        found.push((place, format!("its checksum differs from that in the footer; {REMEDY}")));
    }
    let mut first_row = 0;
    for batch in &layout.record_batches {
        let rows = RecordBatchRows { entry, manifest, columns: &layout.columns, batch, first_row };
        if let Err(problem) = rows.check(part, sums, &mut found) {
            let Range { start, end } = batch.range();
            let last = first_row + u64::from(batch.rows) - 1;
            let region = format!("tables of rows {first_row} to {last}");
            found.push((
                DamageLocation::Bytes { start, end, region },
                format!("{problem}; {REMEDY}"),
            ));
        }
        first_row += u64::from(batch.rows);
    }
    found
}

/// A record batch that is being checked.
struct RecordBatchRows<'a> {
    entry: &'a PartEntry,
    manifest: &'a Manifest,
    columns: &'a Columns,
    batch: &'a RecordBatchExtent,
    first_row: u64,
}

impl RecordBatchRows<'_> {
    /// Adds the problems of single rows to `found`, one row per kind of problem; the error is a
    /// problem of the whole batch.
    fn check(
        &self,
        part: &dyn PartBytes,
        sums: &mut Sums,
        found: &mut Vec<(DamageLocation, String)>,
    ) -> Result<(), String> {
        let metadata =
            RecordBatchMetadata::read(0, &self.entry.file, self.batch, part).map_err(cause_of)?;
        if metadata.crc32c() != self.batch.rest_crc32c {
            return Err("their checksum differs from that in the footer".to_owned());
        }
        self.check_extra(part, &metadata)?;
        let table = metadata.rows()?;
        let images = metadata.buffer(BufferRole::ImageData);
        let (first, last) = (table.image_offsets.first(), table.image_offsets.last());
        if first != Some(&images.start) || last != Some(&images.end) {
            return Err("the image data have bytes that belong to no row".to_owned());
        }
        let lengths = table.image_offsets.windows(2).map(|pair| pair[1] - pair[0]);
        let mut wrong = BTreeMap::new();
        for ((row, bytes), label) in (0..).zip(lengths).zip(&table.labels) {
            sums.image_bytes += bytes;
            sums.image_bytes_max = sums.image_bytes_max.max(bytes);
            for (kind, problem) in self.wrong_with(bytes, *label, metadata.key(row)) {
                // One row per kind is enough; a false manifest entry would list all rows.
                wrong.entry(kind).or_insert((row, problem));
            }
        }
        for (row, problem) in wrong.into_values() {
            found.push((self.row(&metadata, row), format!("{problem}; {REMEDY}")));
        }
        if let Some(entry_points) = metadata.entry_points()? {
            for row in (0..self.batch.rows as usize).filter_map(|row| entry_points.row(row)) {
                sums.entry_points += 1;
                sums.entry_points_bytes += row.as_ref().len() as u64;
            }
        }
        Ok(())
    }

    /// Reads the further columns one by one.
    fn check_extra(
        &self,
        part: &dyn PartBytes,
        metadata: &RecordBatchMetadata,
    ) -> Result<(), String> {
        let table = metadata.extra(self.columns)?;
        for (column, field) in self.columns.extra.fields().iter().enumerate() {
            let broken = |problem: String| format!("column `{}`: {problem}", field.name());
            let range = table.range(column).map_err(broken)?;
            let bytes = usize::try_from(range.end - range.start).expect("it has a limit");
            let mut bytes = ExtraBytes::zeroed(bytes);
            part.read_exact_at(0, range.start, bytes.as_mut_slice())
                .map_err(|error| broken(format!("cannot be read: {error}")))?;
            if crc32c(bytes.as_slice()) != self.batch.extra_crc32c[column] {
                return Err(broken("its checksum differs from that in the footer".to_owned()));
            }
            table.decode(column, field, bytes).map_err(broken)?;
        }
        Ok(())
    }

    /// The problems of a row, by kind.
    fn wrong_with(
        &self,
        bytes: u64,
        label: Option<i32>,
        key: Result<&str, String>,
    ) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        let longest = self.manifest.image_bytes_max;
        if bytes > longest {
            let problem = format!("an image of {bytes} bytes, image_bytes_max is {longest}");
            wrong.push(("length", problem));
        }
        let labels = self.manifest.labels.len();
        let is_known = |label: i32| usize::try_from(label).is_ok_and(|label| label < labels);
        if let Some(label) = label.filter(|label| !is_known(*label)) {
            wrong.push(("label", format!("label {label}, dataset.json names {labels} labels")));
        }
        if let Err(problem) = key {
            wrong.push(("key", problem));
        }
        wrong
    }

    fn row(&self, metadata: &RecordBatchMetadata, row: u32) -> DamageLocation {
        let key = metadata.key(row).unwrap_or("(unreadable)").to_owned();
        DamageLocation::Row { row: self.first_row + u64::from(row), key }
    }
}
