//! The Parquet files of a dataset as one table.

use super::pages::RowGroup;
use super::value_ranges::{ByteRange, ValueRanges};
use crate::Error;
use crate::source::OpenFile;
use crate::source::budget::{MemoryBudget, Reservation};
use crate::source::rows::files::{FileSchema, Files};
use crate::source::rows::hugging_face::Features;
use crate::source::rows::paths::Paths;
use crate::source::rows::plain::{PlainError, plain_batch, plain_schema};
use crate::source::rows::row_source::bytes_at;
use crate::source::rows::table::{Batch, Contents, guarded, open_file, too_large, unreadable};
use crate::source::rows::{ContentColumn, Table, malformed};
use crate::store::StorePath;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use std::fs::File;
use std::sync::Arc;

/// Target bytes of a batch, estimated from the average row of its row group.
const BATCH_BYTES: u64 = 8 << 20;
/// Maximum number of rows of a batch.
const BATCH_ROWS_MAX: u64 = 1024;

/// The files of a dataset.
pub(super) struct ParquetTable {
    files: Files,
    current: Option<Shard>,
    content: Option<ContentColumn>,
    /// The positions of the content's values.
    places: ValueRanges,
    budget: MemoryBudget,
    /// Memory of the last returned batch.
    unfolded: Reservation,
}

/// An open file.
struct Shard {
    path: StorePath,
    opened: Arc<OpenFile>,
    file: Arc<File>,
    metadata: ArrowReaderMetadata,
    next_group: usize,
    reader: Option<ParquetRecordBatchReader>,
    /// Rows read so far.
    rows: u64,
    /// Length of the file.
    bytes: u64,
    budget: MemoryBudget,
}

impl Shard {
    fn open(path: &StorePath, budget: &MemoryBudget) -> Result<Self, Error> {
        let (opened, bytes) = open_file(path)?;
        if bytes == 0 {
            return Err(malformed(path, None, "is empty"));
        }
        let file = opened.file.try_clone().map_err(|error| unreadable(path, error))?;
        let metadata = guarded(path, "footer", || {
            ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())
                .map_err(|error| fault(path, &error.to_string()))
        })?;
        let groups = metadata.metadata().row_groups();
        let is_sound = groups.iter().all(|group| group.num_rows() >= 0 && is_within(group, bytes));
        if !is_sound {
            let problem = "the footer names row groups outside of the file; it is truncated or \
                           damaged";
            return Err(malformed(path, None, problem));
        }
        let path = path.clone();
        let file = Arc::new(file);
        let (reader, budget) = (None, budget.clone());
        Ok(Self { path, opened, file, metadata, next_group: 0, reader, rows: 0, bytes, budget })
    }

    /// The next rows, of the columns in `mask` or of all. Records the positions of the values of
    /// the leaf column `placed`.
    fn next(
        &mut self,
        mask: &ProjectionMask,
        placed: Option<(usize, &ValueRanges)>,
    ) -> Result<Option<RecordBatch>, Error> {
        loop {
            if let Some(reader) = &mut self.reader {
                let path = &self.path;
                let group = self.next_group - 1;
                let next = guarded(path, "row group", || {
                    let next = reader.next().transpose();
                    next.map_err(|error| failed(path, group, &error, &self.budget))
                })?;
                if let Some(batch) = next {
                    self.rows += batch.num_rows() as u64;
                    return Ok(Some(batch));
                }
                self.reader = None;
            }
            let metadata = self.metadata.metadata();
            if self.next_group == metadata.num_row_groups() {
                return Ok(None);
            }
            let index = self.next_group;
            self.next_group += 1;
            let group = metadata.row_group(index);
            let rows = u64::try_from(group.num_rows()).unwrap_or(0).max(1);
            let bytes = u64::try_from(group.total_byte_size()).unwrap_or(0);
            let batch_rows = (BATCH_BYTES / (bytes / rows).max(1)).clamp(1, BATCH_ROWS_MAX);
            let path = &self.path;
            let file = Arc::clone(&self.file);
            self.reader = Some(guarded(path, "row group", || {
                let fields = self.metadata.schema().fields();
                let levels = parquet_to_arrow_field_levels(
                    self.metadata.parquet_schema(),
                    mask.clone(),
                    Some(fields),
                );
                let levels = levels.map_err(|error| fault(path, &error.to_string()))?;
                let group = RowGroup { file, metadata, index, placed, budget: &self.budget };
                ParquetRecordBatchReader::try_new_with_row_groups(
                    &levels,
                    &group,
                    batch_rows as usize,
                    None,
                )
                .map_err(|error| failed(path, index, &error, &self.budget))
            })?);
        }
    }

    /// The leaf column that contains the content.
    fn leaf(&self, content: ContentColumn) -> Option<usize> {
        let schema = self.metadata.parquet_schema();
        let field = self.metadata.schema().field(content.column);
        let mut wanted = vec![field.name().clone()];
        if let (Some(child), arrow_schema::DataType::Struct(children)) =
            (content.bytes, field.data_type())
        {
            wanted.push(children.get(child)?.name().clone());
        }
        (0..schema.num_columns()).find(|leaf| schema.column(*leaf).path().parts() == wanted)
    }

    /// The leaf columns below a column of the Arrow schema, or below one of its children.
    fn mask(&self, column: usize, child: Option<usize>) -> ProjectionMask {
        let schema = self.metadata.parquet_schema();
        let field = self.metadata.schema().field(column);
        let child = child.and_then(|child| match field.data_type() {
            arrow_schema::DataType::Struct(children) => children.get(child),
            _ => None,
        });
        let mut wanted = vec![field.name().clone()];
        wanted.extend(child.map(|child| child.name().clone()));
        let leaves = (0..schema.num_columns())
            .filter(|leaf| schema.column(*leaf).path().parts().starts_with(&wanted));
        ProjectionMask::leaves(schema, leaves)
    }
}

/// The position of the content of each row; `None` if the file does not contain it unchanged.
fn places_in(
    columns: &RecordBatch,
    content: ContentColumn,
    places: &ValueRanges,
) -> Option<Vec<Option<ByteRange>>> {
    let column = columns.column(content.column);
    let (parent, array) = match content.bytes {
        None => (None, column),
        Some(child) => (Some(column), column.as_struct().column(child)),
    };
    let mut found = Vec::with_capacity(array.len());
    let mut is_whole = true;
    for row in 0..array.len() {
        let is_there = array.is_valid(row) && parent.is_none_or(|parent| parent.is_valid(row));
        let place = is_there.then(|| places.next(bytes_at(array, row)?.len() as u64));
        is_whole &= !matches!(place, Some(None));
        found.push(place.flatten());
    }
    is_whole.then_some(found)
}

/// Whether the chunks of a row group are within a file of `bytes` bytes.
fn is_within(group: &parquet::file::metadata::RowGroupMetaData, bytes: u64) -> bool {
    group.columns().iter().all(|chunk| {
        // `byte_range` panics on negative numbers.
        let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
        let length = chunk.compressed_size();
        let range = u64::try_from(start).ok().zip(u64::try_from(length).ok());
        chunk.data_page_offset() >= 0
            && range.is_some_and(|(start, length)| {
                start.checked_add(length).is_some_and(|end| end <= bytes)
            })
    })
}

/// The error of a row group; the crate retains only the text of a memory refusal.
fn failed(
    path: &StorePath,
    group: usize,
    error: &dyn std::fmt::Display,
    budget: &MemoryBudget,
) -> Error {
    match budget.take_refusal() {
        Some(over) => too_large(path, Some(format!("row group {group}")), None, over),
        None => fault(path, &format!("row group {group}: {error}")),
    }
}

fn plain_error(path: &StorePath, error: PlainError) -> Error {
    match error {
        PlainError::OverBudget(over) => too_large(path, None, None, over),
        PlainError::Arrow(error) => fault(path, &error.to_string()),
    }
}

fn fault(path: &StorePath, problem: &str) -> Error {
    malformed(path, None, format!("{problem}; the file is truncated, damaged or of another kind"))
}

impl ParquetTable {
    /// Reads the footer of each file.
    pub(super) fn open(files: Vec<StorePath>, budget: MemoryBudget) -> Result<Self, Error> {
        let files = Files::of(files, |path| {
            let shard = Shard::open(path, &budget)?;
            let groups = shard.metadata.metadata().row_groups().iter();
            let rows = groups.map(|group| u64::try_from(group.num_rows()).unwrap_or(0));
            let rows = rows.fold(0, u64::saturating_add);
            Ok(FileSchema { schema: Arc::clone(shard.metadata.schema()), rows, bytes: shard.bytes })
        })?;
        Ok(Self {
            files,
            current: None,
            content: None,
            places: ValueRanges::default(),
            budget,
            unfolded: Reservation::default(),
        })
    }

    /// Passes a column, or a child of it, to `look` until it needs no more.
    fn look(
        &self,
        column: usize,
        child: Option<usize>,
        mut look: impl FnMut(&ArrayRef) -> bool,
    ) -> Result<(), Error> {
        for path in self.files.paths() {
            let mut shard = Shard::open(path, &self.budget)?;
            let mask = shard.mask(column, child);
            while let Some(batch) = shard.next(&mask, None)? {
                let plain = plain_batch(&batch, &plain_schema(&batch.schema()), &self.budget);
                let (batch, _held) = plain.map_err(|error| plain_error(&shard.path, error))?;
                let array = match child {
                    None => Arc::clone(batch.column(0)),
                    Some(_) => Arc::clone(batch.column(0).as_struct().column(0)),
                };
                if look(&array) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl Table for ParquetTable {
    fn schema(&self) -> &SchemaRef {
        &self.files.schema
    }

    fn features(&self) -> &Features {
        &self.files.features
    }

    fn rows(&self) -> Option<u64> {
        Some(self.files.rows)
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.files.bytes)
    }

    fn first_bytes(&mut self, content: ContentColumn) -> Result<Vec<u8>, Error> {
        let mut first = Vec::new();
        self.look(content.column, content.bytes, |array| {
            let found = (0..array.len()).find(|row| array.is_valid(*row));
            if let Some(row) = found {
                first = bytes_at(array, row).unwrap_or_default().iter().take(16).copied().collect();
            }
            found.is_some()
        })?;
        Ok(first)
    }

    fn are_paths_unique(&mut self, content: ContentColumn) -> Result<bool, Error> {
        let mut seen = Paths::default();
        self.look(content.column, content.path, |array| !seen.add(array))?;
        Ok(seen.are_unique())
    }

    fn start(&mut self, content: Option<ContentColumn>) -> Result<(), Error> {
        self.content = content;
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Batch>, Error> {
        loop {
            let mut shard = match self.current.take() {
                Some(shard) => shard,
                None => {
                    let open = |path: &StorePath| {
                        let shard = Shard::open(path, &self.budget)?;
                        let schema = Arc::clone(shard.metadata.schema());
                        Ok((shard, schema))
                    };
                    let Some(shard) = self.files.open_next(open)? else { return Ok(None) };
                    shard
                }
            };
            let first_row = shard.rows;
            let leaf = self.content.and_then(|content| shard.leaf(content));
            let placed = leaf.map(|leaf| (leaf, &self.places));
            let Some(batch) = shard.next(&ProjectionMask::all(), placed)? else { continue };
            self.unfolded = Reservation::default();
            let plain = plain_batch(&batch, &self.files.schema, &self.budget);
            let (columns, held) = plain.map_err(|error| plain_error(&shard.path, error))?;
            self.unfolded = held;
            let file = shard.path.display().to_string();
            let places = self.content.filter(|_| leaf.is_some());
            let places = places.and_then(|content| places_in(&columns, content, &self.places));
            let contents = match places {
                Some(places) => Contents::Placed { file: Arc::clone(&shard.opened), places },
                None => Contents::Inside,
            };
            self.current = Some(shard);
            return Ok(Some(Batch { file, first_row, columns, contents, noun: "row" }));
        }
    }
}
