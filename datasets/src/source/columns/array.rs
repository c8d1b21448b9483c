//! Arrow arrays from cells.

use super::cell::Datum;
use super::shape::{Shape, differs, item_field, struct_fields};
use crate::source::json::non_finite;
use arrow_array::builder::BinaryBuilder;
use arrow_array::{
    ArrayRef, BooleanArray, FixedSizeListArray, Float64Array, Int64Array, ListArray, NullArray,
    StringArray, StructArray, UInt64Array,
};
use serde_json::Value;
use std::sync::Arc;

/// A column of that type; the error is text and names a value of another type.
pub(super) fn column(shape: &Shape, cells: &[Datum<'_>]) -> Result<ArrayRef, String> {
    Ok(match shape {
        Shape::Null | Shape::Text => Arc::new(typed::<_, StringArray>(cells, shape, text)?),
        Shape::Bool => Arc::new(typed::<_, BooleanArray>(cells, shape, |datum| match datum {
            Datum::Json(value) => value.as_bool(),
            _ => None,
        })?),
        Shape::Int => Arc::new(typed::<_, Int64Array>(cells, shape, |datum| match datum {
            Datum::Json(value) => value.as_i64(),
            _ => None,
        })?),
        Shape::Unsigned => Arc::new(typed::<_, UInt64Array>(cells, shape, |datum| match datum {
            Datum::Json(value) => value.as_u64(),
            _ => None,
        })?),
        Shape::Float => Arc::new(typed::<_, Float64Array>(cells, shape, float)?),
        Shape::Binary(_) => {
            let mut builder = BinaryBuilder::new();
            for cell in cells {
                match cell {
                    Datum::Bytes(bytes) => builder.append_value(bytes),
                    Datum::Null => builder.append_null(),
                    _ => return Err(differs(shape, &Shape::Text)),
                }
            }
            Arc::new(builder.finish())
        }
        Shape::List(item, _) => Arc::new(lists(item, cells, shape)?),
        Shape::Struct(fields) if fields.is_empty() => Arc::new(NullArray::new(cells.len())),
        Shape::Struct(fields) => Arc::new(structs(fields, cells, shape)?),
    })
}

fn typed<'a, T, A: FromIterator<Option<T>>>(
    cells: &[Datum<'a>],
    shape: &Shape,
    convert: impl Fn(Datum<'a>) -> Option<T>,
) -> Result<A, String> {
    let cells = cells.iter().map(|&cell| match cell {
        Datum::Null => Ok(None),
        datum => match convert(datum) {
            Some(value) => Ok(Some(value)),
            None => {
                Err(format!("a value that cannot be converted to {} without loss", shape.name()))
            }
        },
    });
    cells.collect()
}

fn text(datum: Datum<'_>) -> Option<&str> {
    match datum {
        Datum::Json(value) => value.as_str(),
        Datum::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

/// A number as a float; `None` for an integer that no float equals.
fn float(datum: Datum<'_>) -> Option<f64> {
    let value = match datum {
        Datum::Float(float) => return Some(float),
        Datum::Json(value) => value,
        _ => return None,
    };
    let float = value.as_f64().or_else(|| non_finite(value))?;
    let is_same = match (value.as_i64(), value.as_u64()) {
        (Some(integer), _) => float as i128 == i128::from(integer),
        (None, Some(integer)) => float as i128 == i128::from(integer),
        (None, None) => true,
    };
    is_same.then_some(float)
}

fn lists(item: &Shape, cells: &[Datum<'_>], shape: &Shape) -> Result<ListArray, String> {
    let (mut items, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    for cell in cells {
        let values = match cell {
            Datum::Null => &[][..],
            Datum::Json(Value::Array(values)) => values,
            _ => return Err(differs(shape, &Shape::Text)),
        };
        items.extend(values.iter().map(Datum::of));
        lengths.push(values.len());
        valid.push(!matches!(cell, Datum::Null));
    }
    let items = items_of(item, &items)?;
    let offsets = arrow_buffer::OffsetBuffer::from_lengths(lengths);
    let valid = Some(arrow_buffer::NullBuffer::from(valid));
    ListArray::try_new(item_field(item), offsets, items, valid).map_err(|error| error.to_string())
}

/// The items of lists as a column.
fn items_of(item: &Shape, cells: &[Datum<'_>]) -> Result<ArrayRef, String> {
    match (item, item.row_length()) {
        (Shape::List(inner, _), Some(length)) => {
            Ok(Arc::new(rows_of_one_length(inner, length, cells, item)?))
        }
        _ => column(item, cells),
    }
}

fn rows_of_one_length(
    item: &Shape,
    length: i32,
    cells: &[Datum<'_>],
    shape: &Shape,
) -> Result<FixedSizeListArray, String> {
    let count = usize::try_from(length).expect("a length is not negative");
    let (mut items, mut valid) = (Vec::new(), Vec::new());
    for cell in cells {
        match cell {
            Datum::Null => items.extend(std::iter::repeat_n(Datum::Null, count)),
            Datum::Json(Value::Array(values)) if values.len() == count => {
                items.extend(values.iter().map(Datum::of));
            }
            Datum::Json(Value::Array(values)) => {
                let found = values.len();
                return Err(format!("a list of {found} values, where others have {count}"));
            }
            _ => return Err(differs(shape, &Shape::Text)),
        }
        valid.push(!matches!(cell, Datum::Null));
    }
    let items = items_of(item, &items)?;
    let valid = Some(arrow_buffer::NullBuffer::from(valid));
    FixedSizeListArray::try_new(item_field(item), length, items, valid)
        .map_err(|error| error.to_string())
}

fn structs(
    fields: &[(String, Shape)],
    cells: &[Datum<'_>],
    shape: &Shape,
) -> Result<StructArray, String> {
    let mut columns = Vec::with_capacity(fields.len());
    for (name, field) in fields {
        let mut values = Vec::with_capacity(cells.len());
        for cell in cells {
            values.push(match cell {
                Datum::Null => Datum::Null,
                Datum::Json(Value::Object(object)) => {
                    object.get(name).map_or(Datum::Null, Datum::of)
                }
                _ => return Err(differs(shape, &Shape::Text)),
            });
        }
        columns.push(column(field, &values)?);
    }
    let valid: Vec<bool> = cells.iter().map(|cell| !matches!(cell, Datum::Null)).collect();
    let valid = Some(arrow_buffer::NullBuffer::from(valid));
    StructArray::try_new(struct_fields(fields), columns, valid).map_err(|error| error.to_string())
}
