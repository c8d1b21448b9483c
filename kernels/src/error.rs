//! Errors of one sample. A damaged picture never causes a panic. A recipe that does not fit a
//! picture is reported separately from damage.

/// A sample that cannot be prepared.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller requested a stop. The picture may be intact.
    #[error("interrupted")]
    Interrupted,
    /// The first bytes match no known format.
    #[error("not a picture in a known format (JPEG, PNG, WebP, BMP, GIF, TIFF)")]
    UnknownFormat,
    /// The picture cannot be decoded.
    #[error("{format} cannot be decoded: {reason}")]
    Decode {
        /// Format found.
        format: &'static str,
        /// Cause, with the byte offset if the decoder reports it.
        reason: String,
    },
    /// The first bytes match no known audio format.
    #[error("not a recording in a known format (WAV, FLAC, MP3)")]
    UnknownAudio,
    /// Sound or a signal that cannot be decoded.
    #[error("{format} cannot be decoded: {reason}")]
    DecodeSeries {
        /// Format found.
        format: &'static str,
        /// Cause.
        reason: String,
    },
    /// Sound or a signal without values.
    #[error("it has no samples")]
    EmptySeries,
    /// More values than allowed.
    #[error("more than {limit} values")]
    LongSeries {
        /// The maximum.
        limit: u64,
    },
    /// Fewer time steps than an operation needs.
    #[error("{length} samples, {operation} needs {needed}")]
    ShortSeries {
        /// The operation.
        operation: &'static str,
        /// Number of time steps.
        length: usize,
        /// The minimum.
        needed: usize,
    },
    /// Bytes that are invalid in the encoding.
    #[error("its text is not {encoding} from byte {offset}")]
    Characters {
        /// The encoding of the recipe.
        encoding: &'static str,
        /// Offset of the first invalid byte, after a byte order mark.
        offset: usize,
    },
    /// A text that is longer than an operation allows.
    #[error("a text of {bytes} bytes, more than the limit of {limit}")]
    LongText {
        /// Its length in bytes.
        bytes: usize,
        /// The maximum in bytes.
        limit: u64,
    },
    /// A text that the tokenizer refuses.
    #[error("its text has no tokens: {reason}")]
    NoTokens {
        /// The error of the tokenizer.
        reason: String,
    },
    /// A token without a row in the table of vectors.
    #[error("its token {token} is not one of the {rows} rows of the table of `embed`")]
    NoVector {
        /// The token.
        token: i32,
        /// Number of rows of the table.
        rows: u64,
    },
    /// A file that an operation needs was not given with the recipe.
    #[error("the file {path} of `{operation}` was not read")]
    FileNotRead {
        /// The operation.
        operation: &'static str,
        /// Path of its file.
        path: String,
    },
    /// A file that an operation needs is invalid.
    #[error("{path}, which `{operation}` needs: {problem}")]
    File {
        /// The operation.
        operation: &'static str,
        /// Path of its file.
        path: Box<str>,
        /// The problem.
        problem: Box<str>,
    },
    /// A recording whose number of channels differs from that in the recipe.
    #[error("it has {found} channels, the recipe asks for {wanted}")]
    Channels {
        /// Channels of the file.
        found: usize,
        /// `num_channels` of the recipe.
        wanted: usize,
    },
    /// An intact file whose pixels do not match the mode of the recipe's `decode`.
    #[error("{format} of {holds} cannot be decoded in mode \"{mode}\"")]
    Mode {
        /// Format found.
        format: &'static str,
        /// The type of its pixels.
        holds: String,
        /// The mode.
        mode: &'static str,
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
    /// The recipe does not fit the picture, which may be intact.
    #[error(transparent)]
    DoesNotFit(Box<DoesNotFit>),
    /// A target that does not fit its picture.
    #[error("target {column:?}: {problem}")]
    Target {
        /// Column of the target.
        column: String,
        /// The mismatch.
        problem: Box<crate::TargetProblem>,
    },
    /// An operation that depends on boxes, for a sample without boxes.
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
    /// The size of the output buffer differs from that of the result.
    #[error("output of {got} bytes, the recipe gives {expected}")]
    OutputSize {
        /// The size of the buffer.
        got: usize,
        /// The size of the result.
        expected: usize,
    },
    /// Another error of a JPEG, its entry points, coefficient form or skeleton.
    #[error(transparent)]
    Jpeg(meetpoint_jpeg::Error),
}

/// An operation of a recipe that does not fit a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{operation} does not fit a picture of {} x {} (height x width): by its `{key}`, {misfit}",
    picture.0, picture.1
)]
pub struct DoesNotFit {
    /// Its name.
    pub operation: &'static str,
    /// The key that does not fit.
    pub key: &'static str,
    /// Height and width of the picture after the preceding operations.
    pub picture: (u32, u32),
    /// The cause.
    pub misfit: Misfit,
}

/// Why an operation does not fit a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// A crop larger than the picture with its padding; heights and widths.
    #[error(
        "the crop is {} x {}, larger than the picture with its padding, {} x {}",
        wanted.0, wanted.1, padded.0, padded.1
    )]
    CropTooLarge {
        /// As asked for.
        wanted: (u32, u32),
        /// The padded picture.
        padded: (u32, u32),
    },
    /// A result without pixels: the picture is too narrow for the requested size.
    #[error("the result is {height} x {width}, which has no pixels")]
    NoPixels {
        /// Rows.
        height: u32,
        /// Columns.
        width: u32,
    },
    /// A result with more pixels than allowed.
    #[error("the result is {height} x {width}, more than the limit of {limit} pixels")]
    TooLarge {
        /// Rows.
        height: u32,
        /// Columns.
        width: u32,
        /// Most pixels allowed.
        limit: u64,
    },
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
