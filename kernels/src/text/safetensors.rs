//! Locates the only tensor of a safetensors file.
//!
//! The file starts with the length of the header, eight bytes, little-endian. The header is JSON: a
//! member for each tensor with `dtype`, `shape` and `data_offsets`, which are relative to the end
//! of the header.

use meetpoint_format::recipe::Dtype;
use serde_json::{Map, Value};
use std::ops::Range;

/// Maximum length of the header in bytes.
const HEADER_BYTES_MAX: u64 = 1 << 20;

/// Axes, element type and byte range of the only tensor of a file; the error is the problem.
pub(super) fn read(file: &[u8]) -> Result<(Vec<u64>, Dtype, Range<usize>), String> {
    let (length, rest) = file.split_first_chunk::<8>().ok_or("it has no header")?;
    let length = u64::from_le_bytes(*length);
    if length > HEADER_BYTES_MAX {
        return Err(format!("its header has {length} bytes"));
    }
    let (header, data) = rest.split_at_checked(length as usize).ok_or("it ends in its header")?;
    let header: Map<String, Value> =
        serde_json::from_slice(header).map_err(|error| format!("its header: {error}"))?;
    let mut tensors = header.iter().filter(|(name, _)| *name != "__metadata__");
    let (Some((name, tensor)), None) = (tensors.next(), tensors.next()) else {
        let names: Vec<&str> =
            header.keys().map(String::as_str).filter(|it| *it != "__metadata__").collect();
        return Err(format!("it has {} tensors: {}", names.len(), names.join(", ")));
    };
    let dtype = match tensor["dtype"].as_str() {
        Some("F32") => Dtype::Float32,
        Some("F16") => Dtype::Float16,
        other => return Err(format!("elements of `{name}` are {}", other.unwrap_or("unknown"))),
    };
    let wholes = |key: &str| -> Option<Vec<u64>> {
        tensor[key].as_array()?.iter().map(Value::as_u64).collect()
    };
    let shape = wholes("shape").ok_or_else(|| format!("`{name}` has no shape"))?;
    let offsets = wholes("data_offsets");
    let Some([start, end]) = offsets.as_deref() else {
        return Err(format!("`{name}` has no data"));
    };
    let elements = shape.iter().try_fold(dtype.bytes() as u64, |all, axis| all.checked_mul(*axis));
    let is_whole = end.checked_sub(*start).is_some_and(|bytes| elements == Some(bytes));
    if !is_whole || *end > data.len() as u64 {
        return Err(format!("`{name}` has no {shape:?} elements from byte {start} to {end}"));
    }
    let first = file.len() - data.len();
    Ok((shape, dtype, first + *start as usize..first + *end as usize))
}
