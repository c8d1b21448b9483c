//! Why a slot is refused, as values that reports contain.

use super::HEADER_BYTES;
use crate::column::ContentError;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why bytes are not the slot that was expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SlotError {
    /// Fewer than [`HEADER_BYTES`] bytes.
    #[error("truncated slot header: {got} of {HEADER_BYTES} bytes")]
    Short {
        /// Number of bytes.
        got: usize,
    },
    /// Not a slot header.
    #[error("no slot header here (magic number {got:#018x})")]
    Magic {
        /// The first eight bytes.
        got: u64,
    },
    /// A header of another version of the format.
    #[error("slot format version {got}, this program reads {expected}")]
    Version {
        /// Version found.
        got: u32,
        /// Supported version.
        expected: u32,
    },
    /// The header's own checksum is wrong: a torn or corrupt publish.
    #[error("slot header checksum is {got:#010x}, expected {expected:#010x}: torn or corrupt")]
    HeaderChecksum {
        /// Computed.
        got: u32,
        /// Stored.
        expected: u32,
    },
    /// A field differs from what was granted.
    #[error("slot {field} is {got}, expected {expected}")]
    Field {
        /// The field.
        field: SlotField,
        /// As found.
        got: String,
        /// As granted.
        expected: String,
    },
    /// A field of a column differs from what was granted.
    #[error("slot column {column:?}: {field} is {got}, expected {expected}")]
    Column {
        /// Name of the column.
        column: String,
        /// The field.
        field: ColumnField,
        /// As found.
        got: String,
        /// As granted.
        expected: String,
    },
    /// The checksum of a column is wrong.
    #[error(
        "slot column {column:?}: checksum is {got:#010x}, expected {expected:#010x}: torn or \
         corrupt"
    )]
    ColumnChecksum {
        /// Name of the column.
        column: String,
        /// Computed.
        got: u32,
        /// Stored.
        expected: u32,
    },
    /// The checksum of a column is right, but its content is invalid.
    #[error("slot column {column:?}: {source}")]
    Content {
        /// Name of the column.
        column: String,
        /// What is wrong.
        source: ContentError,
    },
}

/// A field of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotField {
    /// Epoch.
    Epoch,
    /// Generation of the grant.
    Generation,
    /// Batch in the epoch.
    Batch,
    /// Seed of the job.
    Seed,
    /// The recipe's hash.
    Recipe,
    /// Samples of the batch.
    Samples,
    /// Number of columns.
    Columns,
    /// Bytes of the payload.
    PayloadBytes,
    /// The bytes outside of all fields.
    Reserved,
}

/// A field of a column in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnField {
    /// CRC-32C of the name.
    Name,
    /// Kind.
    Kind,
    /// Element type.
    Dtype,
    /// Number of axes.
    Axes,
    /// Lengths of the axes.
    Shape,
    /// Rows of its values.
    Rows,
    /// Position in the payload.
    Offset,
    /// Bytes in the payload.
    Bytes,
}

impl fmt::Display for SlotField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Epoch => "epoch",
            Self::Generation => "generation",
            Self::Batch => "batch",
            Self::Seed => "seed",
            Self::Recipe => "recipe",
            Self::Samples => "samples",
            Self::Columns => "columns",
            Self::PayloadBytes => "payload_bytes",
            Self::Reserved => "reserved area",
        })
    }
}

impl fmt::Display for ColumnField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "name",
            Self::Kind => "kind",
            Self::Dtype => "dtype",
            Self::Axes => "axes",
            Self::Shape => "shape",
            Self::Rows => "rows",
            Self::Offset => "offset",
            Self::Bytes => "bytes",
        })
    }
}
