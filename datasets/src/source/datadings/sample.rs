//! One sample: a MessagePack map, with NumPy's arrays as `msgpack-numpy` writes them.

use crate::source::rows::value::FIELDS_MAX;
use crate::source::rows::value::{Value, dtype_of, is_shape_of, number, width};
use rmp::Marker;
use rmpv::ValueRef;

/// Maximum nesting depth of maps and arrays.
const DEPTH_MAX: usize = 32;

/// Memory of a parsed value, without the bytes of a string.
const VALUE_BYTES: u64 = (size_of::<ValueRef<'_>>() + size_of::<(String, Value)>()) as u64;

/// Memory that the values of a sample take once it is parsed: each is at least a byte in the file.
pub(super) fn values_bytes(sample: &[u8]) -> u64 {
    let (mut values, mut at) = (0, 0_usize);
    while let Some(&first) = sample.get(at) {
        values += 1;
        let length = |bytes: usize| {
            let end = (at + 1 + bytes).min(sample.len());
            sample[at + 1..end].iter().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte))
        };
        let behind = match Marker::from_u8(first) {
            Marker::FixStr(bytes) => usize::from(bytes),
            Marker::U8 | Marker::I8 => 1,
            Marker::U16 | Marker::I16 | Marker::Array16 | Marker::Map16 => 2,
            Marker::U32 | Marker::I32 | Marker::F32 | Marker::Array32 | Marker::Map32 => 4,
            Marker::U64 | Marker::I64 | Marker::F64 => 8,
            Marker::Str8 | Marker::Bin8 => 1 + length(1),
            Marker::Str16 | Marker::Bin16 => 2 + length(2),
            Marker::Str32 | Marker::Bin32 => 4 + length(4),
            // Extensions are refused, and the rest is a single byte.
            _ => 0,
        };
        at = at.saturating_add(1 + behind);
    }
    VALUE_BYTES * values
}

/// The values of a sample whose bytes start at offset `at` of the file.
pub(super) fn parse(bytes: &[u8], at: u64) -> Result<Vec<(String, Value)>, String> {
    let mut rest = bytes;
    let value = rmpv::decode::read_value_ref_with_max_depth(&mut rest, DEPTH_MAX)
        .map_err(|error| format!("does not parse: {error}"))?;
    if !rest.is_empty() {
        return Err(format!("{} bytes after its map", rest.len()));
    }
    let ValueRef::Map(entries) = value else { return Err("is no map".to_owned()) };
    check_length(&entries)?;
    let mut fields: Vec<(String, Value)> = Vec::with_capacity(entries.len().min(64));
    for (name, value) in &entries {
        let name = name_of(name)?;
        if fields.iter().any(|(known, _)| *known == name) {
            return Err(format!("has {name:?} twice"));
        }
        let value = convert(value, bytes, at).map_err(|text| format!("{name:?}: {text}"))?;
        fields.push((name, value));
    }
    Ok(fields)
}

fn check_length(entries: &[(ValueRef<'_>, ValueRef<'_>)]) -> Result<(), String> {
    match entries.len() {
        0..=FIELDS_MAX => Ok(()),
        fields => Err(format!("a map of {fields} fields, the limit is {FIELDS_MAX}")),
    }
}

fn name_of(name: &ValueRef<'_>) -> Result<String, String> {
    match name {
        ValueRef::String(text) => text.as_str().map(str::to_owned),
        ValueRef::Binary(bytes) => std::str::from_utf8(bytes).ok().map(str::to_owned),
        ValueRef::Integer(number) => Some(number.to_string()),
        _ => None,
    }
    .ok_or_else(|| "a name that is not a text".to_owned())
}

fn convert(value: &ValueRef<'_>, sample: &[u8], at: u64) -> Result<Value, String> {
    Ok(match value {
        ValueRef::Nil => Value::Null,
        ValueRef::Boolean(value) => Value::Bool(*value),
        ValueRef::Integer(value) => match (value.as_i64(), value.as_u64()) {
            (Some(value), _) => Value::Int(value),
            (None, Some(value)) => Value::UInt(value),
            (None, None) => return Err("an integer of unknown kind".to_owned()),
        },
        ValueRef::F32(value) => Value::Float(f64::from(*value)),
        ValueRef::F64(value) => Value::Float(*value),
        ValueRef::String(text) => {
            Value::Text(text.as_str().ok_or("a text that is not UTF-8")?.to_owned())
        }
        ValueRef::Binary(bytes) => {
            // The bytes are a slice of the sample, so the pointer difference is their offset.
            let distance = (bytes.as_ptr() as usize).checked_sub(sample.as_ptr() as usize);
            Value::Bytes { bytes: bytes.to_vec(), at: distance.map(|bytes| at + bytes as u64) }
        }
        ValueRef::Array(items) => {
            let items = items.iter().map(|item| convert(item, sample, at));
            Value::List(items.collect::<Result<_, _>>()?)
        }
        ValueRef::Map(entries) => match numpy(entries)? {
            Some(value) => value,
            None => {
                check_length(entries)?;
                let entries = entries
                    .iter()
                    .map(|(name, value)| Ok((name_of(name)?, convert(value, sample, at)?)));
                Value::Struct(entries.collect::<Result<_, String>>()?)
            }
        },
        ValueRef::Ext(kind, _) => {
            return Err(format!("a MessagePack extension of type {kind}, which is not read"));
        }
    })
}

/// An array or a number of NumPy: `{nd: true, type: "<f4", kind: "", shape: […], data: …}`.
fn numpy(entries: &[(ValueRef<'_>, ValueRef<'_>)]) -> Result<Option<Value>, String> {
    let find = |wanted: &str| {
        entries.iter().find_map(|(name, value)| {
            let is_wanted = name_of(name).is_ok_and(|name| name == wanted);
            is_wanted.then_some(value)
        })
    };
    if find("complex").is_some() {
        return Err("a complex number, which is not read".to_owned());
    }
    let (Some(ValueRef::Boolean(is_array)), Some(data)) = (find("nd"), find("data")) else {
        return Ok(None);
    };
    let data = match data {
        ValueRef::Binary(data) => *data,
        _ => return Err("an array of NumPy without its bytes".to_owned()),
    };
    let name = find("type").map(name_of).transpose();
    let name = name.ok().flatten().ok_or("an array of NumPy of structured or object type")?;
    let (dtype, is_big) = dtype_of(&name).ok_or_else(|| format!("an array of type {name:?}"))?;
    let shape: Vec<usize> = match find("shape") {
        _ if !is_array => Vec::new(),
        Some(ValueRef::Array(axes)) => {
            let axes = axes.iter().map(|axis| axis.as_u64().map(|axis| axis as usize));
            axes.collect::<Option<_>>().ok_or("an array of NumPy with a wrong shape")?
        }
        _ => return Err("an array of NumPy without a shape".to_owned()),
    };
    if !is_shape_of(&shape, &dtype, data.len()) {
        return Err(format!("{} bytes for an array of {name} of shape {shape:?}", data.len()));
    }
    let mut bytes = data.to_vec();
    if is_big {
        bytes.chunks_exact_mut(width(&dtype)).for_each(<[u8]>::reverse);
    }
    if !is_array {
        return Ok(Some(number(&dtype, &bytes)));
    }
    Ok(Some(Value::Tensor { dtype, shape, bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmpv::Value as Any;

    #[test]
    fn the_memory_of_values_is_known_before_they_are_parsed() {
        let sample = Any::Map(vec![
            (Any::from("text"), Any::from("x".repeat(300))),
            (Any::from("bytes"), Any::Binary(vec![0; 70_000])),
            (Any::from("list"), Any::Array(vec![Any::Nil; 1000])),
            (Any::from("numbers"), Any::Array(vec![1.into(), 300.into(), 1e9.into(), (-5).into()])),
            (Any::from("map"), Any::Map(vec![(Any::from("a"), Any::Boolean(true))])),
        ]);
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, &sample).unwrap();
        // The map, its names, its values, and what is in the last three.
        assert_eq!(values_bytes(&bytes), VALUE_BYTES * (1 + 5 + 5 + 1000 + 4 + 2));
        assert_eq!(parse(&bytes, 0).unwrap().len(), 5);
        for cut in 0..bytes.len().min(400) {
            assert!(values_bytes(&bytes[..cut]) <= VALUE_BYTES * cut as u64);
        }
    }

    #[test]
    fn a_map_of_more_fields_than_are_searched_is_refused() {
        let sample = |count: usize| {
            let fields = (0..count).map(|number| (Any::from(number.to_string()), Any::Nil));
            let mut bytes = Vec::new();
            rmpv::encode::write_value(&mut bytes, &Any::Map(fields.collect())).unwrap();
            bytes
        };
        assert_eq!(parse(&sample(FIELDS_MAX), 0).unwrap().len(), FIELDS_MAX);
        assert!(parse(&sample(FIELDS_MAX + 1), 0).is_err());
    }
}
