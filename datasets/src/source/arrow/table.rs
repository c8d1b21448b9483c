//! The Arrow files of a dataset as one table.

use super::shard::Shard;
use crate::Error;
use crate::source::rows::hugging_face::{Features, METADATA_KEY};
use crate::source::rows::paths::Paths;
use crate::source::rows::plain::{difference, plain_batch, plain_schema};
use crate::source::rows::row_source::{bytes_at, offsets};
use crate::source::rows::table::{Batch, Contents, read_at};
use crate::source::rows::{ContentColumn, Table, malformed};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of a content that are looked at to tell what it is.
const FIRST_BYTES: u64 = 16;

/// The files of a dataset.
pub(super) struct ArrowTable {
    files: Vec<PathBuf>,
    schema: SchemaRef,
    features: Features,
    rows: u64,
    bytes: u64,
    content: Option<ContentColumn>,
    /// The next file to be opened.
    next_file: usize,
    current: Option<(Shard, u64)>,
}

impl ArrowTable {
    /// Looks at the schema and the length of each file.
    pub(super) fn open(files: Vec<PathBuf>, features: Option<Features>) -> Result<Self, Error> {
        let mut first: Option<SchemaRef> = None;
        let mut from_schema = Features::default();
        let (mut rows, mut bytes) = (0u64, 0);
        for path in &files {
            let shard = Shard::open(path)?;
            let schema = plain_schema(&shard.schema);
            match &first {
                None => {
                    if let Some(text) = shard.schema.metadata().get(METADATA_KEY) {
                        from_schema = Features::of_metadata(text);
                    }
                    first = Some(schema);
                }
                Some(first) => {
                    if let Some(difference) = difference(first, &schema) {
                        let problem = format!("{difference}; the files are of different datasets");
                        return Err(malformed(path, None, problem));
                    }
                }
            }
            bytes += shard.bytes;
            rows = rows.saturating_add(shard.count_rows()?);
        }
        let schema = first.expect("a dataset lists at least one file");
        let features = features.filter(|features| *features != Features::default());
        let features = features.unwrap_or(from_schema);
        Ok(Self {
            files,
            schema,
            features,
            rows,
            bytes,
            content: None,
            next_file: 0,
            current: None,
        })
    }

    /// Goes through the content column until `look` has seen enough.
    fn look(
        &self,
        content: ContentColumn,
        mut look: impl FnMut(&Shard, &RecordBatch, Option<u64>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        for path in &self.files {
            let mut shard = Shard::open(path)?;
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
        &self.schema
    }

    fn features(&self) -> &Features {
        &self.features
    }

    fn rows(&self) -> Option<u64> {
        Some(self.rows)
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.bytes)
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
                    let Some(path) = self.files.get(self.next_file) else { return Ok(None) };
                    self.next_file += 1;
                    let shard = Shard::open(path)?;
                    if difference(&self.schema, &plain_schema(&shard.schema)).is_some() {
                        return Err(Error::SourceChanged { path: path.clone() });
                    }
                    (shard, 0)
                }
            };
            let Some((batch, base)) = shard.next(self.content)? else { continue };
            let path = &shard.file.path;
            let columns = plain_batch(&batch, &self.schema)
                .map_err(|error| malformed(path, None, error.to_string()))?;
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
