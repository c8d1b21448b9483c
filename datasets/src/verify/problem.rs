//! A problem of a dataset, and its location.

use std::fmt;

/// A damage.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Problem {
    /// File name in the dataset's folder.
    pub file: String,
    /// Location in the file.
    pub place: DamageLocation,
    /// The problem and its remedy.
    pub problem: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            DamageLocation::File => write!(f, "{}: {}", self.file, self.problem),
            place => write!(f, "{}, {place}: {}", self.file, self.problem),
        }
    }
}

/// Where a damage is.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum DamageLocation {
    /// The file as a whole.
    File,
    /// A row.
    Row {
        /// Index of the row in the part.
        row: u64,
        /// Its key, if the key itself is intact.
        key: String,
    },
    /// The bytes `start..end`, which belong to no single row.
    Bytes {
        /// First byte.
        start: u64,
        /// After the last byte.
        end: u64,
        /// Name of the region.
        region: String,
    },
}

impl fmt::Display for DamageLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => write!(f, "whole file"),
            Self::Row { row, key } => write!(f, "row {row}, key {key}"),
            Self::Bytes { start, end, region } if end - start == 1 => {
                write!(f, "byte {start} ({region})")
            }
            Self::Bytes { start, end, region } => {
                write!(f, "bytes {start} to {} ({region})", end - 1)
            }
        }
    }
}
