//! Builds columns from values.

use super::value::{Axes, Kind, Value};
use crate::message::Message;
use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, UInt64Builder,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, Int32Array, ListArray, NullArray,
    StructArray, make_array,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Fields};
use meetpoint_diagnose::Setting;
use std::sync::Arc;

/// Largest offset of a column of lists or strings, which Arrow stores in 32 bits.
const OFFSET_MAX: usize = i32::MAX as usize;
/// Integers up to this are exact in 64-bit floats.
const EXACT_MAX: u64 = 1 << 53;

/// A value that does not fit into its column.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// Index among the values.
    pub(crate) index: usize,
    /// Why.
    pub(crate) problem: Message,
}

fn misfit(index: usize, problem: impl Into<Message>) -> Misfit {
    Misfit { index, problem: problem.into() }
}

/// A column of the type `kind`.
pub(crate) fn column(kind: &Kind, values: &[&Value]) -> Result<ArrayRef, Misfit> {
    column_within(kind, values, OFFSET_MAX)
}

/// Like [`column`], with another limit for the items or bytes of all lists or strings of a column.
fn column_within(kind: &Kind, values: &[&Value], offset_max: usize) -> Result<ArrayRef, Misfit> {
    match kind {
        Kind::Null => match values.iter().position(|value| **value != Value::Null) {
            None => Ok(Arc::new(NullArray::new(values.len()))),
            Some(index) => Err(mismatch(kind, values, index)),
        },
        Kind::Number(dtype) => number(dtype, values),
        Kind::Numbers(dtype) => numbers(kind, dtype, values, offset_max),
        Kind::Tensor(dtype, axes) => tensors(kind, dtype, axes, values, offset_max),
        Kind::List(item) => list(kind, item, values, offset_max),
        Kind::Struct(fields) => structs(kind, fields, values, offset_max),
        _ => {
            let bytes = values.iter().map(|value| string_bytes(value)).collect::<Vec<_>>();
            check_offsets(&bytes, offset_max)?;
            simple(kind, values)
        }
    }
}

/// Bytes that a value adds to a column of strings.
fn string_bytes(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Bytes { bytes, .. } => bytes.len(),
        _ => 0,
    }
}

/// Checks that the lengths of a column fit into its offsets; the error has the index of the first
/// that does not.
fn check_offsets(lengths: &[usize], offset_max: usize) -> Result<(), Misfit> {
    let mut sum = 0usize;
    for (index, length) in lengths.iter().enumerate() {
        sum = sum.saturating_add(*length);
        if sum > offset_max {
            let problem = Message::from(format!(
                "more than the {offset_max} bytes or items that a batch of this column holds; \
                 leave the column out with "
            )) + Setting::Columns
                + ", or make its values shorter";
            return Err(misfit(index, problem));
        }
    }
    Ok(())
}

fn offsets(lengths: &[usize], offset_max: usize) -> Result<OffsetBuffer<i32>, Misfit> {
    check_offsets(lengths, offset_max)?;
    Ok(OffsetBuffer::from_lengths(lengths.iter().copied()))
}

fn mismatch(kind: &Kind, values: &[&Value], index: usize) -> Misfit {
    let got = Kind::of(values[index]).map_or_else(|text| text, |kind| kind.words());
    misfit(index, format!("{got}, where the column holds {}", kind.words()))
}

fn simple(kind: &Kind, values: &[&Value]) -> Result<ArrayRef, Misfit> {
    macro_rules! build {
        ($builder:expr, $($pattern:pat $(if $guard:expr)? => $value:expr),+) => {{
            let mut builder = $builder;
            for (index, value) in values.iter().enumerate() {
                match value {
                    Value::Null => builder.append_null(),
                    $($pattern $(if $guard)? => builder.append_value($value),)+
                    _ => return Err(mismatch(kind, values, index)),
                }
            }
            Ok(Arc::new(builder.finish()) as ArrayRef)
        }};
    }
    match kind {
        Kind::Bool => build!(BooleanBuilder::new(), Value::Bool(value) => *value),
        Kind::Int => build!(Int64Builder::new(), Value::Int(value) => *value),
        Kind::UInt => build!(
            UInt64Builder::new(),
            Value::UInt(value) => *value,
            Value::Int(value) if *value >= 0 => value.unsigned_abs()
        ),
        Kind::Float => build!(
            Float64Builder::new(),
            Value::Float(value) => *value,
            Value::Int(value) if value.unsigned_abs() <= EXACT_MAX => *value as f64
        ),
        Kind::Text => build!(StringBuilder::new(), Value::Text(value) => value),
        _ => build!(BinaryBuilder::new(), Value::Bytes { bytes, .. } => bytes),
    }
}

fn number(dtype: &DataType, values: &[&Value]) -> Result<ArrayRef, Misfit> {
    let kind = match dtype {
        DataType::Boolean => Kind::Bool,
        DataType::UInt64 => Kind::UInt,
        dtype if dtype.is_integer() => Kind::Int,
        _ => Kind::Float,
    };
    let wide = simple(&kind, values)?;
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(&wide, dtype, &options).map_err(|error| misfit(0, error.to_string()))
}

/// Numbers of a primitive type, from their bytes.
fn primitive(dtype: &DataType, bytes: &[u8]) -> Result<ArrayRef, String> {
    if *dtype == DataType::Boolean {
        return Ok(Arc::new(BooleanArray::from_iter(bytes.iter().map(|byte| Some(*byte != 0)))));
    }
    let width = dtype.primitive_width().ok_or_else(|| format!("numbers of type {dtype}"))?;
    let data = ArrayData::builder(dtype.clone())
        .len(bytes.len() / width)
        .add_buffer(Buffer::from_slice_ref(bytes))
        .build();
    data.map(make_array).map_err(|error| error.to_string())
}

fn item(data_type: DataType) -> Arc<Field> {
    Arc::new(Field::new("item", data_type, true))
}

fn numbers(
    kind: &Kind,
    dtype: &DataType,
    values: &[&Value],
    offset_max: usize,
) -> Result<ArrayRef, Misfit> {
    let width = super::value::width(dtype);
    let mut all = Vec::new();
    let (mut lengths, mut valid) = (Vec::new(), Vec::new());
    for (index, value) in values.iter().enumerate() {
        let bytes: &[u8] = match value {
            Value::Null => &[],
            Value::Numbers { dtype: other, bytes } if other == dtype => bytes,
            // An empty list has no type.
            Value::List(items) if items.is_empty() => &[],
            _ => return Err(mismatch(kind, values, index)),
        };
        all.extend_from_slice(bytes);
        lengths.push(bytes.len() / width);
        valid.push(**value != Value::Null);
    }
    let offsets = offsets(&lengths, offset_max)?;
    let child = primitive(dtype, &all).map_err(|text| misfit(0, text))?;
    let nulls = Some(NullBuffer::from(valid));
    ListArray::try_new(item(dtype.clone()), offsets, child, nulls)
        .map(|array| Arc::new(array) as ArrayRef)
        .map_err(|error| misfit(0, error.to_string()))
}

fn tensors(
    kind: &Kind,
    dtype: &DataType,
    axes: &Axes,
    values: &[&Value],
    offset_max: usize,
) -> Result<ArrayRef, Misfit> {
    let mut all = Vec::new();
    let (mut lengths, mut shapes, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    let fixed = match axes {
        Axes::Fixed(shape) => Some(shape),
        Axes::Rank(_) => None,
    };
    let width = super::value::width(dtype);
    for (index, value) in values.iter().enumerate() {
        valid.push(**value != Value::Null);
        match value {
            Value::Null => {
                let filler = fixed.map_or(0, |shape| shape.iter().product::<usize>());
                all.resize(all.len() + filler * width, 0);
                lengths.push(0);
                shapes.resize(shapes.len() + axes.rank(), 0);
            }
            Value::Tensor { dtype: other, shape, bytes }
                if other == dtype
                    && shape.len() == axes.rank()
                    && fixed.is_none_or(|fixed| fixed == shape) =>
            {
                all.extend_from_slice(bytes);
                lengths.push(bytes.len() / width);
                shapes.extend(shape.iter().map(|axis| i32::try_from(*axis).unwrap_or(i32::MAX)));
            }
            Value::Tensor { dtype: other, shape, .. } if other == dtype => {
                let text = format!(
                    "an array of shape {shape:?}, where the records that determined the column's \
                     type all have {fixed:?}"
                );
                return Err(misfit(index, text));
            }
            _ => return Err(mismatch(kind, values, index)),
        }
    }
    let words = |error: arrow_schema::ArrowError| misfit(0, error.to_string());
    let child = primitive(dtype, &all).map_err(|text| misfit(0, text))?;
    let nulls = Some(NullBuffer::from(valid));
    if let DataType::FixedSizeList(field, length) = kind.data_type() {
        let rows = Some(NullBuffer::new_valid(values.len()));
        let nulls = nulls.or(rows);
        let array = FixedSizeListArray::try_new(field, length, child, nulls).map_err(words)?;
        return Ok(Arc::new(array));
    }
    let offsets = offsets(&lengths, offset_max)?;
    let data = ListArray::try_new(item(dtype.clone()), offsets, child, None).map_err(words)?;
    let rank = i32::try_from(axes.rank()).map_err(|error| misfit(0, error.to_string()))?;
    let shapes = Arc::new(Int32Array::from(shapes));
    let shape = FixedSizeListArray::try_new(item(DataType::Int32), rank, shapes, None);
    let shape = shape.map_err(words)?;
    let DataType::Struct(fields) = kind.data_type() else {
        return Err(misfit(0, format!("a column of type {}", kind.data_type())));
    };
    StructArray::try_new(fields, vec![Arc::new(data), Arc::new(shape)], nulls)
        .map(|array| Arc::new(array) as ArrayRef)
        .map_err(words)
}

fn list(kind: &Kind, of: &Kind, values: &[&Value], offset_max: usize) -> Result<ArrayRef, Misfit> {
    let (mut items, mut owners) = (Vec::new(), Vec::new());
    let (mut lengths, mut valid) = (Vec::new(), Vec::new());
    for (index, value) in values.iter().enumerate() {
        let row: &[Value] = match value {
            Value::Null => &[],
            Value::List(row) => row,
            _ => return Err(mismatch(kind, values, index)),
        };
        items.extend(row.iter());
        owners.resize(items.len(), index);
        lengths.push(row.len());
        valid.push(**value != Value::Null);
    }
    let offsets = offsets(&lengths, offset_max)?;
    let child = column_within(of, &items, offset_max).map_err(|Misfit { index, problem }| {
        misfit(owners.get(index).copied().unwrap_or(0), problem)
    })?;
    let field = item(child.data_type().clone());
    ListArray::try_new(field, offsets, child, Some(valid.into()))
        .map(|array| Arc::new(array) as ArrayRef)
        .map_err(|error| misfit(0, error.to_string()))
}

fn structs(
    kind: &Kind,
    fields: &[(String, Kind)],
    values: &[&Value],
    offset_max: usize,
) -> Result<ArrayRef, Misfit> {
    for (index, value) in values.iter().enumerate() {
        match value {
            Value::Null => {}
            Value::Struct(row) => {
                let known = |name: &String| fields.iter().any(|(field, _)| field == name);
                if let Some((name, _)) = row.iter().find(|(name, _)| !known(name)) {
                    return Err(misfit(
                        index,
                        format!("a field {name:?} that no earlier record has"),
                    ));
                }
            }
            _ => return Err(mismatch(kind, values, index)),
        }
    }
    let mut columns = Vec::new();
    for (name, kind) in fields {
        let row: Vec<&Value> = values
            .iter()
            .map(|value| match value {
                Value::Struct(row) => {
                    row.iter().find(|(field, _)| field == name).map_or(&Value::Null, |(_, v)| v)
                }
                _ => &Value::Null,
            })
            .collect();
        let column = column_within(kind, &row, offset_max);
        columns.push(column.map_err(|Misfit { index, problem }| {
            misfit(index, Message::from(format!("{name:?}: ")) + problem)
        })?);
    }
    let valid: Vec<bool> = values.iter().map(|value| **value != Value::Null).collect();
    let fields: Fields = fields.iter().map(|(name, kind)| kind.field(name)).collect();
    if fields.is_empty() {
        return Ok(Arc::new(StructArray::new_empty_fields(values.len(), Some(valid.into()))));
    }
    StructArray::try_new(fields, columns, Some(valid.into()))
        .map(|array| Arc::new(array) as ArrayRef)
        .map_err(|error| misfit(0, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float32Type, Int32Type};

    #[test]
    fn arrays_of_one_shape_and_of_several_retain_their_numbers() {
        let tensor = |shape: &[usize], first: i32| Value::Tensor {
            dtype: DataType::Int32,
            shape: shape.to_vec(),
            bytes: (0..shape.iter().product::<usize>() as i32)
                .flat_map(|number| (first + number).to_le_bytes())
                .collect(),
        };
        let values = [tensor(&[2, 2], 10), Value::Null, tensor(&[2, 2], 20)];
        let values: Vec<&Value> = values.iter().collect();
        let kind = Kind::Tensor(DataType::Int32, Axes::Fixed(vec![2, 2]));
        let array = column(&kind, &values).unwrap();
        assert_eq!(array.data_type(), &kind.data_type());
        let lists = array.as_fixed_size_list();
        assert!(lists.is_null(1));
        assert_eq!(lists.value(2).as_primitive::<Int32Type>().values(), &[20, 21, 22, 23]);

        let values = [tensor(&[1, 2], 1), tensor(&[2, 1], 5)];
        let values: Vec<&Value> = values.iter().collect();
        assert_eq!(column(&kind, &values).unwrap_err().index, 0);
        let kind = Kind::Tensor(DataType::Int32, Axes::Rank(2));
        let array = column(&kind, &values).unwrap();
        let row = array.as_struct();
        let shapes = row.column(1).as_fixed_size_list().value(1);
        assert_eq!(shapes.as_primitive::<Int32Type>().values(), &[2, 1]);
    }

    #[test]
    fn a_value_that_does_not_fit_is_named_by_its_index() {
        let values = [Value::List(vec![Value::Int(1)]), Value::List(vec![Value::Text("x".into())])];
        let values: Vec<&Value> = values.iter().collect();
        let Misfit { index, problem } =
            column(&Kind::List(Box::new(Kind::Int)), &values).unwrap_err();
        assert!(index == 1 && problem.to_string().contains("a text"), "{index} {problem}");
        let floats = [Value::Float(0.5), Value::Null];
        let floats: Vec<&Value> = floats.iter().collect();
        let array = column(&Kind::Number(DataType::Float32), &floats).unwrap();
        assert_eq!(array.as_primitive::<Float32Type>().value(0), 0.5);
        let big = [Value::Int(300)];
        let big: Vec<&Value> = big.iter().collect();
        assert!(column(&Kind::Number(DataType::UInt8), &big).is_err());
    }

    #[test]
    fn a_column_with_more_than_its_offsets_hold_is_refused_at_the_row() {
        let text = |length: usize| Value::Text("x".repeat(length));
        let bytes = |length: usize| Value::Bytes { bytes: vec![0; length], at: None };
        let numbers =
            |count: usize| Value::Numbers { dtype: DataType::UInt8, bytes: vec![0; count] };
        let tensor = |count: usize| Value::Tensor {
            dtype: DataType::UInt8,
            shape: vec![count],
            bytes: vec![0; count],
        };
        let list = |count: usize| Value::List(vec![Value::Int(1); count]);
        let inner = |count: usize| Value::List(vec![text(count)]);
        let field = |count: usize| Value::Struct(vec![("a".to_owned(), text(count))]);
        let made: [(&dyn Fn(usize) -> Value, Kind); 7] = [
            (&text, Kind::Text),
            (&bytes, Kind::Bytes),
            (&numbers, Kind::Numbers(DataType::UInt8)),
            (&tensor, Kind::Tensor(DataType::UInt8, Axes::Rank(1))),
            (&list, Kind::List(Box::new(Kind::Int))),
            (&inner, Kind::List(Box::new(Kind::Text))),
            (&field, Kind::Struct(vec![("a".to_owned(), Kind::Text)])),
        ];
        for (make, kind) in made {
            let values = [make(4), Value::Null, make(6), make(1)];
            let values: Vec<&Value> = values.iter().collect();
            assert_eq!(column_within(&kind, &values, 11).unwrap().len(), 4, "{kind:?}");
            assert_eq!(column_within(&kind, &values, 10).unwrap_err().index, 3, "{kind:?}");
            assert_eq!(column_within(&kind, &values, 9).unwrap_err().index, 2, "{kind:?}");
        }
    }
}
