//! What can go wrong with one sample. A damaged picture is data, not a panic.

/// A sample that cannot be prepared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller asked to stop. The picture may be sound.
    #[error("interrupted")]
    Interrupted,
    /// More scans or segments than any encoder writes: decoding could take very long.
    #[error("JPEG has more than {limit} {what}; re-encode the picture")]
    TooMany {
        /// Scans or segments.
        what: &'static str,
        /// Most that are read.
        limit: usize,
    },
    /// The first bytes are of no known format.
    #[error("not a picture in a known format (JPEG, PNG, WebP, BMP, GIF, TIFF)")]
    UnknownFormat,
    /// The picture does not decode.
    #[error("{format} does not decode: {reason}")]
    Decode {
        /// Format found.
        format: &'static str,
        /// Cause, with the byte offset where the decoder tells it.
        reason: String,
    },
    /// Entry points that are damaged or of another file.
    #[error("the entry points of the sample cannot be used: {reason}")]
    EntryPoints {
        /// Cause.
        reason: String,
    },
    /// More pixels than allowed: a decompression bomb or a wrong header.
    #[error("{width}x{height} pixels, more than the limit of {limit}")]
    TooLarge {
        /// Columns.
        width: u32,
        /// Rows.
        height: u32,
        /// Most pixels allowed.
        limit: u64,
    },
    /// A region that is not inside the picture.
    #[error("region {region:?} is not inside a picture of {width}x{height}")]
    Region {
        /// As asked for.
        region: crate::Region,
        /// Columns.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// The output buffer has another size than the result.
    #[error("output of {got} bytes, the recipe makes {expected}")]
    OutputSize {
        /// Given.
        got: usize,
        /// Needed.
        expected: usize,
    },
    /// A JPEG that cannot be written anew as asked for.
    #[error("the JPEG cannot be rewritten so: {reason}")]
    Rewrite {
        /// Cause.
        reason: &'static str,
    },
    /// A JPEG whose bytes do not follow from its coefficients: only the file itself holds them.
    #[error("the JPEG is not what its coefficients lead to from byte {offset} on")]
    NotReproducible {
        /// First byte that would differ.
        offset: usize,
    },
    /// The skeleton of a JPEG does not fit its coefficients or is damaged.
    #[error("the skeleton of a JPEG is of no use: {reason}")]
    Skeleton {
        /// Cause.
        reason: &'static str,
    },
    /// A coefficient form that cannot be written or read.
    #[error(transparent)]
    Form(crate::jpeg::FormError),
}

impl From<crate::jpeg::FormError> for Error {
    fn from(error: crate::jpeg::FormError) -> Self {
        match error {
            crate::jpeg::FormError::Interrupted => Self::Interrupted,
            error => Self::Form(error),
        }
    }
}
