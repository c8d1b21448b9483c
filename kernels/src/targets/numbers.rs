//! Converts elements of a stored column to float64.

use crate::target_problem::TargetProblem;
use half::f16;
use meetpoint_format::column::ElementType;

/// All elements, each a finite number.
pub(super) fn finite(element: ElementType, bytes: &[u8]) -> Result<Vec<f64>, TargetProblem> {
    let numbers = numbers(element, bytes);
    match numbers.iter().position(|number| !number.is_finite()) {
        Some(index) => Err(TargetProblem::NotFinite { index, value: numbers[index] }),
        None => Ok(numbers),
    }
}

/// All elements.
pub(super) fn numbers(element: ElementType, bytes: &[u8]) -> Vec<f64> {
    macro_rules! read {
        ($type:ty, $to:expr) => {{
            let (elements, _) = bytes.as_chunks();
            elements.iter().map(|it| $to(<$type>::from_le_bytes(*it))).collect()
        }};
    }
    match element {
        ElementType::Bool | ElementType::Uint8 => bytes.iter().copied().map(f64::from).collect(),
        ElementType::Int8 => read!(i8, f64::from),
        ElementType::Uint16 => read!(u16, f64::from),
        ElementType::Int16 => read!(i16, f64::from),
        ElementType::Uint32 => read!(u32, f64::from),
        ElementType::Int32 => read!(i32, f64::from),
        ElementType::Uint64 => read!(u64, |it| it as f64),
        ElementType::Int64 => read!(i64, |it| it as f64),
        ElementType::Float16 => read!(f16, f64::from),
        ElementType::Float32 => read!(f32, f64::from),
        ElementType::Float64 => read!(f64, |it| it),
    }
}

/// Appends an element of float32.
pub(super) fn put(number: f64, into: &mut Vec<u8>) {
    into.extend_from_slice(&(number as f32).to_le_bytes());
}

/// The little-endian bytes of an element with this number, which the caller must have checked to be
/// valid for the type.
pub fn element_bytes(element: ElementType, number: f64) -> Vec<u8> {
    match element {
        ElementType::Bool | ElementType::Uint8 => vec![number as u8],
        ElementType::Int8 => (number as i8).to_le_bytes().to_vec(),
        ElementType::Uint16 => (number as u16).to_le_bytes().to_vec(),
        ElementType::Int16 => (number as i16).to_le_bytes().to_vec(),
        ElementType::Uint32 => (number as u32).to_le_bytes().to_vec(),
        ElementType::Int32 => (number as i32).to_le_bytes().to_vec(),
        ElementType::Uint64 => (number as u64).to_le_bytes().to_vec(),
        ElementType::Int64 => (number as i64).to_le_bytes().to_vec(),
        ElementType::Float16 => f16::from_f64(number).to_le_bytes().to_vec(),
        ElementType::Float32 => (number as f32).to_le_bytes().to_vec(),
        ElementType::Float64 => number.to_le_bytes().to_vec(),
    }
}
