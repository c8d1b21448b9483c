//! What can go wrong with one sample. A damaged picture is data, not a panic.

/// A sample that cannot be prepared.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller asked to stop. The picture may be sound.
    #[error("interrupted")]
    Interrupted,
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
    /// A result without pixels: the picture is too narrow for what it is resized to.
    #[error("resized to {height} x {width} (height x width), which has no pixels")]
    NoPixels {
        /// Rows.
        height: u32,
        /// Columns.
        width: u32,
    },
    /// A random crop larger than the picture with its padding; heights and widths.
    #[error(
        "random_crop of {} x {} from a picture of {} x {} with its padding (height x width); set \
         `pad_if_needed`, or resize before",
        .wanted.0, .wanted.1, .padded.0, .padded.1
    )]
    CropTooLarge {
        /// As asked for.
        wanted: (u32, u32),
        /// The padded picture.
        padded: (u32, u32),
    },
    /// A target that does not fit its picture.
    #[error("target {column:?}: {problem}")]
    Target {
        /// Column of the target.
        column: String,
        /// What does not fit.
        problem: Box<crate::TargetProblem>,
    },
    /// An operation that depends on boxes, of a sample without any given.
    #[error(
        "random_iou_crop needs the boxes of the sample, which only batches with its target have"
    )]
    NoBoxes,
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
    /// A JPEG, or its entry points, coefficient form or skeleton, for another reason.
    #[error(transparent)]
    Jpeg(meetpoint_jpeg::Error),
}

impl From<meetpoint_jpeg::Error> for Error {
    fn from(error: meetpoint_jpeg::Error) -> Self {
        use meetpoint_jpeg::Error as Jpeg;
        match error {
            Jpeg::Interrupted => Self::Interrupted,
            Jpeg::Damaged { offset, reason } => {
                Self::Decode { format: "JPEG", reason: format!("{reason} (byte {offset})") }
            }
            Jpeg::TooLarge { width, height, limit } => Self::TooLarge { width, height, limit },
            Jpeg::Region { region, width, height } => Self::Region { region, width, height },
            other => Self::Jpeg(other),
        }
    }
}
