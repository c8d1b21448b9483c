//! The values of a column.

use serde_json::Value;

/// A cell of a column.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::source) enum Cell {
    Null,
    Bytes(Vec<u8>),
    Float(f64),
    Json(Value),
}

impl Cell {
    /// Approximate memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Null | Self::Float(_) => 8,
            Self::Bytes(bytes) => bytes.len(),
            Self::Json(value) => value_bytes(value),
        }
    }

    pub(super) fn datum(&self) -> Datum<'_> {
        match self {
            Self::Null => Datum::Null,
            Self::Bytes(bytes) => Datum::Bytes(bytes),
            Self::Float(float) => Datum::Float(*float),
            Self::Json(value) => Datum::of(value),
        }
    }
}

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 32,
        Value::Array(items) => 32 + items.iter().map(value_bytes).sum::<usize>(),
        Value::Object(fields) => {
            32 + fields.iter().map(|(name, value)| name.len() + value_bytes(value)).sum::<usize>()
        }
        _ => 32,
    }
}

#[derive(Clone, Copy)]
pub(super) enum Datum<'a> {
    Null,
    Bytes(&'a [u8]),
    Float(f64),
    Json(&'a Value),
}

impl<'a> Datum<'a> {
    pub(super) fn of(value: &'a Value) -> Self {
        if value.is_null() { Self::Null } else { Self::Json(value) }
    }
}
