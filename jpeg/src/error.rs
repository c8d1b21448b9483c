//! Why a JPEG cannot be read or written as requested. A damaged file is data, not a panic.

use crate::form_error::FormError;
use crate::picture::Region;
use std::fmt;

/// A JPEG that cannot be read or written as requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller's [`Interrupt`](crate::Interrupt) was raised. The picture may be sound.
    #[error("interrupted")]
    Interrupted,
    /// The file is damaged or of an unsupported kind.
    #[error("JPEG cannot be decoded: {reason} (byte {offset})")]
    Damaged {
        /// Byte of the file at which the damage was found.
        offset: usize,
        /// Cause.
        reason: String,
    },
    /// More scans or segments than any encoder writes: decoding could take very long.
    #[error("JPEG has more than {limit} {what}; re-encode the picture")]
    TooMany {
        /// Scans or segments.
        what: &'static str,
        /// The maximum that is read.
        limit: usize,
    },
    /// More pixels than [`PIXELS_MAX`](crate::PIXELS_MAX): a decompression bomb or a wrong header.
    #[error("{width}x{height} pixels, more than the limit of {limit}")]
    TooLarge {
        /// Columns.
        width: u32,
        /// Rows.
        height: u32,
        /// Maximum number of pixels.
        limit: u64,
    },
    /// A region that is empty or not inside the picture.
    #[error("region {region:?} is not inside a picture of {width}x{height}")]
    Region {
        /// As requested.
        region: Region,
        /// Columns.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// Entry points that are damaged or of another file.
    #[error("the entry points of the sample cannot be used: {reason}")]
    EntryPoints {
        /// Cause.
        reason: String,
    },
    /// A file that cannot be rewritten as requested.
    #[error("the JPEG cannot be rewritten in this way: {reason}")]
    Rewrite {
        /// Cause.
        reason: &'static str,
    },
    /// A file whose bytes cannot be reproduced from its coefficients.
    #[error("the JPEG cannot be reproduced from its coefficients: byte {offset} differs")]
    NotReproducible {
        /// First byte that would differ.
        offset: usize,
    },
    /// A skeleton that does not fit the coefficients or is damaged.
    #[error("the skeleton of a JPEG is invalid: {reason}")]
    Skeleton {
        /// Cause.
        reason: &'static str,
    },
    /// A coefficient form that cannot be written or read.
    #[error(transparent)]
    Form(FormError),
}

impl From<FormError> for Error {
    fn from(error: FormError) -> Self {
        match error {
            FormError::Interrupted => Self::Interrupted,
            error => Self::Form(error),
        }
    }
}

/// Damage of a file, with the offset of the byte at which it was found.
pub(crate) fn damaged(offset: usize, reason: impl fmt::Display) -> Error {
    Error::Damaged { offset, reason: reason.to_string() }
}
