//! A cell of an Arrow column as a plain value, for formats without column types.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;

/// A plain value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// Nothing.
    Null,
    /// Yes or no.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer of an unsigned 64-bit column.
    UInt(u64),
    /// A number of up to 64 bits.
    Float(f64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A list of values.
    List(Vec<Value>),
    /// Values by name, in the order of the fields.
    Map(Vec<(String, Value)>),
}

/// The value of an array in a row.
pub(super) fn cell(array: &dyn Array, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    macro_rules! int {
        ($type:ty) => {
            Value::Int(array.as_primitive::<$type>().value(row).into())
        };
    }
    match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        DataType::Int8 => int!(Int8Type),
        DataType::Int16 => int!(Int16Type),
        DataType::Int32 => int!(Int32Type),
        DataType::Int64 => int!(Int64Type),
        DataType::UInt8 => int!(UInt8Type),
        DataType::UInt16 => int!(UInt16Type),
        DataType::UInt32 => int!(UInt32Type),
        DataType::UInt64 => Value::UInt(array.as_primitive::<UInt64Type>().value(row)),
        DataType::Float16 => Value::Float(array.as_primitive::<Float16Type>().value(row).into()),
        DataType::Float32 => Value::Float(array.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => Value::Float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => Value::Text(array.as_string::<i32>().value(row).to_owned()),
        DataType::LargeUtf8 => Value::Text(array.as_string::<i64>().value(row).to_owned()),
        DataType::Binary => Value::Bytes(array.as_binary::<i32>().value(row).to_vec()),
        DataType::LargeBinary => Value::Bytes(array.as_binary::<i64>().value(row).to_vec()),
        DataType::FixedSizeBinary(_) => {
            Value::Bytes(array.as_fixed_size_binary().value(row).to_vec())
        }
        DataType::List(_) => list(&array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => list(&array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => list(&array.as_fixed_size_list().value(row)),
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let pairs = fields.iter().zip(columns);
            Value::Map(
                pairs.map(|(field, column)| (field.name().clone(), cell(column, row))).collect(),
            )
        }
        _ => Value::Text(in_words(array, row)),
    }
}

fn list(values: &ArrayRef) -> Value {
    Value::List((0..values.len()).map(|row| cell(values, row)).collect())
}

/// Times, decimals and other types without a plain counterpart, as Arrow prints them.
fn in_words(array: &dyn Array, row: usize) -> String {
    let options = FormatOptions::default();
    ArrayFormatter::try_new(array, &options).map_or_else(
        |error| error.to_string(),
        |formatter| formatter.value(row).try_to_string().unwrap_or_else(|error| error.to_string()),
    )
}

/// Whether [`cell`] returns values of a type unchanged, not as text.
pub(super) fn is_plain(data_type: &DataType) -> bool {
    match data_type {
        DataType::Null
        | DataType::Boolean
        | DataType::Float16
        | DataType::Float32
        | DataType::Float64
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::FixedSizeBinary(_) => true,
        DataType::List(child) | DataType::LargeList(child) | DataType::FixedSizeList(child, _) => {
            is_plain(child.data_type())
        }
        DataType::Struct(fields) => fields.iter().all(|field| is_plain(field.data_type())),
        other => other.is_integer(),
    }
}

/// Whether a type contains bytes, which JSON cannot store.
pub(super) fn has_bytes(data_type: &DataType) -> bool {
    match data_type {
        DataType::Binary | DataType::LargeBinary | DataType::FixedSizeBinary(_) => true,
        DataType::List(child)
        | DataType::LargeList(child)
        | DataType::FixedSizeList(child, _)
        | DataType::Map(child, _) => has_bytes(child.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_bytes(field.data_type())),
        _ => false,
    }
}

/// Whether a reader of JSON or msgpack infers this type from the values: 64-bit numbers, text,
/// lists and maps of them.
pub(super) fn is_determined_by_its_values(data_type: &DataType) -> bool {
    match data_type {
        DataType::Boolean | DataType::Int64 | DataType::Float64 | DataType::Utf8 => true,
        DataType::List(child) => is_determined_by_its_values(child.data_type()),
        DataType::Struct(fields) => {
            fields.iter().all(|field| is_determined_by_its_values(field.data_type()))
        }
        _ => false,
    }
}

/// A value as JSON; an error names the value that JSON cannot store.
pub(super) fn json(value: Value) -> Result<serde_json::Value, String> {
    use serde_json::Value as Json;
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(value) => value.into(),
        Value::Int(value) => value.into(),
        Value::UInt(value) => value.into(),
        Value::Float(value) => serde_json::Number::from_f64(value)
            .map(Json::Number)
            .ok_or_else(|| format!("is {value}, which JSON numbers cannot represent"))?,
        Value::Text(value) => value.into(),
        Value::Bytes(_) => return Err("has bytes, which JSON cannot store".to_owned()),
        Value::List(values) => values.into_iter().map(json).collect::<Result<Vec<_>, _>>()?.into(),
        Value::Map(pairs) => {
            let pairs = pairs.into_iter().map(|(name, value)| Ok((name, json(value)?)));
            Json::Object(pairs.collect::<Result<_, String>>()?)
        }
    })
}

/// A value as msgpack, in the same bytes as Python's `msgpack` writes the same value.
pub(super) fn msgpack(value: &Value, to: &mut Vec<u8>) {
    // Writing to a vector fails only if memory runs out.
    let written = "a vector takes all that is written";
    match value {
        Value::Null => rmp::encode::write_nil(to).expect(written),
        Value::Bool(value) => rmp::encode::write_bool(to, *value).expect(written),
        Value::Int(value) => {
            rmp::encode::write_sint(to, *value).expect(written);
        }
        Value::UInt(value) => {
            rmp::encode::write_uint(to, *value).expect(written);
        }
        Value::Float(value) => rmp::encode::write_f64(to, *value).expect(written),
        Value::Text(value) => rmp::encode::write_str(to, value).expect(written),
        Value::Bytes(value) => rmp::encode::write_bin(to, value).expect(written),
        Value::List(values) => {
            let count = u32::try_from(values.len()).expect("a list in a row has fewer than 2^32");
            rmp::encode::write_array_len(to, count).expect(written);
            values.iter().for_each(|value| msgpack(value, to));
        }
        Value::Map(pairs) => {
            let count = u32::try_from(pairs.len()).expect("a struct has fewer than 2^32 fields");
            rmp::encode::write_map_len(to, count).expect(written);
            for (name, value) in pairs {
                rmp::encode::write_str(to, name).expect(written);
                msgpack(value, to);
            }
        }
    }
}
