//! Column types that a dataset stores: dictionaries, run-end encodings and views become the types
//! of their values.

use super::unfolded::unfolded_bytes;
use crate::source::OverBudget;
use crate::source::budget::{MemoryBudget, Reservation};
use arrow_array::RecordBatch;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use std::sync::Arc;

/// The plain type for a type.
pub(crate) fn plain_type(of: &DataType) -> DataType {
    match of {
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::RunEndEncoded(_, values) => plain_type(values.data_type()),
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(item) | DataType::ListView(item) => DataType::List(plain_field(item)),
        DataType::LargeList(item) | DataType::LargeListView(item) => {
            DataType::LargeList(plain_field(item))
        }
        DataType::FixedSizeList(item, length) => {
            DataType::FixedSizeList(plain_field(item), *length)
        }
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain_field).collect()),
        DataType::Map(entries, is_sorted) => DataType::Map(plain_field(entries), *is_sorted),
        other => other.clone(),
    }
}

fn plain_field(field: &FieldRef) -> FieldRef {
    let data_type = plain_type(field.data_type());
    if data_type == *field.data_type() {
        return Arc::clone(field);
    }
    let plain = Field::new(field.name(), data_type, field.is_nullable());
    Arc::new(plain.with_metadata(field.metadata().clone()))
}

/// A schema of plain types, without its own metadata.
pub(crate) fn plain_schema(schema: &Schema) -> SchemaRef {
    Arc::new(Schema::new(schema.fields().iter().map(plain_field).collect::<Vec<_>>()))
}

/// Why a batch cannot be converted to plain types.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlainError {
    /// It needs more memory than the source may take.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    /// A column cannot be cast.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

/// Converts a batch to `schema`, the plain form of its own schema; also returns the memory reserved
/// for expanded columns.
pub(crate) fn plain_batch(
    batch: &RecordBatch,
    schema: &SchemaRef,
    budget: &MemoryBudget,
) -> Result<(RecordBatch, Reservation), PlainError> {
    let mut held = budget.hold(0)?;
    for (column, field) in batch.columns().iter().zip(schema.fields()) {
        if column.data_type() != field.data_type() {
            held.grow(unfolded_bytes(column, budget.limit()))?;
        }
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
        if column.data_type() == field.data_type() {
            return Ok(Arc::clone(column));
        }
        cast_with_options(column, field.data_type(), &options)
    });
    let columns = columns.collect::<Result<Vec<_>, ArrowError>>()?;
    let rows = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok((RecordBatch::try_new_with_options(Arc::clone(schema), columns, &rows)?, held))
}

/// The first difference of two schemas, as text for an error; names, order and types are compared,
/// nullability is not.
pub(crate) fn difference(first: &Schema, other: &Schema) -> Option<String> {
    if first.fields().len() != other.fields().len() {
        let (first, other) = (first.fields().len(), other.fields().len());
        return Some(format!("{other} columns, where the first file has {first}"));
    }
    let pairs = first.fields().iter().zip(other.fields());
    for (left, right) in pairs {
        if left.name() != right.name() {
            return Some(format!(
                "a column {:?}, where the first file has {:?}",
                right.name(),
                left.name()
            ));
        }
        if !left.data_type().equals_datatype(right.data_type()) {
            return Some(format!(
                "column {:?} of type {}, where the first file has {}",
                right.name(),
                right.data_type(),
                left.data_type()
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::Int8Type;
    use arrow_array::{Array, ArrayRef, DictionaryArray, StringArray, StringViewArray};

    #[test]
    fn dictionaries_and_views_become_what_they_stand_for() {
        let dictionary: DictionaryArray<Int8Type> = vec!["a", "b", "a"].into_iter().collect();
        let view = StringViewArray::from(vec![Some("x"), None, Some("a longer text than 12")]);
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("d", Arc::new(dictionary) as ArrayRef, true),
            ("v", Arc::new(view) as ArrayRef, true),
        ])
        .unwrap();
        let schema = plain_schema(&batch.schema());
        let (plain, _) = plain_batch(&batch, &schema, &MemoryBudget::default()).unwrap();
        let text = |index: usize| {
            let column = plain.column(index).as_any().downcast_ref::<StringArray>().unwrap();
            column.iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>()
        };
        assert_eq!(text(0), [Some("a".into()), Some("b".into()), Some("a".into())]);
        assert_eq!(text(1), [Some("x".into()), None, Some("a longer text than 12".into())]);
    }

    #[test]
    fn the_first_difference_is_named() {
        let schema = |name: &str, data_type| Schema::new(vec![Field::new(name, data_type, true)]);
        let first = schema("a", DataType::Int8);
        assert_eq!(difference(&first, &schema("a", DataType::Int8)), None);
        assert!(difference(&first, &schema("b", DataType::Int8)).unwrap().contains("\"b\""));
        assert!(difference(&first, &schema("a", DataType::Int16)).unwrap().contains("Int16"));
        assert!(difference(&first, &Schema::empty()).unwrap().contains("0 columns"));
    }
}
