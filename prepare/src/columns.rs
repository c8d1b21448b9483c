//! The columns of a dataset as samplers read them: numbers, and the samples that pass a filter.

use crate::filter::{Batch, select};
use crate::{Dataset, Error};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int64Array, LargeStringArray};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::DataType;
use meetpoint_format::dataset::schema::{KEY, LABEL};
use meetpoint_format::sampler::{ColumnType, Expression, SampleColumns};
use std::ops::Range;
use std::sync::Arc;

/// Column with the names of labels.
const LABEL_NAME: &str = "label_name";

impl SampleColumns for Dataset {
    type Error = Error;

    fn samples(&self) -> u64 {
        self.len()
    }

    fn datasets(&self) -> Vec<u64> {
        self.samples_of_folders().collect()
    }

    fn columns(&self) -> Vec<(String, ColumnType)> {
        let fields = Self::columns(self).extra.fields();
        let extra = fields.iter().map(|field| (field.name().clone(), type_of(field.data_type())));
        let mut columns: Vec<(String, ColumnType)> =
            vec![(KEY.to_owned(), ColumnType::Text), (LABEL.to_owned(), ColumnType::Whole)];
        let has_names = fields.iter().all(|field| field.name() != LABEL_NAME);
        if has_names && !self.manifest().labels.is_empty() {
            columns.push((LABEL_NAME.to_owned(), ColumnType::Text));
        }
        columns.extend(extra);
        columns
    }

    fn whole_numbers(&self, column: &str) -> Result<Vec<Option<i64>>, Error> {
        self.read_footers()?;
        let mut values = Vec::new();
        for batch in 0..self.record_batches() {
            let array = self.column(batch, column)?;
            let array = self.cast(column, &array, &DataType::Int64)?;
            values.extend(array.as_primitive::<Int64Type>());
        }
        Ok(values)
    }

    fn numbers(&self, column: &str) -> Result<Vec<Option<f64>>, Error> {
        self.read_footers()?;
        let mut values = Vec::new();
        for batch in 0..self.record_batches() {
            let array = self.column(batch, column)?;
            let array = self.cast(column, &array, &DataType::Float64)?;
            values.extend(array.as_primitive::<Float64Type>());
        }
        Ok(values)
    }

    fn picture_sizes(&self) -> Result<Vec<Option<(u32, u32)>>, Error> {
        Ok(Self::picture_sizes(self, &mut |_, _| true)?.all().collect())
    }

    fn select(&self, expression: &Expression) -> Result<Vec<u64>, Error> {
        self.read_footers()?;
        let mut selected = Vec::new();
        for batch in 0..self.record_batches() {
            let samples = self.samples_of(batch);
            let rows = usize::try_from(samples.end - samples.start).expect("it is in memory");
            let read = |column: &str| {
                let array = self.column(batch, column)?;
                let wanted = match type_of(array.data_type()) {
                    ColumnType::Whole => DataType::Int64,
                    ColumnType::Number => DataType::Float64,
                    ColumnType::Text => DataType::LargeUtf8,
                    ColumnType::Flag => DataType::Boolean,
                    ColumnType::Other(_) => return Ok(array),
                };
                self.cast(column, &array, &wanted)
            };
            let passes = select(&Batch { expression, rows, read: &read })?;
            let of_batch = samples.zip(passes.iter());
            selected.extend(of_batch.filter(|(_, passes)| *passes == Some(true)).map(|(it, _)| it));
        }
        Ok(selected)
    }
}

/// How samplers can use values of a type.
fn type_of(data_type: &DataType) -> ColumnType {
    match data_type {
        whole if whole.is_integer() => ColumnType::Whole,
        number if number.is_floating() => ColumnType::Number,
        DataType::Utf8 | DataType::LargeUtf8 => ColumnType::Text,
        DataType::Boolean => ColumnType::Flag,
        other => ColumnType::Other(format!("values of type {other}")),
    }
}

impl Dataset {
    /// A column of a record batch; it must be one of [`SampleColumns::columns`].
    fn column(&self, batch: usize, column: &str) -> Result<ArrayRef, Error> {
        let fields = Self::columns(self).extra.fields();
        if let Some(at) = fields.iter().position(|field| field.name() == column) {
            return Ok(Arc::clone(self.extra(batch, Some(&[at]))?.column(0)));
        }
        let samples = self.samples_of(batch);
        match column {
            KEY => {
                let keys = samples.map(|sample| self.key(sample)).collect::<Result<Vec<_>, _>>()?;
                Ok(Arc::new(LargeStringArray::from(keys)))
            }
            LABEL_NAME => {
                let names = &self.manifest().labels;
                let name = |label: Option<i32>| names.get(usize::try_from(label?).ok()?);
                let labels = self.labels(samples)?.into_iter().map(name);
                Ok(Arc::new(labels.collect::<LargeStringArray>()))
            }
            _ => {
                let labels = self.labels(samples)?.into_iter().map(|label| label.map(i64::from));
                Ok(Arc::new(labels.collect::<Int64Array>()))
            }
        }
    }

    fn labels(&self, samples: Range<u64>) -> Result<Vec<Option<i32>>, Error> {
        samples.map(|sample| Ok(self.locate(sample)?.label)).collect()
    }

    /// Converts values to another type; one that does not fit is an error.
    fn cast(&self, column: &str, array: &ArrayRef, to: &DataType) -> Result<ArrayRef, Error> {
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(array, to, &strict).map_err(|error| Error::SamplerColumn {
            path: self.path().to_path_buf(),
            column: column.to_owned(),
            problem: error.to_string(),
        })
    }
}
