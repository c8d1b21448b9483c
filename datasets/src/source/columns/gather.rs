//! Gathers samples into record batches.

use super::array::column;
use super::cell::Cell;
use super::shape::Shape;
use crate::source::{Content, Entry, Item};
use arrow_array::RecordBatch;
use arrow_schema::{Field, Fields, Schema, SchemaRef};
use meetpoint_format::dataset::schema::LABELS_KEY;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Maximum number of samples in a record batch.
const BATCH_SAMPLES: usize = 256;
/// Bytes after which a record batch is closed.
const BATCH_BYTES: usize = 8 << 20;

/// Gathers samples into record batches of their further columns.
pub(in crate::source) struct Gather {
    schema: SchemaRef,
    shapes: Vec<Shape>,
    pending: Vec<(Box<Item>, Vec<Cell>)>,
    pending_bytes: usize,
    ready: VecDeque<Entry>,
}

impl Gather {
    /// For columns of these names and types.
    pub(in crate::source) fn new(columns: &[(String, Shape)]) -> Self {
        let fields: Fields = columns.iter().map(|(name, shape)| shape.field(name)).collect();
        Self {
            schema: Arc::new(Schema::new(fields)),
            shapes: columns.iter().map(|(_, shape)| shape.clone()).collect(),
            pending: Vec::new(),
            pending_bytes: 0,
            ready: VecDeque::new(),
        }
    }

    /// Sets names for the integers of a column.
    pub(in crate::source) fn name_integers(&mut self, column: &str, names: &[String]) {
        let names = serde_json::to_string(names).expect("texts are written as JSON");
        let named = |field: &Arc<Field>| match field.name() == column {
            true => {
                let names = (LABELS_KEY.to_owned(), names.clone());
                Arc::new(field.as_ref().clone().with_metadata(HashMap::from([names])))
            }
            false => field.clone(),
        };
        let fields: Fields = self.schema.fields().iter().map(named).collect();
        self.schema = Arc::new(Schema::new(fields));
    }

    /// The columns as an Arrow schema.
    pub(in crate::source) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Adds a sample with a cell for each column.
    pub(in crate::source) fn push(&mut self, item: Item, cells: Vec<Cell>) -> Result<(), String> {
        if self.shapes.is_empty() {
            self.ready.push_back(Entry::Sample(Box::new(item)));
            return Ok(());
        }
        self.pending_bytes += cells.iter().map(Cell::bytes).sum::<usize>();
        if let Content::Bytes(bytes) = &item.content {
            self.pending_bytes += bytes.len();
        }
        self.pending.push((Box::new(item), cells));
        if self.pending.len() >= BATCH_SAMPLES || self.pending_bytes >= BATCH_BYTES {
            return self.flush();
        }
        Ok(())
    }

    /// Adds an entry that is not a sample.
    pub(in crate::source) fn note(&mut self, entry: Entry) {
        self.ready.push_back(entry);
    }

    /// Completes a record batch of the samples so far.
    pub(in crate::source) fn flush(&mut self) -> Result<(), String> {
        let pending = std::mem::take(&mut self.pending);
        self.pending_bytes = 0;
        if pending.is_empty() {
            return Ok(());
        }
        let columns = self.shapes.iter().enumerate().map(|(index, shape)| {
            let cells: Vec<_> = pending.iter().map(|(_, cells)| cells[index].datum()).collect();
            let name = self.schema.field(index).name();
            column(shape, &cells).map_err(|problem| format!("column {name}: {problem}"))
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let batch = RecordBatch::try_new(self.schema.clone(), columns);
        let batch = Arc::new(batch.map_err(|error| error.to_string())?);
        for (row, (mut item, _)) in pending.into_iter().enumerate() {
            item.extra = Some((batch.clone(), row));
            self.ready.push_back(Entry::Sample(item));
        }
        Ok(())
    }

    /// The next completed entry.
    pub(in crate::source) fn pop(&mut self) -> Option<Entry> {
        self.ready.pop_front()
    }
}
