//! Element types of the columns of a batch.

use crate::recipe::{Dtype, MaskType};
use std::fmt;

/// Type of one element of a column. Elements are little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// One byte, 0 or 1.
    Bool,
    /// Unsigned, 8 bits.
    Uint8,
    /// Signed, 8 bits.
    Int8,
    /// Unsigned, 16 bits.
    Uint16,
    /// Signed, 16 bits.
    Int16,
    /// Unsigned, 32 bits.
    Uint32,
    /// Signed, 32 bits.
    Int32,
    /// Unsigned, 64 bits.
    Uint64,
    /// Signed, 64 bits.
    Int64,
    /// IEEE 754 binary16.
    Float16,
    /// IEEE 754 binary32.
    Float32,
    /// IEEE 754 binary64.
    Float64,
}

impl ElementType {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Bool,
        Self::Uint8,
        Self::Int8,
        Self::Uint16,
        Self::Int16,
        Self::Uint32,
        Self::Int32,
        Self::Uint64,
        Self::Int64,
        Self::Float16,
        Self::Float32,
        Self::Float64,
    ];

    /// Its name in NumPy and torch.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Uint8 => "uint8",
            Self::Int8 => "int8",
            Self::Uint16 => "uint16",
            Self::Int16 => "int16",
            Self::Uint32 => "uint32",
            Self::Int32 => "int32",
            Self::Uint64 => "uint64",
            Self::Int64 => "int64",
            Self::Float16 => "float16",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
        }
    }

    /// Bytes of one element.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Bool | Self::Uint8 | Self::Int8 => 1,
            Self::Uint16 | Self::Int16 | Self::Float16 => 2,
            Self::Uint32 | Self::Int32 | Self::Float32 => 4,
            Self::Uint64 | Self::Int64 | Self::Float64 => 8,
        }
    }

    /// Its code in the header of a slot.
    pub fn code(self) -> u16 {
        match self {
            Self::Bool => 1,
            Self::Uint8 => 2,
            Self::Int8 => 3,
            Self::Uint16 => 4,
            Self::Int16 => 5,
            Self::Uint32 => 6,
            Self::Int32 => 7,
            Self::Uint64 => 8,
            Self::Int64 => 9,
            Self::Float16 => 10,
            Self::Float32 => 11,
            Self::Float64 => 12,
        }
    }
}

impl From<Dtype> for ElementType {
    fn from(dtype: Dtype) -> Self {
        match dtype {
            Dtype::Uint8 => Self::Uint8,
            Dtype::Uint16 => Self::Uint16,
            Dtype::Int32 => Self::Int32,
            Dtype::Float16 => Self::Float16,
            Dtype::Float32 => Self::Float32,
        }
    }
}

impl From<MaskType> for ElementType {
    fn from(dtype: MaskType) -> Self {
        match dtype {
            MaskType::Uint8 => Self::Uint8,
            MaskType::Uint16 => Self::Uint16,
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
