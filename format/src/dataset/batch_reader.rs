//! Reads a record batch: its table, keys, entry points and further columns, each compared with its
//! checksum and with the manifest. Never reads its images.

use super::footers::Batch;
use super::in_place::LocationTable;
use super::{
    Columns, DatasetError, EntryPointTable, ExtraBytes, Manifest, PartBytes, RecordBatchMetadata,
    RowTable,
};
use crate::checksum::crc32c;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;

/// Reads one record batch.
pub(super) struct BatchReader<'a> {
    pub(super) batch: &'a Batch,
    pub(super) manifest: &'a Manifest,
    /// The columns in the files.
    pub(super) stored: &'a Columns,
    pub(super) parts: &'a dyn PartBytes,
}

impl BatchReader<'_> {
    /// Reads the record batch without its images and verifies its checksum.
    pub(super) fn metadata(&self) -> Result<RecordBatchMetadata, DatasetError> {
        let Self { batch, parts, .. } = self;
        let metadata =
            RecordBatchMetadata::read(batch.part, self.part_name(), &batch.place, *parts)?;
        let (got, expected) = (metadata.crc32c(), batch.place.rest_crc32c);
        if got != expected {
            let problem = format!(
                "keys, labels or offsets have checksum {got:#010x}, the footer says \
                 {expected:#010x}"
            );
            return Err(self.broken(&problem));
        }
        Ok(metadata)
    }

    /// The table of its rows, checked against the manifest.
    pub(super) fn table(&self, metadata: &RecordBatchMetadata) -> Result<RowTable, DatasetError> {
        let table = metadata.rows().map_err(|problem| self.broken(&problem))?;
        let longest = self.manifest.image_bytes_max;
        if let Some(pair) = table.image_offsets.windows(2).find(|pair| pair[1] - pair[0] > longest)
        {
            let bytes = pair[1] - pair[0];
            let problem = format!("an image of {bytes} bytes, dataset.json says at most {longest}");
            return Err(self.broken(&problem));
        }
        let labels = self.manifest.labels.len();
        let known = |label: &i32| usize::try_from(*label).is_ok_and(|label| label < labels);
        if let Some(label) = table.labels.iter().flatten().find(|label| !known(label)) {
            let problem = format!("label {label}, dataset.json names {labels} labels");
            return Err(self.broken(&problem));
        }
        Ok(table)
    }

    /// The entry points of its rows; `None` when no row has any.
    pub(super) fn entry_points(
        &self,
        metadata: &RecordBatchMetadata,
    ) -> Result<Option<EntryPointTable>, DatasetError> {
        metadata.entry_points().map_err(|problem| self.broken(&problem))
    }

    /// The key of a row.
    pub(super) fn key<'m>(
        &self,
        metadata: &'m RecordBatchMetadata,
        row: u32,
    ) -> Result<&'m str, DatasetError> {
        metadata.key(row).map_err(|problem| self.broken(&problem))
    }

    /// The keys of its rows.
    pub(super) fn keys(&self, metadata: &RecordBatchMetadata) -> Result<Vec<String>, DatasetError> {
        let rows = 0..self.batch.place.rows;
        rows.map(|row| self.key(metadata, row).map(str::to_owned)).collect()
    }

    /// Reads the locations of its images in other files. The positions of further columns must be
    /// cached.
    pub(super) fn places(&self) -> Result<LocationTable, DatasetError> {
        let last = self.stored.extra.fields().len() - 1;
        let column = self.extra_column(last)?;
        LocationTable::parse(&column, self.manifest.image_bytes_max)
            .map_err(|problem| self.broken(&problem))
    }

    /// Caches the positions of its further columns.
    pub(super) fn keep_extra(&self, metadata: &RecordBatchMetadata) -> Result<(), DatasetError> {
        let table = metadata.extra(self.stored).map_err(|problem| self.broken(&problem))?;
        self.batch.extra.get_or_init(|| table);
        Ok(())
    }

    /// Reads further columns by their indices; `schema` is that of the result.
    pub(super) fn extra(
        &self,
        columns: &[usize],
        schema: SchemaRef,
    ) -> Result<RecordBatch, DatasetError> {
        if !columns.is_empty() && self.batch.extra.get().is_none() {
            self.keep_extra(&self.metadata()?)?;
        }
        let columns = columns.iter().map(|column| self.extra_column(*column));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let rows = usize::try_from(self.batch.place.rows).expect("at most 65,536");
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(schema, columns, &options)
            .map_err(|error| self.broken(&format!("{error}; pack again")))
    }

    /// Reads, checks and decodes a further column, whose position must be cached.
    fn extra_column(&self, column: usize) -> Result<ArrayRef, DatasetError> {
        let Self { batch, parts, .. } = self;
        let table = batch.extra.get().expect("it was read before");
        let field = &self.stored.extra.fields()[column];
        let broken = |problem: String| DatasetError::Extra {
            part: self.part_name().to_owned(),
            first_row: batch.first_row,
            last_row: batch.rows().end - 1,
            column: field.name().clone(),
            problem: format!("{problem}; restore the part or pack again"),
        };
        let range = table.range(column).map_err(broken)?;
        let length = usize::try_from(range.end - range.start).expect("it has a limit");
        let mut bytes = ExtraBytes::zeroed(length);
        parts
            .read_exact_at(batch.part, range.start, bytes.as_mut_slice())
            .map_err(|source| DatasetError::Io { part: self.part_name().to_owned(), source })?;
        let (got, expected) = (crc32c(bytes.as_slice()), batch.place.extra_crc32c[column]);
        if got != expected {
            return Err(broken(format!(
                "checksum is {got:#010x}, the footer says {expected:#010x}"
            )));
        }
        table.decode(column, field, bytes).map_err(broken)
    }

    fn part_name(&self) -> &str {
        &self.manifest.parts[self.batch.part].file
    }

    fn broken(&self, problem: &str) -> DatasetError {
        let rows = self.batch.rows();
        DatasetError::Part {
            part: self.part_name().to_owned(),
            problem: format!("rows {} to {}: {problem}", rows.start, rows.end - 1),
        }
    }
}
