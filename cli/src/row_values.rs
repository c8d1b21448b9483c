//! The further columns of a sample as JSON: numbers, texts and lists as they are, bytes as their
//! count, whatever JSON has no form for as text.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType};
use serde_json::{Map, Value, json};

/// The values of a row by column.
pub(crate) fn of_row(batch: &RecordBatch, row: usize) -> Result<Map<String, Value>, ArrowError> {
    let fields = batch.schema_ref().fields().iter().zip(batch.columns());
    fields.map(|(field, column)| Ok((field.name().clone(), value(column, row)?))).collect()
}

fn value(array: &dyn Array, row: usize) -> Result<Value, ArrowError> {
    use DataType as T;
    if array.is_null(row) {
        return Ok(Value::Null);
    }
    let list = |values: &dyn Array| {
        (0..values.len()).map(|item| value(values, item)).collect::<Result<Value, _>>()
    };
    let bytes = |bytes: &[u8]| json!({ "bytes": bytes.len() });
    Ok(match array.data_type() {
        T::Null => Value::Null,
        T::Boolean => Value::from(array.as_boolean().value(row)),
        T::Float32 => json!(array.as_primitive::<Float32Type>().value(row)),
        T::Float64 => json!(array.as_primitive::<Float64Type>().value(row)),
        T::Utf8 => Value::from(array.as_string::<i32>().value(row)),
        T::LargeUtf8 => Value::from(array.as_string::<i64>().value(row)),
        T::Binary => bytes(array.as_binary::<i32>().value(row)),
        T::LargeBinary => bytes(array.as_binary::<i64>().value(row)),
        T::FixedSizeBinary(_) => bytes(array.as_fixed_size_binary().value(row)),
        T::List(_) => list(&array.as_list::<i32>().value(row))?,
        T::LargeList(_) => list(&array.as_list::<i64>().value(row))?,
        T::FixedSizeList(..) => list(&array.as_fixed_size_list().value(row))?,
        T::Struct(fields) => {
            let columns = fields.iter().zip(array.as_struct().columns());
            let pairs =
                columns.map(|(field, column)| Ok((field.name().clone(), value(column, row)?)));
            Value::Object(pairs.collect::<Result<_, ArrowError>>()?)
        }
        T::Map(..) => {
            let entries = array.as_map().value(row);
            let pairs = (0..entries.len()).map(|pair| {
                let key = match value(entries.column(0), pair)? {
                    Value::String(key) => key,
                    other => other.to_string(),
                };
                Ok((key, value(entries.column(1), pair)?))
            });
            Value::Object(pairs.collect::<Result<_, ArrowError>>()?)
        }
        data_type => {
            let text = ArrayFormatter::try_new(array, &FormatOptions::default())?;
            let text = text.value(row).to_string();
            // Whole numbers are numbers; 64-bit ones do not go through a float.
            match serde_json::from_str::<serde_json::Number>(&text) {
                Ok(number) if data_type.is_integer() => Value::Number(number),
                _ => Value::String(text),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::of_row;
    use arrow_array::builder::{Int32Builder, ListBuilder, MapBuilder, StringBuilder};
    use arrow_array::{
        ArrayRef, BinaryArray, Float32Array, Int64Array, RecordBatch, StructArray,
        TimestampSecondArray,
    };
    use arrow_schema::{DataType, Field};
    use serde_json::{Value, json};
    use std::sync::Arc;

    #[test]
    fn values_of_every_sort_have_a_form() {
        let mut list = ListBuilder::new(Int32Builder::new());
        list.append_value([Some(1), None]);
        list.append(false);
        let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
        map.keys().append_value("a");
        map.values().append_value(2);
        map.append(true).unwrap();
        map.append(true).unwrap();
        let years: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX, 1]));
        let field = Arc::new(Field::new("year", DataType::Int64, true));
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("list", Arc::new(list.finish())),
            ("map", Arc::new(map.finish())),
            ("source", Arc::new(StructArray::from(vec![(field, years)]))),
            ("mask", Arc::new(BinaryArray::from_vec(vec![b"abc", b""]))),
            ("x", Arc::new(Float32Array::from(vec![0.5, f32::NAN]))),
            ("time", Arc::new(TimestampSecondArray::from(vec![0, 1]).with_timezone("+00:00"))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let expected = json!({
            "list": [1, null], "map": {"a": 2}, "source": {"year": i64::MAX},
            "mask": {"bytes": 3}, "x": 0.5, "time": "1970-01-01T00:00:00Z",
        });
        assert_eq!(Value::Object(of_row(&batch, 0).unwrap()), expected);
        let second = of_row(&batch, 1).unwrap();
        assert_eq!((&second["list"], &second["map"]), (&Value::Null, &json!({})));
    }
}
