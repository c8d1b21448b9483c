//! The description of columns for the `datasets` library of Hugging Face: the JSON under
//! `huggingface` in the metadata of a schema.

use crate::source::ContentKind;
use arrow_schema::{DataType, Field, TimeUnit};
use serde_json::{Value, json};

/// Key in the metadata of a file.
pub(super) const METADATA_KEY: &str = "huggingface";
/// Key in a field's metadata for names of its integers.
const LABELS_KEY: &str = "meetpoint.labels";

/// The feature of the content.
pub(super) fn content(kind: ContentKind) -> Value {
    match kind {
        ContentKind::Image => json!({"_type": "Image"}),
        ContentKind::Audio => json!({"_type": "Audio"}),
        ContentKind::Text => value("string"),
        ContentKind::Bytes | ContentKind::None => value("binary"),
    }
}

/// The feature of labels with names.
pub(super) fn class_label(names: &[String]) -> Value {
    json!({"_type": "ClassLabel", "names": names})
}

/// The feature of a plain value.
pub(super) fn value(dtype: &str) -> Value {
    json!({"_type": "Value", "dtype": dtype})
}

/// The feature of a column; `None` for types that the library has no feature for.
pub(super) fn feature(field: &Field) -> Option<Value> {
    let names = field.metadata().get(LABELS_KEY);
    let names: Option<Vec<String>> = names.and_then(|text| serde_json::from_str(text).ok());
    match (names, field.data_type()) {
        (Some(names), DataType::Int64) => Some(class_label(&names)),
        (_, data_type) => of_type(data_type),
    }
}

fn of_type(data_type: &DataType) -> Option<Value> {
    let unit = |unit: &TimeUnit| match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    };
    let dtype = match data_type {
        DataType::Null => "null".to_owned(),
        DataType::Boolean => "bool".to_owned(),
        DataType::Int8 => "int8".to_owned(),
        DataType::Int16 => "int16".to_owned(),
        DataType::Int32 => "int32".to_owned(),
        DataType::Int64 => "int64".to_owned(),
        DataType::UInt8 => "uint8".to_owned(),
        DataType::UInt16 => "uint16".to_owned(),
        DataType::UInt32 => "uint32".to_owned(),
        DataType::UInt64 => "uint64".to_owned(),
        DataType::Float16 => "float16".to_owned(),
        DataType::Float32 => "float32".to_owned(),
        DataType::Float64 => "float64".to_owned(),
        DataType::Utf8 => "string".to_owned(),
        DataType::LargeUtf8 => "large_string".to_owned(),
        DataType::Binary => "binary".to_owned(),
        DataType::LargeBinary => "large_binary".to_owned(),
        DataType::Date32 => "date32".to_owned(),
        DataType::Date64 => "date64".to_owned(),
        DataType::Time32(of) => format!("time32[{}]", unit(of)),
        DataType::Time64(of) => format!("time64[{}]", unit(of)),
        DataType::Duration(of) => format!("duration[{}]", unit(of)),
        DataType::Timestamp(of, None) => format!("timestamp[{}]", unit(of)),
        DataType::Timestamp(of, Some(zone)) => format!("timestamp[{}, tz={zone}]", unit(of)),
        DataType::Decimal128(precision, scale) => format!("decimal128({precision}, {scale})"),
        // Every version of the library accepts a list with one feature as a list type.
        DataType::List(child) => return Some(json!([of_type(child.data_type())?])),
        DataType::LargeList(child) => {
            return Some(json!({"_type": "LargeList", "feature": of_type(child.data_type())?}));
        }
        DataType::FixedSizeList(child, length) => {
            return Some(json!({
                "_type": "Sequence",
                "feature": of_type(child.data_type())?,
                "length": length,
            }));
        }
        DataType::Struct(fields) => {
            let pairs = fields
                .iter()
                .map(|field| Some((field.name().clone(), of_type(field.data_type())?)));
            return pairs.collect::<Option<serde_json::Map<_, _>>>().map(Value::Object);
        }
        _ => return None,
    };
    Some(value(&dtype))
}
