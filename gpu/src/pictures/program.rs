//! The operations on one picture, as plain data.

use std::ops::Range;

/// A position of an axis without a source pixel.
pub const OUTSIDE: i32 = -1;

/// The operations on one picture. Stages refer to the other fields by ranges and indices.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// How the source is turned before anything else.
    pub turn: Turn,
    /// Stages in order; the last one writes the tensor.
    pub stages: &'a [Stage],
    /// Changes of pictures.
    pub changes: &'a [Change],
    /// Positions and weights of axes.
    pub words: &'a [i32],
    /// Tables of bytes.
    pub tables: &'a [[u8; 256]],
    /// Rectangles of the tensor that are replaced, in order.
    pub erasures: &'a [Erasure],
}

/// The location at which the tensor of a picture is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorLocation {
    /// Index of the column.
    pub column: usize,
    /// Offset in bytes in the memory of the column's tensors, a multiple of the element size.
    pub offset: u64,
}

/// How a picture is turned and mirrored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Turn {
    /// Whether columns of the source become rows.
    pub is_transposed: bool,
    /// Whether the last column of the source becomes the first column, or the first row if it is
    /// transposed.
    pub from_right: bool,
    /// Whether the last row of the source becomes the first row, or the first column if it is
    /// transposed.
    pub from_bottom: bool,
}

/// A rectangle of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// First column.
    pub x: u32,
    /// First row.
    pub y: u32,
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

/// A crop, a resize along both axes, and a canvas for the result, with changes of its pixels.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// The part of the source that it reads. For the first stage, the turned source is exactly this
    /// region.
    pub region: Region,
    /// Whether this part is mirrored left to right before anything else.
    pub region_mirrored: bool,
    /// The horizontal axis.
    pub across: Axis,
    /// The vertical axis.
    pub down: Axis,
    /// Whether the pass along the columns comes first.
    pub down_first: bool,
    /// Columns and rows of the result of both axes.
    pub window: (u32, u32),
    /// Columns and rows of the canvas.
    pub canvas: (u32, u32),
    /// Column and row of the window on the canvas.
    pub at: (u32, u32),
    /// The colour of the canvas around the window.
    pub fill: [u8; 3],
    /// The colour of pixels of the window whose position is [`OUTSIDE`].
    pub outside: [u8; 3],
    /// Whether the canvas is written mirrored left to right.
    pub mirrored: bool,
    /// Whether the canvas is written mirrored top to bottom.
    pub flipped: bool,
    /// Changes of each pixel by itself before the canvas is written.
    pub row_changes: Range<usize>,
    /// Changes of the picture that was written.
    pub whole: Range<usize>,
    /// Whether the tensor is written.
    pub is_last: bool,
}

/// One axis of a stage. Positions count from the first of the region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Each position of the result is the same position of the region.
    Shift,
    /// Each position of the result has one position of the region, or [`OUTSIDE`]: a word each.
    Pick {
        /// Index of the first word.
        words: usize,
    },
    /// Each position of the result is a weighted sum: for `n` positions, `n` first positions of the
    /// region, `n` counts of weights, and `n` weights that come first, `n` that come second, and so
    /// on, with 22 bits behind the point.
    Weigh {
        /// Index of the first word.
        words: usize,
        /// Maximum number of weights of a position.
        taps: u32,
    },
}

/// A change of a picture. The arithmetic is that of the CPU's kernels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// Every value is replaced by its entry in a table.
    Table {
        /// Index of the table.
        table: usize,
    },
    /// Every value is replaced by its entry in the table of its channel.
    Tables {
        /// Index of the first of three tables.
        first: usize,
    },
    /// Each pixel is blended with its luma.
    Saturation(f32),
    /// A number is added to the hue.
    Hue(u8),
    /// Every channel becomes the luma.
    Grey,
    /// Channel c becomes the channel at c of the list.
    Channels([u8; 3]),
    /// Each pixel is converted to another colour space.
    Space(ColourSpace),
    /// Every value is blended with the mean luma.
    Contrast(f32),
    /// Each channel is stretched to the full range.
    Autocontrast,
    /// Each channel gets a flat histogram.
    Equalize,
    /// Every value is blended with that of the smoothed picture.
    Sharpness(f32),
    /// Each column and row of the result is one of the picture, or a colour.
    Frame {
        /// Columns and rows of the result.
        size: (u32, u32),
        /// Index of a word for each column of the result.
        columns: usize,
        /// Index of a word for each row of the result.
        rows: usize,
        /// The colour.
        fill: [u8; 3],
    },
    /// Each pixel of the result comes from a position of the picture.
    Warp {
        /// Columns and rows of the result.
        size: (u32, u32),
        /// The positions and how a pixel is computed.
        form: WarpForm,
        /// Supersampling: each pixel is the mean of `samples` x `samples` pixels of a result that
        /// is larger by this factor. The mean is their sum plus half their count, times 2^24 /
        /// count, divided by 2^24, all rounded down. `form` describes the larger result.
        samples: u32,
        /// The colour of pixels whose position lies outside.
        fill: [u8; 3],
    },
    /// Each pixel of the result comes from a position of the picture that is moved by two random
    /// fields. They are smoothed along the rows, then along the columns, in float32. The size does
    /// not change.
    Elastic {
        /// Key of Philox. Words with channel 0 give movements along rows, with channel 1 along
        /// columns.
        key: [u32; 2],
        /// For each channel, the weights of smoothing along the rows and along the columns: the
        /// index of the bits of the first one, and their number.
        weights: [[(usize, u32); 2]; 2],
        /// Twice the displacement in pixels at a field value of 1, along rows and along columns.
        alpha: [f64; 2],
        /// Whether the nearest pixel is taken, instead of bilinear interpolation.
        is_nearest: bool,
        /// The colour of pixels whose position lies outside.
        fill: [u8; 3],
    },
    /// Pillow's Gaussian blur: three blurs by a box along the rows, then three along the columns.
    BoxBlur {
        /// Values on each side with full weight.
        radius: u32,
        /// Their weight, and that of the two outermost values, in units of 1 / 2^24.
        weights: [u32; 2],
    },
    /// Begins a weighted sum in float32 with the picture, which is also retained as the original.
    SumBegin {
        /// The weight of the picture.
        weight: f32,
    },
    /// Adds the picture to the sum. The result is the original; after the last addition, it is the
    /// sum, truncated and clipped.
    SumAdd {
        /// The weight of the picture.
        weight: f32,
        /// Whether it is the last addition.
        is_last: bool,
    },
    /// To each value, `mean` and `sigma` times a standard normal number are added, in float64,
    /// without the fraction of their sum. The numbers are those of [`ErasedValues::Noise`] before
    /// they are rounded, by the positions in the picture.
    Noise {
        /// Key of Philox.
        key: [u32; 2],
        /// The mean.
        mean: f64,
        /// The deviation.
        sigma: f64,
        /// Whether results are clipped; otherwise they are taken modulo 256.
        is_clipped: bool,
        /// Whether all channels get the numbers of the first.
        is_grey: bool,
    },
    /// Random integers are added to the values, and the sums are clipped. Those of green come from
    /// one word for each pixel. Those of red and blue come from a grid with half as many columns
    /// and rows, at least one, and are interpolated in float64.
    SensorNoise {
        /// Key of Philox.
        key: [u32; 2],
        /// The integers of red and blue.
        coarse: NoiseRange,
        /// The integers of green.
        fine: NoiseRange,
        /// Whether all channels get the same integer of `fine`, from the word of the first channel.
        is_grey: bool,
    },
    /// torchvision's Gaussian blur: a kernel along the rows, one along the columns, in float32
    /// without fused operations, the borders mirrored.
    KernelBlur {
        /// Index of the bits of the weights along the rows, and how many.
        across: (usize, u32),
        /// The same along the columns.
        down: (usize, u32),
    },
}

/// Random integers: `low` plus the upper 32 bits of the product of a word and `count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoiseRange {
    /// The smallest integer.
    pub low: i32,
    /// Number of possible integers; 0 and 1 both mean `low` alone.
    pub count: u32,
}

/// A colour space, computed as by OpenCV's `cvtColor` for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColourSpace {
    /// Hue, saturation, value.
    Hsv,
    /// Hue, lightness, saturation.
    Hls,
    /// L*a*b*.
    Lab {
        /// Index of the first word of the tables, with two 16-bit numbers in each word: the linear
        /// values of the 256 bytes, then the cube roots of linear values.
        words: usize,
    },
    /// Y'CrCb.
    Ycrcb,
}

/// The positions of a warp, and how a pixel is computed from those around its position.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WarpForm {
    /// The nearest pixel, by wrapping sums in 16.16 fixed point.
    Fixed {
        /// Column and row of the first pixel.
        begin: [i32; 2],
        /// Increment for a step along a row.
        across: [i32; 2],
        /// Increment for a step along a column.
        down: [i32; 2],
    },
    /// The nearest pixel, in float64.
    Nearest(PositionMap),
    /// Bilinear, in float64.
    Bilinear(PositionMap),
    /// Bicubic, in float64.
    Bicubic(PositionMap),
}

/// Maps the centre of a pixel of the result to a position in the source: Pillow's `PERSPECTIVE`, or
/// its `AFFINE`, which has no division.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PositionMap {
    /// The coefficients in Pillow's order; the last two are those of the divisor.
    pub coefficients: [f64; 8],
    /// Whether positions are divided.
    pub is_perspective: bool,
}

/// A rectangle of a tensor whose elements are replaced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Erasure {
    /// First row.
    pub top: u32,
    /// First column.
    pub left: u32,
    /// Rows.
    pub height: u32,
    /// Columns.
    pub width: u32,
    /// The new elements.
    pub values: ErasedValues,
}

/// Elements that replace others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ErasedValues {
    /// The bits of the element of each channel.
    Channels([u32; 3]),
    /// A standard normal number for each element: of the word of Philox 4x32-10 with the counter
    /// [column / 4, row, channel, 0] in the rectangle, at column % 4, rounded to float32 and then
    /// to the element type.
    Noise {
        /// Key of Philox.
        key: [u32; 2],
    },
}
