//! The execution of a recipe on the pictures of one sample, as plain data without pixels, for
//! executors outside this crate.
//!
//! A [`PictureProgram`] is exported from the plan that [`crate::SamplePreparer`] itself executes,
//! without further decisions. Executing it on its part of the decoded region gives the same bytes
//! as the preparer.

pub use crate::resize::program::{AxisProgram, OUTSIDE};

use crate::Region;
use meetpoint_format::recipe::{Dtype, Layout, MixPartner};
use meetpoint_jpeg::OutputColour;
use std::ops::Range;

/// Fraction bits of a weight.
pub const WEIGHT_BITS: u32 = crate::resize::PRECISION_BITS;

/// The program for one picture of a sample. Its memory is reused from sample to sample.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PictureProgram {
    /// Index of its column among those that are prepared.
    pub column: usize,
    /// Index of the picture among those of the sample in this column.
    pub index: usize,
    /// The part of the picture in the file that must be decoded. Turned, it is the region of the
    /// first stage.
    pub source: Region,
    /// How it is turned.
    pub turn: Turn,
    /// How the picture is decoded.
    pub colour: OutputColour,
    /// The stages, in order. The last one writes the tensor.
    pub stages: Vec<StageProgram>,
    /// Changes, to which stages refer by ranges.
    pub changes: Vec<PictureChange>,
    /// Positions and weights, to which axes refer by index.
    pub words: Vec<i32>,
    /// Tables of bytes, to which changes refer by index.
    pub tables: Vec<[u8; 256]>,
    /// Height and width of the tensor.
    pub tensor: (u32, u32),
    /// Rectangles of the tensor to replace, in order.
    pub erasures: Vec<Erasure>,
}

impl PictureProgram {
    /// Clears the program of the last picture.
    pub(crate) fn clear(&mut self) {
        self.stages.clear();
        self.changes.clear();
        self.words.clear();
        self.tables.clear();
        self.erasures.clear();
    }
}

/// How a picture is turned and mirrored according to its Exif orientation, before anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Turn {
    /// Whether columns of the picture in the file become rows.
    pub is_transposed: bool,
    /// Whether its last column becomes the first column, or the first row if it is transposed.
    pub from_right: bool,
    /// Whether its last row becomes the first row, or the first column if it is transposed.
    pub from_bottom: bool,
}

/// One pass of a picture through a resizer onto a canvas, and changes of the result.
///
/// Both axes process the columns and rows of `region`, each result rounded to a byte; the resulting
/// window is placed on the canvas, whose other pixels have the colour `fill`. The canvas is
/// mirrored and flipped, `row_changes` change the colours of its pixels, and it is written to the
/// tensor or to a picture, which `whole` then changes.
#[derive(Debug, Clone, PartialEq)]
pub struct StageProgram {
    /// The part of the source that it reads, before mirroring.
    pub region: Region,
    /// Whether this part is mirrored left to right before anything else.
    pub region_mirrored: bool,
    /// The pass along the rows.
    pub across: AxisProgram,
    /// The pass along the columns.
    pub down: AxisProgram,
    /// Whether the pass along the columns comes first.
    pub down_first: bool,
    /// Columns and rows of the window, the result of the axes.
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
    /// Changes of single pixels, in order, before the canvas is written.
    pub row_changes: Range<usize>,
    /// Changes of the written picture, in order.
    pub whole: Range<usize>,
    /// Whether it writes the tensor.
    pub is_last: bool,
}

/// A change of a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PictureChange {
    /// Replaces every value by its entry in a table.
    Table {
        /// Index of the table.
        table: usize,
    },
    /// Replaces the values of each channel by the entries of a separate table.
    Tables {
        /// Index of the first of three tables.
        first: usize,
    },
    /// Blends each pixel with its luma, which is the result at a factor of 0.
    Saturation(f32),
    /// Adds a number to the hue of Pillow's mode HSV.
    Hue(u8),
    /// Replaces every channel by the luma.
    Grey,
    /// Replaces channel c by the channel at index c of the list.
    Channels([u8; 3]),
    /// Converts red, green and blue to another colour space.
    Space(SpaceConversion),
    /// Blends every value with the mean luma, which is the result at a factor of 0.
    Contrast(f32),
    /// Stretches each channel to the full range.
    Autocontrast,
    /// Equalises the histogram of each channel.
    Equalize,
    /// Blends every value with that of the smoothed picture, which is the result at a factor of 0.
    Sharpness(f32),
    /// Selects columns and rows of the picture, or a colour.
    Frame {
        /// Columns and rows of the result.
        size: (u32, u32),
        /// Index of the first of the words with a source column per column of the result, or
        /// [`OUTSIDE`].
        columns: usize,
        /// Index of the first of the words with a source row per row of the result, or [`OUTSIDE`].
        rows: usize,
        /// The colour.
        fill: [u8; 3],
    },
    /// Computes each pixel of the result from a position of the picture.
    Warp {
        /// Columns and rows of the result.
        size: (u32, u32),
        /// The positions, and the interpolation.
        form: WarpForm,
        /// Supersampling: each pixel is the mean of `samples` by `samples` pixels of a result that
        /// is larger by this factor, for which `form` is given. The mean is the sum plus half the
        /// count, times 2^24 / count, divided by 2^24, with each quotient rounded down.
        samples: u32,
        /// The colour of pixels whose position is outside.
        fill: [u8; 3],
    },
    /// Moves positions by two smooth random fields, as `docs/formats.md` defines for
    /// `elastic_transform`. The size does not change.
    Elastic {
        /// Of Philox: the words are those of [`ErasedValues::Noise`], by the positions in the
        /// picture; channel 0 moves columns, channel 1 rows.
        key: [u32; 2],
        /// For each channel, the weights along the rows and along the columns: the index of the
        /// first one, stored as bits of a float32, and how many there are.
        weights: [[(usize, u32); 2]; 2],
        /// Twice the displacement in pixels for a value of 1, along rows and along columns.
        alpha: [f64; 2],
        /// Whether each pixel is the nearest one, not interpolated.
        is_nearest: bool,
        /// The colour of pixels whose position is outside.
        fill: [u8; 3],
    },
    /// Pillow's Gaussian blur: three box blurs along the rows, then three along the columns.
    BoxBlur {
        /// Number of values on each side with full weight.
        radius: u32,
        /// Full weight, and the weight of the two outermost values, in units of 1 / 2^24.
        weights: [u32; 2],
    },
    /// Begins a weighted sum in float32, without fused operations, with the picture, which is also
    /// retained as the original.
    SumBegin {
        /// The weight of the picture.
        weight: f32,
    },
    /// Adds the picture to the sum of the preceding [`PictureChange::SumBegin`]. The result is the
    /// original, or after the last one the sum, truncated and clipped.
    SumAdd {
        /// The weight of the picture.
        weight: f32,
        /// Whether it is the last one.
        is_last: bool,
    },
    /// Adds to each value the sum of `mean` and `sigma` times a standard normal number, computed in
    /// float64 and truncated. The numbers are those of [`ErasedValues::Noise`] before rounding, for
    /// the positions in the picture.
    Noise {
        /// Of Philox.
        key: [u32; 2],
        /// The mean.
        mean: f64,
        /// The deviation.
        sigma: f64,
        /// Whether results are clipped; otherwise they wrap modulo 256.
        is_clipped: bool,
        /// Whether all channels use the numbers of the first.
        is_grey: bool,
    },
    /// Adds whole random numbers to the values and clips the sums. The numbers of green are those
    /// of the words of the pixels, by their positions as for [`ErasedValues::Noise`]. Those of red
    /// and blue belong to a grid of half as many columns and rows, at least one, and are
    /// interpolated as `docs/formats.md` defines for `random_sensor_noise`.
    SensorNoise {
        /// Of Philox.
        key: [u32; 2],
        /// The numbers of red and blue.
        coarse: NoiseRange,
        /// The numbers of green.
        fine: NoiseRange,
        /// Whether all channels use the numbers of `fine` of the words of the first channel.
        is_grey: bool,
    },
    /// torchvision's Gaussian blur: separate kernels along the rows and the columns, in float32
    /// without fused operations, with mirrored borders.
    KernelBlur {
        /// Index of the first weight along the rows, stored as bits, and the number of weights.
        across: (usize, u32),
        /// The same for the columns.
        down: (usize, u32),
    },
}

/// Whole random numbers: `low` plus the upper 32 bits of a word times `count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoiseRange {
    /// The smallest one.
    pub low: i32,
    /// How many there are; 0: only the smallest one.
    pub count: u32,
}

/// The conversion to a colour space of `convert_color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpaceConversion {
    /// Hue, saturation, value.
    Hsv,
    /// Hue, lightness, saturation.
    Hls,
    /// L*a*b*.
    Lab {
        /// Index of the first of the words with two tables of 16-bit numbers, two in each word, the
        /// first in the lower half: the linear values of the 256 bytes, and the roots of all linear
        /// values that occur.
        words: usize,
    },
    /// Y'CrCb.
    Ycrcb,
}

/// The positions of a warp, and the interpolation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WarpForm {
    /// The nearest pixel, with positions as wrapping sums in 16.16 fixed point.
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

/// Maps the centre of a pixel of the result to the source: Pillow's `PERSPECTIVE`, or its `AFFINE`,
/// which has no division.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PositionMap {
    /// The coefficients in Pillow's order; the last two are those of the divisor.
    pub coefficients: [f64; 8],
    /// Whether positions are divided.
    pub is_perspective: bool,
}

/// A rectangle of a tensor whose elements are to be replaced.
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
    /// The replacement.
    pub values: ErasedValues,
}

/// Replacements of elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ErasedValues {
    /// The bits of one element per channel.
    Channels([u32; 3]),
    /// A standard normal number for each element, rounded to float32 and then to the element type.
    /// `docs/formats.md` defines it for the word at index column % 4 of Philox 4x32-10 with the
    /// counter [column / 4, row, channel, 0], relative to the rectangle.
    Noise {
        /// Of Philox.
        key: [u32; 2],
    },
}

/// The effect of an operation on batches on the tensors.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchProgram {
    /// The partner of each sample; its original value is used.
    pub partner: MixPartner,
    /// The mix of each sample's picture.
    pub mixes: Vec<SampleMix>,
    /// The mix of each sample's row of labels; none is pasted.
    pub label_mixes: Vec<SampleMix>,
}

/// How a sample of a batch is mixed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SampleMix {
    /// It does not change.
    Keep,
    /// The weighted sum of itself and its partner.
    Blend {
        /// Its own weight.
        own: f32,
        /// The weight of its partner.
        partner: f32,
    },
    /// It gets a rectangle of its partner.
    Paste {
        /// First row.
        top: u32,
        /// Row after the last.
        bottom: u32,
        /// First column.
        left: u32,
        /// Column after the last.
        right: u32,
    },
}

/// How the last stage of every sample of a recipe writes the tensors of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorProgram {
    /// Element type.
    pub dtype: Dtype,
    /// Order of the axes.
    pub layout: Layout,
    /// Number of channels: 3, or 1, which is red.
    pub channels: u32,
    /// The elements for the 256 values of a byte, little-endian, channel by channel.
    pub elements: Vec<u8>,
}

/// Why a sample or a recipe has no program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotExported {
    /// Samples are not pictures.
    #[error("samples are not pictures")]
    NotPictures,
    /// The pixels of the mode are not red, green and blue bytes or one grey byte.
    #[error("pictures are decoded as {0}")]
    Mode(&'static str),
    /// The recipe has targets, which move with the pictures.
    #[error("targets move with the pictures")]
    Targets,
    /// The picture is decoded at a lower resolution.
    #[error("the picture is decoded at a lower resolution")]
    Scaled,
    /// An operation cannot be expressed as data.
    #[error("the operation {0} is not executed outside of the CPU")]
    Operation(&'static str),
}
