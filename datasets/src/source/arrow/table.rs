//! The Arrow files of a dataset as one table.

use super::shard::Shard;
use crate::Error;
use crate::source::budget::{MemoryBudget, Reservation};
use crate::source::rows::files::{FileSchema, Files};
use crate::source::rows::hugging_face::Features;
use crate::source::rows::paths::Paths;
use crate::source::rows::plain::{PlainError, plain_batch};
use crate::source::rows::row_source::{bytes_at, offsets};
use crate::source::rows::table::{Batch, Contents, read_at, too_large};
use crate::source::rows::{ContentColumn, Table, malformed};
use crate::store::StorePath;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use std::sync::Arc;

/// Bytes of a content that are examined to determine what it is.
const FIRST_BYTES: u64 = 16;

/// The files of a dataset.
pub(super) struct ArrowTable {
    files: Files,
    content: Option<ContentColumn>,
    current: Option<(Shard, u64)>,
    budget: MemoryBudget,
    /// Memory of the last returned batch.
    unfolded: Reservation,
}

impl ArrowTable {
    /// Reads the schema and the length of each file; `features` are those of a side file, or else
    /// those of the first file.
    pub(super) fn open(
        files: Vec<StorePath>,
        features: Option<Features>,
        budget: MemoryBudget,
    ) -> Result<Self, Error> {
        let mut files = Files::of(files, |path| {
            let shard = Shard::open(path, &budget)?;
            let (schema, bytes) = (Arc::clone(&shard.schema), shard.bytes);
            Ok(FileSchema { schema, rows: shard.count_rows()?, bytes })
        })?;
        if let Some(features) = features.filter(|features| *features != Features::default()) {
            files.features = features;
        }
        Ok(Self { files, content: None, current: None, budget, unfolded: Reservation::default() })
    }

    /// Passes the content column to `look` until it needs no more.
    fn look(
        &self,
        content: ContentColumn,
        mut look: impl FnMut(&Shard, &RecordBatch, Option<u64>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        for path in self.files.paths() {
            let mut shard = Shard::open(path, &self.budget)?;
            while let Some((batch, base)) = shard.next(Some(content))? {
                if look(&shard, &batch, base)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// The column or its child.
fn child_of(batch: &RecordBatch, column: usize, child: Option<usize>) -> ArrayRef {
    let column = batch.column(column);
    match child {
        None => Arc::clone(column),
        Some(child) => Arc::clone(column.as_struct().column(child)),
    }
}

impl Table for ArrowTable {
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
        self.look(content, |shard, batch, base| {
            let array = child_of(batch, content.column, content.bytes);
            let Some(row) = (0..array.len()).find(|row| array.is_valid(*row)) else {
                return Ok(false);
            };
            match (base, offsets(&array, row)) {
                (Some(base), Some((start, end))) => {
                    first = vec![0; (end - start).min(FIRST_BYTES) as usize];
                    read_at(&shard.file, &mut first, base + start)?;
                }
                _ => first = bytes_at(&array, row).unwrap_or_default().to_vec(),
            }
            Ok(true)
        })?;
        Ok(first)
    }

    fn are_paths_unique(&mut self, content: ContentColumn) -> Result<bool, Error> {
        let mut seen = Paths::default();
        self.look(content, |_, batch, _| {
            Ok(!seen.add(&child_of(batch, content.column, content.path)))
        })?;
        Ok(seen.are_unique())
    }

    fn start(&mut self, content: Option<ContentColumn>) -> Result<(), Error> {
        self.content = content;
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Batch>, Error> {
        loop {
            let (mut shard, first_row) = match self.current.take() {
                Some(current) => current,
                None => {
                    let open = |path: &StorePath| {
                        let shard = Shard::open(path, &self.budget)?;
                        let schema = Arc::clone(&shard.schema);
                        Ok((shard, schema))
                    };
                    let Some(shard) = self.files.open_next(open)? else { return Ok(None) };
                    (shard, 0)
                }
            };
            let Some((batch, base)) = shard.next(self.content)? else { continue };
            let path = &shard.file.path;
            self.unfolded = Reservation::default();
            let plain = plain_batch(&batch, &self.files.schema, &self.budget);
            let (columns, held) = plain.map_err(|error| match error {
                PlainError::OverBudget(over) => {
                    too_large(path, Some(format!("the rows from {first_row} on")), None, over)
                }
                PlainError::Arrow(error) => malformed(path, None, error.to_string()),
            })?;
            self.unfolded = held;
            let contents = match base {
                Some(base) => Contents::At { file: Arc::clone(&shard.file), base },
                None => Contents::Inside,
            };
            let file = path.display().to_string();
            self.current = Some((shard, first_row + batch.num_rows() as u64));
            return Ok(Some(Batch { file, first_row, columns, contents, noun: "row" }));
        }
    }
}
