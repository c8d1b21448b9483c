//! The rows of a dataset for people and programs to read: everything except the content.
//!
//! Memory: the tables and further columns of one record batch. No content is read.

use super::select::{Fitting, Selection};
use crate::Error;
use crate::error::OperationError;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use meetpoint_prepare::Dataset;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Maximum number of list elements shown; a longer list is replaced by its length.
pub const ELEMENTS_MAX: usize = 64;

/// A row.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ShownRow {
    /// Index of the sample in the dataset.
    pub sample: u64,
    /// Its key.
    pub key: String,
    /// Name of its label.
    pub label: Option<String>,
    /// Bytes of its content as stored.
    pub bytes: u64,
    /// CRC-32C of the content as stored, eight hexadecimal digits.
    pub crc32c: String,
    /// Bytes of its entry points.
    pub entry_points_bytes: u64,
    /// Its further columns by name. Binary values are `{"bytes": n}`; a list of more than
    /// [`ELEMENTS_MAX`] elements is `{"elements": n}`; a float that is not finite, or a value of a
    /// type that JSON lacks, is text.
    pub columns: Map<String, Value>,
}

/// Passes the matching rows, in order, at most `rows_max`, to `receive`; `Ok(false)` from it ends
/// early. `only` names the further columns to show; `None` shows all.
pub fn rows(
    path: &Path,
    selection: &Selection,
    rows_max: u64,
    only: Option<&[String]>,
    receive: &mut dyn FnMut(ShownRow) -> Result<bool, Error>,
) -> Result<(), Error> {
    let dataset = Dataset::open(path)?;
    let columns = columns(&dataset, only)?;
    let fitting = Fitting::of(&dataset, selection)?;
    let mut fitting = fitting.samples().take(usize::try_from(rows_max).unwrap_or(usize::MAX));
    let mut next = fitting.next();
    while let Some(first) = next {
        let (batch, _) = dataset.batch_of(first)?;
        let range = dataset.samples_of(batch);
        let keyed = dataset.keyed_rows(batch)?;
        let extra = match columns.is_empty() {
            true => None,
            false => Some(dataset.extra(batch, Some(&columns))?),
        };
        while let Some(sample) = next.filter(|sample| range.contains(sample)) {
            let row = usize::try_from(sample - range.start).expect("a row of a record batch");
            let location = dataset.locate(sample)?;
            let label = location.label.and_then(|label| usize::try_from(label).ok());
            let points = keyed.entry_points.as_ref().and_then(|table| table.row(row));
            let mut shown = Map::new();
            if let Some(extra) = &extra {
                shown = row_values(extra, row, ELEMENTS_MAX);
            }
            let goes_on = receive(ShownRow {
                sample,
                key: keyed.keys[row].clone(),
                label: label.map(|label| dataset.manifest().labels[label].clone()),
                bytes: location.bytes,
                crc32c: format!("{:08x}", location.crc32c),
                entry_points_bytes: points.map_or(0, |points| points.as_ref().len() as u64),
                columns: shown,
            })?;
            if !goes_on {
                return Ok(());
            }
            next = fitting.next();
        }
    }
    Ok(())
}

/// Indices of the further columns that are shown.
fn columns(dataset: &Dataset, only: Option<&[String]>) -> Result<Vec<usize>, Error> {
    let fields = dataset.columns().extra.fields();
    let Some(only) = only else { return Ok((0..fields.len()).collect()) };
    let index = |name: &String| {
        fields.iter().position(|field| field.name() == name).ok_or_else(|| {
            let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
            OperationError::NoColumn {
                path: dataset.path().to_path_buf(),
                column: name.clone(),
                available: if names.is_empty() { "none".to_owned() } else { names.join(", ") },
            }
        })
    };
    Ok(only.iter().map(index).collect::<Result<_, _>>()?)
}

/// The values of a row of further columns by name, as in [`ShownRow::columns`]; a list of more than
/// `elements_max` elements is replaced by its length.
pub fn row_values(batch: &RecordBatch, row: usize, elements_max: usize) -> Map<String, Value> {
    let fields = batch.schema_ref().fields().iter().zip(batch.columns());
    fields.map(|(field, column)| (field.name().clone(), value(column, row, elements_max))).collect()
}

/// An element of an array as JSON.
fn value(array: &dyn Array, row: usize, most: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    macro_rules! primitive {
        ($type:ty) => {
            json!(array.as_primitive::<$type>().value(row))
        };
    }
    match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => json!(array.as_boolean().value(row)),
        DataType::Int8 => primitive!(Int8Type),
        DataType::Int16 => primitive!(Int16Type),
        DataType::Int32 => primitive!(Int32Type),
        DataType::Int64 => primitive!(Int64Type),
        DataType::UInt8 => primitive!(UInt8Type),
        DataType::UInt16 => primitive!(UInt16Type),
        DataType::UInt32 => primitive!(UInt32Type),
        DataType::UInt64 => primitive!(UInt64Type),
        DataType::Float16 => float(array.as_primitive::<Float16Type>().value(row).to_f64()),
        DataType::Float32 => float(array.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => json!(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => json!(array.as_string::<i64>().value(row)),
        DataType::Binary => json!({ "bytes": array.as_binary::<i32>().value_length(row) }),
        DataType::LargeBinary => json!({ "bytes": array.as_binary::<i64>().value_length(row) }),
        DataType::FixedSizeBinary(width) => json!({ "bytes": width }),
        DataType::List(_) => list(&array.as_list::<i32>().value(row), most),
        DataType::LargeList(_) => list(&array.as_list::<i64>().value(row), most),
        DataType::FixedSizeList(..) => list(&array.as_fixed_size_list().value(row), most),
        DataType::Struct(_) => {
            let members = array.as_struct();
            let named = members.column_names().into_iter().zip(members.columns());
            Value::Object(named.map(|(name, of)| (name.to_owned(), value(of, row, most))).collect())
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let pairs = (0..entries.len()).map(|pair| {
                let key = match value(entries.column(0), pair, most) {
                    Value::String(key) => key,
                    other => other.to_string(),
                };
                (key, value(entries.column(1), pair, most))
            });
            Value::Object(pairs.collect())
        }
        _ => text(array, row),
    }
}

/// A JSON number, or text if the value is not finite.
fn float(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or_else(|| json!(value.to_string()), Value::Number)
}

fn list(elements: &ArrayRef, most: usize) -> Value {
    if elements.len() > most {
        return json!({ "elements": elements.len() });
    }
    Value::Array((0..elements.len()).map(|element| value(elements, element, most)).collect())
}

/// A value as Arrow prints it.
fn text(array: &dyn Array, row: usize) -> Value {
    let options = FormatOptions::default();
    match ArrayFormatter::try_new(array, &options) {
        Ok(formatter) => json!(formatter.value(row).to_string()),
        Err(error) => json!(format!("({error})")),
    }
}

#[cfg(test)]
mod tests {
    use super::{ELEMENTS_MAX, row_values};
    use arrow_array::builder::{Int32Builder, MapBuilder, StringBuilder};
    use arrow_array::types::Int32Type;
    use arrow_array::{
        ArrayRef, BinaryArray, Date32Array, Float32Array, Int64Array, ListArray, RecordBatch,
        StringArray, StructArray,
    };
    use arrow_schema::{DataType, Field};
    use serde_json::json;
    use std::sync::Arc;

    fn value(array: &ArrayRef, row: usize) -> serde_json::Value {
        super::value(array, row, ELEMENTS_MAX)
    }

    #[test]
    fn every_kind_of_value_has_its_json() {
        let number: ArrayRef = Arc::new(Int64Array::from(vec![Some(-7), None]));
        assert_eq!((value(&number, 0), value(&number, 1)), (json!(-7), json!(null)));
        let floats: ArrayRef = Arc::new(Float32Array::from(vec![0.5, f32::NAN]));
        assert_eq!((value(&floats, 0), value(&floats, 1)), (json!(0.5), json!("NaN")));
        let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![&b"abc"[..]]));
        assert_eq!(value(&bytes, 0), json!({ "bytes": 3 }));
        let lists = [Some(vec![Some(1), None]), Some(vec![Some(2); 65])];
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists));
        assert_eq!(value(&lists, 0), json!([1, null]));
        assert_eq!(value(&lists, 1), json!({ "elements": 65 }));
        let names: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        let field = Arc::new(Field::new("name", DataType::Utf8, false));
        let nested: ArrayRef = Arc::new(StructArray::from(vec![(field, names)]));
        assert_eq!(value(&nested, 0), json!({ "name": "a" }));
        let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
        map.keys().append_value("a");
        map.values().append_value(2);
        map.append(true).unwrap();
        map.append(true).unwrap();
        let map: ArrayRef = Arc::new(map.finish());
        assert_eq!((value(&map, 0), value(&map, 1)), (json!({ "a": 2 }), json!({})));
        let batch = RecordBatch::try_from_iter([("lists", lists)]).unwrap();
        let values = row_values(&batch, 1, usize::MAX);
        assert_eq!(values["lists"].as_array().unwrap().len(), 65);
        let date: ArrayRef = Arc::new(Date32Array::from(vec![1]));
        assert_eq!(value(&date, 0), json!("1970-01-02"));
    }
}
