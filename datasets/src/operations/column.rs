//! The values of one column, sample by sample, used to split and list a dataset.

use crate::error::OperationError;
use crate::message::Message;
use crate::{Error, natural_order};
use arrow_array::Array;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use meetpoint_diagnose::{Command, Remedy};
use meetpoint_format::dataset::schema::LABEL;
use meetpoint_prepare::Dataset;
use std::collections::HashMap;

/// Maximum number of values of a column by which a dataset is split.
pub const VALUES_MAX: usize = 1000;

/// A column of a dataset whose values have names.
pub(super) struct Values<'a> {
    dataset: &'a Dataset,
    name: String,
    /// Index among the further columns; `None` for the label.
    column: Option<usize>,
}

impl<'a> Values<'a> {
    /// A column of text, integers or truth values, or the label.
    pub(super) fn of(dataset: &'a Dataset, name: &str) -> Result<Self, OperationError> {
        let fields = dataset.columns().extra.fields();
        let column = fields.iter().position(|field| field.name() == name);
        let Some(column) = column else {
            if name == LABEL {
                return Ok(Self { dataset, name: name.to_owned(), column: None });
            }
            let names = std::iter::once(LABEL).chain(fields.iter().map(|f| f.name().as_str()));
            return Err(OperationError::NoColumn {
                path: dataset.path().to_path_buf(),
                column: name.to_owned(),
                available: names.collect::<Vec<_>>().join(", "),
            });
        };
        let data_type = fields[column].data_type();
        let has_names = data_type.is_integer()
            || matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Boolean);
        if !has_names {
            let problem = Message::from(format!("is of type {data_type}"))
                .remedy("name one of text, integers or truth values");
            return Err(OperationError::Column { column: name.to_owned(), problem });
        }
        Ok(Self { dataset, name: name.to_owned(), column: Some(column) })
    }

    /// Its values in natural order, each with its number of samples; null is last.
    pub(super) fn counts(&self) -> Result<Vec<(Option<String>, u64)>, Error> {
        let mut counts: HashMap<Option<String>, u64> = HashMap::new();
        for value in self.each() {
            *counts.entry(value?.1).or_default() += 1;
            if counts.len() > VALUES_MAX {
                let problem = Message::from(format!("has more than {VALUES_MAX} values"))
                    .remedy("name one with fewer");
                let column = self.name.clone();
                return Err(OperationError::Column { column, problem }.into());
            }
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by(|(left, _), (right, _)| match (left, right) {
            (Some(left), Some(right)) => natural_order(left, right),
            (left, right) => left.is_none().cmp(&right.is_none()),
        });
        Ok(counts)
    }

    /// Passes on the value of each sample, in order; one record batch is in memory at a time.
    pub(super) fn each(
        &self,
    ) -> impl Iterator<Item = Result<(u64, Option<String>), Error>> + Send + use<'a> {
        let (dataset, column) = (self.dataset, self.column);
        let mut batch = 0;
        let mut first = 0;
        let mut rest = Vec::new().into_iter();
        std::iter::from_fn(move || {
            loop {
                if let Some((row, value)) = rest.next() {
                    return Some(Ok((first + row, value)));
                }
                if batch == dataset.record_batches() {
                    return None;
                }
                let range = dataset.samples_of(batch);
                let values = match column {
                    Some(column) => column_values(dataset, batch, column),
                    None => label_values(dataset, range.clone()),
                };
                (batch, first) = (batch + 1, range.start);
                match values {
                    Ok(values) => rest = (0..).zip(values).collect::<Vec<_>>().into_iter(),
                    Err(error) => {
                        batch = dataset.record_batches();
                        return Some(Err(error));
                    }
                }
            }
        })
    }
}

fn column_values(
    dataset: &Dataset,
    batch: usize,
    column: usize,
) -> Result<Vec<Option<String>>, Error> {
    let read = dataset.extra(batch, Some(&[column]))?;
    let array = read.column(0);
    let options = FormatOptions::default();
    let formatter =
        ArrayFormatter::try_new(array, &options).expect("types with names can be formatted");
    let value = |row: usize| (!array.is_null(row)).then(|| formatter.value(row).to_string());
    Ok((0..array.len()).map(value).collect())
}

fn label_values(
    dataset: &Dataset,
    samples: std::ops::Range<u64>,
) -> Result<Vec<Option<String>>, Error> {
    let labels = &dataset.manifest().labels;
    samples
        .map(|sample| {
            let label = dataset.locate(sample)?.label.and_then(|l| usize::try_from(l).ok());
            Ok(label.map(|label| labels[label].clone()))
        })
        .collect()
}

/// The name of the dataset for a value: the value itself, if it is a plain file name.
pub(super) fn name_of_value(column: &str, value: Option<&str>) -> Result<String, OperationError> {
    let Some(value) = value else { return Ok("null".to_owned()) };
    let is_plain = !value.is_empty()
        && !value.starts_with('.')
        && value.len() <= 200
        && value != "null"
        && !value.contains(['/', '\\', '\0']);
    if is_plain {
        return Ok(value.to_owned());
    }
    let problem =
        Message::from(format!("has the value {value:?}, which is not a valid name of a folder"))
            .remedy(Remedy::advice("split by another column").or_run(Command::Select));
    Err(OperationError::Column { column: column.to_owned(), problem })
}
