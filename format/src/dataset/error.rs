//! Errors of a dataset.

use super::schema::VERSION;
use meetpoint_diagnose::{Command, Diagnose, Remedy};
use std::io::ErrorKind;

/// A dataset that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// `dataset.json` is invalid.
    #[error("manifest dataset.json: {problem}")]
    Manifest {
        /// What is wrong, with line and column where the text does not parse.
        problem: String,
    },
    /// `dataset.json` is of a version that this program does not read.
    #[error("manifest dataset.json: version is {version}, this program reads version {VERSION}")]
    Version {
        /// The version in the file.
        version: u32,
    },
    /// A part is not the Arrow IPC file that the manifest describes.
    #[error("part {part}: {problem}")]
    Part {
        /// File name.
        part: String,
        /// What is wrong, with the byte offset.
        problem: String,
    },
    /// Bytes of a part could not be read.
    #[error("part {part}: {source}")]
    Io {
        /// File name.
        part: String,
        /// Cause.
        source: std::io::Error,
    },
    /// Bytes of a part could not be written.
    #[error("failed to write: {0}")]
    Write(#[source] std::io::Error),
    /// A row that a part cannot hold.
    #[error("row {key:?}: {problem}")]
    Row {
        /// Its key.
        key: String,
        /// The limit that it exceeds.
        problem: String,
    },
    /// Columns that a part cannot hold.
    #[error("{problem}")]
    Columns {
        /// Which column, why, and the remedy.
        problem: String,
    },
    /// A further column that cannot be read.
    #[error("part {part}, rows {first_row} to {last_row}, column `{column}`: {problem}")]
    Extra {
        /// File name.
        part: String,
        /// First row of the record batch in the part.
        first_row: u64,
        /// Last row of the record batch in the part.
        last_row: u64,
        /// Name of the column.
        column: String,
        /// What is wrong, and the remedy.
        problem: String,
    },
    /// A sample index that is out of range.
    #[error("sample index {index} is not in 0..{samples}")]
    OutOfRange {
        /// The requested value.
        index: u64,
        /// The number of samples.
        samples: u64,
    },
}

impl DatasetError {
    /// File name of the part that the error concerns.
    pub fn part(&self) -> Option<&str> {
        match self {
            Self::Part { part, .. } | Self::Io { part, .. } => Some(part),
            _ => None,
        }
    }
}

impl Diagnose for DatasetError {
    fn cause(&self) -> &'static str {
        match self {
            Self::Manifest { .. } => "manifest",
            Self::Version { .. } => "dataset_version",
            Self::Part { .. } => "part_damaged",
            Self::Io { .. } => "part_unreadable",
            Self::Write(_) => "part_unwritable",
            Self::Row { .. } => "row",
            Self::Columns { .. } => "columns",
            Self::Extra { .. } => "column_damaged",
            Self::OutOfRange { .. } => "sample_out_of_range",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Manifest { .. } => Some(Remedy::run(Command::Repair)),
            Self::Version { .. } => Some(
                Remedy::advice("pack the source again with this program")
                    .or("use the program that packed it"),
            ),
            Self::Part { .. } => {
                Some(Remedy::run(Command::Verify).or("restore the part from its source"))
            }
            Self::Io { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                Some(Remedy::advice("make the part readable for you"))
            }
            Self::Io { .. } => Some(Remedy::advice("restore the part").or("pack again")),
            Self::OutOfRange { samples, .. } => samples
                .checked_sub(1)
                .map(|last| Remedy::advice(format!("give an index from 0 to {last}"))),
            // These name the permitted values, or come from the operating system.
            Self::Write(_) | Self::Row { .. } | Self::Columns { .. } | Self::Extra { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DatasetError, Diagnose, ErrorKind};

    #[test]
    fn a_part_without_permission_is_not_to_be_packed_again() {
        let remedy = |kind: ErrorKind| {
            DatasetError::Io { part: "part-00000.arrow".to_owned(), source: kind.into() }.remedy()
        };
        let other = remedy(ErrorKind::UnexpectedEof);
        assert!(other.is_some());
        assert!(remedy(ErrorKind::PermissionDenied).is_some_and(|remedy| Some(remedy) != other));
    }
}
