//! Values of Arrow arrays as the bytes of a batch.

use super::{Column, ColumnKind, ElementType};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use std::ops::Range;

/// A value that is null, or that contains one: batches have no nulls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the value is null, or contains a null")]
pub struct NullValue;

/// Appends the bytes of the value in a row of a further column: little-endian elements, outermost
/// axis first.
pub fn append_value(
    column: &Column,
    array: &ArrayRef,
    row: usize,
    into: &mut Vec<u8>,
) -> Result<(), NullValue> {
    let array = array.as_ref();
    if array.is_null(row) {
        return Err(NullValue);
    }
    match &column.kind {
        ColumnKind::Tensor { element, .. } => append(array, row..row + 1, *element, into),
        ColumnKind::Ragged { element, .. } => {
            let (values, range) = list(array, row);
            append(values, range, *element, into)
        }
        ColumnKind::Bytes | ColumnKind::Text => {
            into.extend_from_slice(text(array, row));
            Ok(())
        }
        ColumnKind::Padded { .. } | ColumnKind::PaddedRagged { .. } | ColumnKind::Shaped { .. } => {
            unreachable!("no dataset stores a form of prepared pictures")
        }
    }
}

/// Appends the byte strings of a list in a row, as [`super::files_of`] reads them.
pub fn append_files(array: &ArrayRef, row: usize, into: &mut Vec<u8>) -> Result<(), NullValue> {
    let array = array.as_ref();
    if array.is_null(row) {
        return Err(NullValue);
    }
    let (files, range) = list(array, row);
    if range.clone().any(|at| files.is_null(at)) {
        return Err(NullValue);
    }
    for at in range {
        let file = text(files, at);
        into.extend_from_slice(&(file.len() as u64).to_le_bytes());
        into.extend_from_slice(file);
    }
    Ok(())
}

/// Bytes of the longest value of a further column in an array. Axes that are padded count as 1.
pub fn value_bytes_max(column: &Column, array: &ArrayRef) -> u64 {
    let row_bytes = column.kind.row_bytes().unwrap_or(u64::MAX);
    let rows = |row: usize| list(array.as_ref(), row).1.len() as u64;
    let bytes = |row: usize| match &column.kind {
        ColumnKind::Tensor { .. } | ColumnKind::Padded { .. } => row_bytes,
        ColumnKind::Ragged { .. } | ColumnKind::PaddedRagged { .. } => {
            rows(row).saturating_mul(row_bytes)
        }
        // A list of tensors, or one tensor.
        ColumnKind::Shaped { axes, .. } if axes.len() > 2 => rows(row).saturating_mul(row_bytes),
        ColumnKind::Shaped { .. } => row_bytes,
        ColumnKind::Bytes | ColumnKind::Text => text(array.as_ref(), row).len() as u64,
    };
    (0..array.len()).map(bytes).max().unwrap_or(0)
}

/// The elements of a list in a row: the array that contains all elements, and their range.
fn list(array: &dyn Array, row: usize) -> (&dyn Array, Range<usize>) {
    if let Some(list) = array.as_list_opt::<i32>() {
        let ends = list.value_offsets();
        return (list.values().as_ref(), ends[row] as usize..ends[row + 1] as usize);
    }
    let list = array.as_list::<i64>();
    let ends = list.value_offsets();
    (list.values().as_ref(), ends[row] as usize..ends[row + 1] as usize)
}

/// The bytes of a text or byte string in a row.
fn text(array: &dyn Array, row: usize) -> &[u8] {
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(row).as_bytes(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).as_bytes(),
        DataType::Binary => array.as_binary::<i32>().value(row),
        _ => array.as_binary::<i64>().value(row),
    }
}

/// Appends a range of elements, those of fixed-size lists in order.
fn append(
    array: &dyn Array,
    range: Range<usize>,
    element: ElementType,
    into: &mut Vec<u8>,
) -> Result<(), NullValue> {
    if array.null_count() > 0 && range.clone().any(|at| array.is_null(at)) {
        return Err(NullValue);
    }
    if let Some(list) = array.as_fixed_size_list_opt() {
        let length = list.value_length() as usize;
        let inner = range.start * length..range.end * length;
        return append(list.values().as_ref(), inner, element, into);
    }
    if let Some(binary) = array.as_fixed_size_binary_opt() {
        range.for_each(|at| into.extend_from_slice(binary.value(at)));
        return Ok(());
    }
    macro_rules! primitive {
        ($type:ty) => {{
            let elements = &array.as_primitive::<$type>().values()[range];
            elements.iter().for_each(|it| into.extend_from_slice(&it.to_le_bytes()));
        }};
    }
    match element {
        ElementType::Bool => {
            let elements = array.as_boolean();
            into.extend(range.map(|at| u8::from(elements.value(at))));
        }
        ElementType::Uint8 => {
            into.extend_from_slice(&array.as_primitive::<UInt8Type>().values()[range]);
        }
        ElementType::Int8 => primitive!(Int8Type),
        ElementType::Uint16 => primitive!(UInt16Type),
        ElementType::Int16 => primitive!(Int16Type),
        ElementType::Uint32 => primitive!(UInt32Type),
        ElementType::Int32 => primitive!(Int32Type),
        ElementType::Uint64 => primitive!(UInt64Type),
        ElementType::Int64 => primitive!(Int64Type),
        ElementType::Float16 => primitive!(Float16Type),
        ElementType::Float32 => primitive!(Float32Type),
        ElementType::Float64 => primitive!(Float64Type),
    }
    Ok(())
}
