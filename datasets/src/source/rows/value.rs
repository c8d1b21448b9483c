//! Values whose types the file does not declare, and the type of a column of such values.

use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType, Field, Fields};
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of fields of a record or map, and of columns, since they are searched linearly.
pub(crate) const FIELDS_MAX: usize = 1024;

/// A value of a record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer of 2⁶³ or more.
    UInt(u64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
    /// Bytes, and their position in the record's file if it contains them unchanged.
    Bytes {
        /// The bytes.
        bytes: Vec<u8>,
        /// Their first byte in the file.
        at: Option<u64>,
    },
    /// Numbers of one type, little-endian: a list.
    Numbers {
        /// A primitive type, or Boolean with a byte for each.
        dtype: DataType,
        /// The numbers.
        bytes: Vec<u8>,
    },
    /// Numbers of one type, little-endian, row-major: an array.
    Tensor {
        /// A primitive type, or Boolean with a byte for each.
        dtype: DataType,
        /// Lengths of the axes.
        shape: Vec<usize>,
        /// The numbers.
        bytes: Vec<u8>,
    },
    /// A list of values.
    List(Vec<Value>),
    /// Values by name.
    Struct(Vec<(String, Value)>),
}

/// The axes that the arrays of a column share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Axes {
    /// All have these lengths.
    Fixed(Vec<usize>),
    /// All have this number of axes.
    Rank(usize),
}

/// The type of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No value so far.
    Null,
    /// [`Value::Bool`].
    Bool,
    /// [`Value::Int`].
    Int,
    /// [`Value::UInt`], and integers from 0.
    UInt,
    /// [`Value::Float`], and integers that it represents exactly.
    Float,
    /// [`Value::Int`], [`Value::UInt`] or [`Value::Float`] of a type that the file declares.
    Number(DataType),
    /// [`Value::Text`].
    Text,
    /// [`Value::Bytes`].
    Bytes,
    /// [`Value::Numbers`].
    Numbers(DataType),
    /// [`Value::Tensor`].
    Tensor(DataType, Axes),
    /// [`Value::List`].
    List(Box<Kind>),
    /// [`Value::Struct`].
    Struct(Vec<(String, Kind)>),
}

impl Kind {
    /// The type of a column with only this value.
    pub(crate) fn of(value: &Value) -> Result<Self, String> {
        Ok(match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Bool,
            Value::Int(_) => Self::Int,
            Value::UInt(_) => Self::UInt,
            Value::Float(_) => Self::Float,
            Value::Text(_) => Self::Text,
            Value::Bytes { .. } => Self::Bytes,
            Value::Numbers { dtype, .. } => Self::Numbers(dtype.clone()),
            Value::Tensor { dtype, shape, .. } => {
                Self::Tensor(dtype.clone(), Axes::Fixed(shape.clone()))
            }
            Value::List(items) => {
                let mut kind = Self::Null;
                for item in items {
                    kind = kind.join(Self::of(item)?)?;
                }
                Self::List(Box::new(kind))
            }
            Value::Struct(fields) => {
                check_length(fields.len())?;
                let fields =
                    fields.iter().map(|(name, value)| Ok((name.clone(), Self::of(value)?)));
                Self::Struct(fields.collect::<Result<_, String>>()?)
            }
        })
    }

    /// The type of a column with values of both types; the error is why there is none.
    pub(crate) fn join(self, other: Self) -> Result<Self, String> {
        Ok(match (self, other) {
            (left, right) if left == right => left,
            (Self::Null, kind) | (kind, Self::Null) => kind,
            (Self::Int | Self::UInt, Self::UInt) | (Self::UInt, Self::Int) => Self::UInt,
            (Self::Int | Self::UInt, Self::Float) | (Self::Float, Self::Int | Self::UInt) => {
                Self::Float
            }
            (Self::Number(dtype), Self::Int | Self::UInt | Self::Float)
            | (Self::Int | Self::UInt | Self::Float, Self::Number(dtype)) => Self::Number(dtype),
            (Self::Tensor(dtype, left), Self::Tensor(other, right))
                if dtype == other && left.rank() == right.rank() =>
            {
                Self::Tensor(dtype, Axes::Rank(left.rank()))
            }
            (Self::List(left), Self::List(right)) => Self::List(Box::new(left.join(*right)?)),
            (Self::Struct(mut left), Self::Struct(right)) => {
                for (name, kind) in right {
                    match left.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, known)) => {
                            let old = std::mem::replace(known, Self::Null);
                            *known =
                                old.join(kind).map_err(|text| format!("in {name:?}: {text}"))?;
                        }
                        None => {
                            check_length(left.len() + 1)?;
                            left.push((name, kind));
                        }
                    }
                }
                Self::Struct(left)
            }
            (left, right) => return Err(format!("{} beside {}", right.words(), left.words())),
        })
    }

    /// The type as text for an error.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Null => "nothing".to_owned(),
            Self::Bool => "a truth value".to_owned(),
            Self::Int | Self::UInt => "an integer".to_owned(),
            Self::Float => "a number".to_owned(),
            Self::Number(dtype) => format!("a number of type {dtype}"),
            Self::Text => "a text".to_owned(),
            Self::Bytes => "bytes".to_owned(),
            Self::Numbers(dtype) => format!("a list of {dtype}"),
            Self::Tensor(dtype, axes) => format!("an array of {} axes of {dtype}", axes.rank()),
            Self::List(_) => "a list".to_owned(),
            Self::Struct(_) => "a map".to_owned(),
        }
    }

    /// A column of this type. Arrays use the canonical extension types of Arrow.
    pub(crate) fn field(&self, name: &str) -> Field {
        let field = Field::new(name, self.data_type(), true);
        let Self::Tensor(_, axes) = self else { return field };
        let (extension, metadata) = match axes {
            Axes::Fixed(shape) => {
                let shape = serde_json::json!({ "shape": shape });
                ("arrow.fixed_shape_tensor", shape.to_string())
            }
            Axes::Rank(_) => ("arrow.variable_shape_tensor", "{}".to_owned()),
        };
        let metadata = [
            (EXTENSION_TYPE_NAME_KEY.to_owned(), extension.to_owned()),
            (EXTENSION_TYPE_METADATA_KEY.to_owned(), metadata),
        ];
        field.with_metadata(HashMap::from(metadata))
    }

    /// The Arrow type.
    pub(crate) fn data_type(&self) -> DataType {
        let item = |data_type: DataType| Arc::new(Field::new("item", data_type, true));
        match self {
            Self::Null => DataType::Null,
            Self::Bool => DataType::Boolean,
            Self::Int => DataType::Int64,
            Self::UInt => DataType::UInt64,
            Self::Float => DataType::Float64,
            Self::Number(dtype) => dtype.clone(),
            Self::Text => DataType::Utf8,
            Self::Bytes => DataType::Binary,
            Self::Numbers(dtype) => DataType::List(item(dtype.clone())),
            Self::Tensor(dtype, Axes::Fixed(shape)) => {
                let length = shape.iter().product::<usize>();
                let length = i32::try_from(length).unwrap_or(i32::MAX);
                DataType::FixedSizeList(item(dtype.clone()), length)
            }
            Self::Tensor(dtype, Axes::Rank(rank)) => {
                let rank = i32::try_from(*rank).unwrap_or(i32::MAX);
                DataType::Struct(Fields::from(vec![
                    Field::new("data", DataType::List(item(dtype.clone())), true),
                    Field::new("shape", DataType::FixedSizeList(item(DataType::Int32), rank), true),
                ]))
            }
            Self::List(kind) => DataType::List(item(kind.data_type())),
            Self::Struct(fields) => {
                DataType::Struct(fields.iter().map(|(name, kind)| kind.field(name)).collect())
            }
        }
    }
}

impl Axes {
    /// The number of axes.
    pub(crate) fn rank(&self) -> usize {
        match self {
            Self::Fixed(shape) => shape.len(),
            Self::Rank(rank) => *rank,
        }
    }
}

/// Bytes of a number in [`Value::Numbers`] and [`Value::Tensor`].
pub(crate) fn width(dtype: &DataType) -> usize {
    match dtype {
        DataType::Boolean => 1,
        other => other.primitive_width().unwrap_or(1),
    }
}

/// Whether the shape of an array matches its number of bytes, without overflow.
pub(crate) fn is_shape_of(shape: &[usize], dtype: &DataType, bytes: usize) -> bool {
    let product = shape.iter().try_fold(width(dtype), |product, axis| product.checked_mul(*axis));
    product == Some(bytes) && i32::try_from(bytes).is_ok()
}

/// The number in little-endian bytes, of the width of its type.
pub(crate) fn number(dtype: &DataType, bytes: &[u8]) -> Value {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let unsigned = u64::from_le_bytes(wide);
    let shift = 64 - 8 * bytes.len() as u32;
    match dtype {
        DataType::Boolean => Value::Bool(unsigned != 0),
        DataType::Float16 => Value::Float(half::f16::from_bits(unsigned as u16).to_f64()),
        DataType::Float32 => Value::Float(f64::from(f32::from_bits(unsigned as u32))),
        DataType::Float64 => Value::Float(f64::from_bits(unsigned)),
        dtype if dtype.is_unsigned_integer() => match i64::try_from(unsigned) {
            Ok(value) => Value::Int(value),
            Err(_) => Value::UInt(unsigned),
        },
        _ => Value::Int((unsigned << shift).cast_signed() >> shift),
    }
}

/// The type for a NumPy type string such as `<f4`, and whether it is big-endian.
pub(crate) fn dtype_of(name: &str) -> Option<(DataType, bool)> {
    let (order, name) = name.split_at_checked(1)?;
    let dtype = match name {
        "b1" => DataType::Boolean,
        "u1" => DataType::UInt8,
        "i1" => DataType::Int8,
        "u2" => DataType::UInt16,
        "i2" => DataType::Int16,
        "f2" => DataType::Float16,
        "u4" => DataType::UInt32,
        "i4" => DataType::Int32,
        "f4" => DataType::Float32,
        "u8" => DataType::UInt64,
        "i8" => DataType::Int64,
        "f8" => DataType::Float64,
        _ => return None,
    };
    matches!(order, "<" | ">" | "|" | "=").then_some((dtype, order == ">"))
}

/// Limits the number of fields, since they are searched linearly.
fn check_length(fields: usize) -> Result<(), String> {
    match fields {
        0..=FIELDS_MAX => Ok(()),
        _ => Err(format!("a map of {fields} fields, the limit is {FIELDS_MAX}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_joined_where_a_column_can_hold_both() {
        let tensor = |shape: &[usize]| Kind::Tensor(DataType::UInt8, Axes::Fixed(shape.to_vec()));
        assert_eq!(Kind::Int.join(Kind::Float), Ok(Kind::Float));
        assert_eq!(Kind::Null.join(Kind::Text), Ok(Kind::Text));
        assert_eq!(
            tensor(&[2, 3]).join(tensor(&[4, 3])),
            Ok(Kind::Tensor(DataType::UInt8, Axes::Rank(2)))
        );
        assert!(tensor(&[2]).join(tensor(&[2, 2])).unwrap_err().contains("axes"));
        assert!(Kind::Text.join(Kind::Int).unwrap_err().contains("a text"));
        let map = |name: &str, kind| Kind::Struct(vec![(name.to_owned(), kind)]);
        let joined = map("a", Kind::Int).join(map("b", Kind::Text)).unwrap();
        assert!(matches!(joined, Kind::Struct(fields) if fields.len() == 2));
        let names = |numbers: std::ops::Range<usize>| {
            Value::Struct(numbers.map(|number| (number.to_string(), Value::Int(1))).collect())
        };
        let widest = Kind::of(&names(0..FIELDS_MAX)).unwrap();
        assert!(Kind::of(&names(0..FIELDS_MAX + 1)).is_err());
        assert!(widest.join(Kind::of(&names(5000..5001)).unwrap()).is_err());
    }

    #[test]
    fn a_shape_must_fit_its_bytes() {
        assert!(is_shape_of(&[2, 3], &DataType::Int16, 12));
        assert!(!is_shape_of(&[2, 3], &DataType::Int16, 13));
        assert!(!is_shape_of(&[usize::MAX, 3], &DataType::Int16, 12));
    }
}
