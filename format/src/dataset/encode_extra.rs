//! Encodes further columns of rows, at the end of a record batch's body, with Arrow's own encoder.

use super::row::{Row, row_bytes};
use super::schema::{ALIGNMENT, EXTRA_BYTES_MAX};
use super::{Columns, DatasetError};
use arrow_array::{Array, RecordBatch, RecordBatchOptions};
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use std::ops::Range;
use std::sync::{Arc, Weak};

/// The further columns of a record batch, encoded.
#[derive(Debug, Default)]
pub(super) struct EncodedExtra {
    /// Length and nulls of each array, nested ones included.
    pub(super) nodes: Vec<arrow_ipc::FieldNode>,
    /// Positions of the buffers in `body`.
    pub(super) buffers: Vec<arrow_ipc::Buffer>,
    /// The buffers, each at a multiple of [`ALIGNMENT`] and padded to one.
    pub(super) body: Vec<u8>,
    /// The range of each column in `body`; together they cover it.
    pub(super) columns: Vec<Range<usize>>,
}

/// Gathers the further columns of rows that were checked, and encodes them.
pub(super) fn encode(columns: &Columns, rows: &[Row]) -> Result<EncodedExtra, DatasetError> {
    if !columns.has_extra() {
        return Ok(EncodedExtra::default());
    }
    let failed = |error: arrow_schema::ArrowError| {
        let last = rows.len() - 1;
        let key = format!("{} to {}", rows[0].key, rows[last].key);
        DatasetError::Row { key, problem: format!("further columns: {error}") }
    };
    let gathered = gather(columns, rows).map_err(failed)?;
    let alignment = usize::try_from(ALIGNMENT).expect("64");
    let options = IpcWriteOptions::try_new(alignment, false, arrow_ipc::MetadataVersion::V5)
        .expect("an alignment that Arrow knows");
    let (_, encoded) = IpcDataGenerator::default()
        .encode(&gathered, &mut DictionaryTracker::new(false), &options, &mut Default::default())
        .map_err(failed)?;
    let message =
        arrow_ipc::root_as_message(&encoded.ipc_message).expect("Arrow's encoder gives a message");
    let batch = message.header_as_record_batch().expect("of a record batch was asked for");
    let nodes: Vec<_> = batch.nodes().into_iter().flatten().copied().collect();
    let buffers: Vec<_> = batch.buffers().into_iter().flatten().copied().collect();
    let mut body = encoded.arrow_data;
    body.resize(body.len().next_multiple_of(alignment), 0);
    let mut ranges = Vec::with_capacity(gathered.num_columns());
    let mut next = 0;
    for field in columns.extra.fields() {
        let (_, count) = super::columns::shape_of(field.data_type(), 0)
            .map_err(|problem| DatasetError::Columns { problem })?;
        ranges.push(next);
        next += count;
    }
    let start = |buffer: usize| {
        let offset = buffers.get(buffer).map(|buffer| buffer.offset());
        offset.map_or(body.len(), |at| usize::try_from(at).expect("inside the body"))
    };
    // A column extends from its first buffer to that of the next column; one without buffers is
    // empty.
    let starts: Vec<usize> = ranges.into_iter().map(start).collect();
    let ends = starts.iter().skip(1).copied().chain([body.len()]);
    let columns = starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect();
    Ok(EncodedExtra { nodes, buffers, body, columns })
}

/// The rows' further columns as one record batch with the fields of the dataset.
fn gather(columns: &Columns, rows: &[Row]) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let mut batches: Vec<&Arc<RecordBatch>> = Vec::new();
    let mut indices = Vec::with_capacity(rows.len());
    for (batch, row) in rows.iter().filter_map(|row| row.extra.as_ref()) {
        let known = batches.iter().rposition(|known| Arc::ptr_eq(known, batch));
        let index = known.unwrap_or_else(|| {
            batches.push(batch);
            batches.len() - 1
        });
        indices.push((index, *row));
    }
    let batches: Vec<&RecordBatch> = batches.into_iter().map(AsRef::as_ref).collect();
    let gathered = arrow_select::interleave::interleave_record_batch(&batches, &indices)?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let schema = Arc::clone(&columns.extra);
    RecordBatch::try_new_with_options(schema, gathered.columns().to_vec(), &options)
}

/// Compares the further columns of a row with those of the dataset; the record batch that was
/// checked last is not checked again.
#[derive(Debug, Default)]
pub(super) struct ExtraCheck {
    known: Weak<RecordBatch>,
}

impl ExtraCheck {
    /// What is wrong with a row's further columns.
    pub(super) fn check(
        &mut self,
        columns: &Columns,
        extra: Option<&(Arc<RecordBatch>, usize)>,
    ) -> Result<(), String> {
        let Some((batch, row)) = extra else {
            return match columns.extra.fields().first() {
                None => Ok(()),
                Some(field) => Err(format!("column `{}` is missing", field.name())),
            };
        };
        if !std::ptr::eq(self.known.as_ptr(), Arc::as_ptr(batch)) {
            check_schema(columns, batch)?;
            // A weak reference, so that no other record batch can get its address.
            self.known = Arc::downgrade(batch);
        }
        if *row >= batch.num_rows() {
            return Err(format!("row {row} of a record batch of {} rows", batch.num_rows()));
        }
        for (field, column) in columns.extra.fields().iter().zip(batch.columns()) {
            if !field.is_nullable() && column.is_null(*row) {
                return Err(format!("column `{}` is null, but must not be", field.name()));
            }
        }
        let bytes = row_bytes(batch, *row);
        if bytes > EXTRA_BYTES_MAX {
            return Err(format!(
                "its further columns have {bytes} bytes, the limit is {EXTRA_BYTES_MAX}"
            ));
        }
        Ok(())
    }
}

fn check_schema(columns: &Columns, batch: &RecordBatch) -> Result<(), String> {
    let (expected, found) = (columns.extra.fields(), batch.schema_ref().fields());
    if expected.len() != found.len() {
        return Err(format!("{} further columns, expected {}", found.len(), expected.len()));
    }
    for (expected, found) in expected.iter().zip(found) {
        if expected.name() != found.name() || expected.data_type() != found.data_type() {
            return Err(format!(
                "column `{}` {}, expected `{}` {}",
                found.name(),
                found.data_type(),
                expected.name(),
                expected.data_type()
            ));
        }
    }
    Ok(())
}
