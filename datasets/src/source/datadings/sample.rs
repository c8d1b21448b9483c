//! One sample: a MessagePack map, with NumPy's arrays as `msgpack-numpy` writes them.

use crate::source::rows::value::{Value, dtype_of, is_shape_of, number, width};
use rmpv::ValueRef;

/// How deep maps and arrays may stand in one another.
const DEPTH_MAX: usize = 32;

/// The values of a sample whose bytes begin at `at` in the file.
pub(super) fn parse(bytes: &[u8], at: u64) -> Result<Vec<(String, Value)>, String> {
    let mut rest = bytes;
    let value = rmpv::decode::read_value_ref_with_max_depth(&mut rest, DEPTH_MAX)
        .map_err(|error| format!("does not parse: {error}"))?;
    if !rest.is_empty() {
        return Err(format!("{} bytes behind its map", rest.len()));
    }
    let ValueRef::Map(entries) = value else { return Err("is no map".to_owned()) };
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

fn name_of(name: &ValueRef<'_>) -> Result<String, String> {
    match name {
        ValueRef::String(text) => text.as_str().map(str::to_owned),
        ValueRef::Binary(bytes) => std::str::from_utf8(bytes).ok().map(str::to_owned),
        ValueRef::Integer(number) => Some(number.to_string()),
        _ => None,
    }
    .ok_or_else(|| "a name that is no text".to_owned())
}

fn convert(value: &ValueRef<'_>, sample: &[u8], at: u64) -> Result<Value, String> {
    Ok(match value {
        ValueRef::Nil => Value::Null,
        ValueRef::Boolean(value) => Value::Bool(*value),
        ValueRef::Integer(value) => match (value.as_i64(), value.as_u64()) {
            (Some(value), _) => Value::Int(value),
            (None, Some(value)) => Value::UInt(value),
            (None, None) => return Err("an integer of no known kind".to_owned()),
        },
        ValueRef::F32(value) => Value::Float(f64::from(*value)),
        ValueRef::F64(value) => Value::Float(*value),
        ValueRef::String(text) => {
            Value::Text(text.as_str().ok_or("a text that is not UTF-8")?.to_owned())
        }
        ValueRef::Binary(bytes) => {
            // The bytes are a part of the sample: their distance is their place.
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
