//! Columns of a dataset as an Arrow stream, which pyarrow, polars and pandas use without a copy.
//!
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, Int32Array, LargeBinaryArray, RecordBatch, RecordBatchReader, StringArray,
    UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use meetpoint_prepare::{Dataset, Error};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// One column of a stream.
#[derive(Debug, Clone, Copy)]
enum Column {
    /// Index in the dataset.
    Sample,
    Key,
    Label,
    /// The file of each sample.
    Content,
    /// A further column of the dataset, by its index among these.
    Extra(usize),
}

/// Record batches of a dataset, each read on request.
#[derive(Debug)]
pub(crate) struct Stream {
    dataset: Arc<Dataset>,
    columns: Vec<Column>,
    schema: SchemaRef,
    next: usize,
}

/// The columns of a dataset, except the indices of the samples.
pub(crate) fn names(dataset: &Dataset) -> Vec<String> {
    let columns = dataset.columns();
    let extra = columns.extra.fields().iter().map(|field| field.name().clone());
    let own = ["key", columns.content_name(), "label"].map(str::to_owned);
    own.into_iter().chain(extra).collect()
}

impl Stream {
    /// These columns in this order; the name of a missing one is the error.
    pub(crate) fn of(dataset: &Arc<Dataset>, names: &[String]) -> Result<Self, String> {
        let columns = dataset.columns();
        let mut chosen = Vec::new();
        let mut fields = Vec::new();
        for name in names {
            let extra = columns.extra.fields().iter().position(|field| field.name() == name);
            let (column, field) = match (name.as_str(), extra) {
                (_, Some(at)) => (Column::Extra(at), columns.extra.field(at).clone()),
                ("sample", _) => (Column::Sample, Field::new(name, DataType::UInt64, false)),
                ("key", _) => (Column::Key, Field::new(name, DataType::Utf8, false)),
                ("label", _) => (Column::Label, Field::new(name, DataType::Int32, true)),
                (content, _) if content == columns.content_name() => {
                    (Column::Content, Field::new(name, DataType::LargeBinary, false))
                }
                _ => return Err(name.clone()),
            };
            chosen.push(column);
            fields.push(field);
        }
        let schema = Arc::new(Schema::new(fields));
        Ok(Self { dataset: Arc::clone(dataset), columns: chosen, schema, next: 0 })
    }

    /// The capsule that other libraries consume.
    pub(crate) fn capsule(self, py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
        let stream = FFI_ArrowArrayStream::new(Box::new(self));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn read(&self, record_batch: usize) -> Result<RecordBatch, Error> {
        let dataset = &*self.dataset;
        let samples = dataset.samples_of(record_batch);
        let wanted = self.columns.iter().filter_map(|column| match column {
            Column::Extra(at) => Some(*at),
            _ => None,
        });
        let wanted: Vec<usize> = wanted.collect();
        let mut extra = match wanted.is_empty() {
            true => Vec::new(),
            false => dataset.extra(record_batch, Some(&wanted))?.columns().to_vec(),
        }
        .into_iter();
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for column in &self.columns {
            arrays.push(match column {
                Column::Sample => Arc::new(UInt64Array::from_iter_values(samples.clone())),
                Column::Key => Arc::new(StringArray::from(dataset.keyed_rows(record_batch)?.keys)),
                Column::Label => {
                    let labels = samples.clone().map(|sample| Ok(dataset.locate(sample)?.label));
                    Arc::new(Int32Array::from(labels.collect::<Result<Vec<_>, Error>>()?))
                }
                Column::Content => {
                    let files = samples.clone().map(|sample| dataset.read_file(sample));
                    let files = files.collect::<Result<Vec<_>, Error>>()?;
                    Arc::new(LargeBinaryArray::from_iter_values(files))
                }
                Column::Extra(_) => extra.next().expect("as many were read as are wanted"),
            });
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays);
        Ok(batch.expect("columns have the types of the schema and a row each sample"))
    }
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let record_batch = self.next;
        self.next += 1;
        (record_batch < self.dataset.record_batches()).then(|| {
            self.read(record_batch).map_err(|error| ArrowError::ExternalError(Box::new(error)))
        })
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
