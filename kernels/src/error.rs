//! What can go wrong with one sample. A damaged picture is data, not a panic.

/// A sample that cannot be prepared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
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
    /// A JPEG that would not come back byte for byte from a stored form.
    #[error("the file would not come back byte for byte: {reason}")]
    NotReproducible {
        /// What it has that the form does not hold.
        reason: String,
    },
}
