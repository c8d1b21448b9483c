//! The plan of one picture. It holds offsets into the file, never bytes of it.

use crate::Error;
use crate::form::KindCodes;
use crate::huffman_spec::HuffmanSpec;
use crate::upsample::Upsampling;
use std::ops::Range;

/// How to decode a region of one picture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DecodePlan {
    /// Columns and rows of the whole picture.
    pub size: (u32, u32),
    /// First column and row of the region.
    pub origin: (u32, u32),
    /// Columns and rows of the region.
    pub region: (u32, u32),
    /// The meaning of the components, and the conversion of the picture.
    pub colours: PlanColours,
    /// The components in the order of the frame.
    pub components: Vec<PlannedComponent>,
    /// The Huffman tables that the scan uses.
    pub huffman: Vec<HuffmanSpec>,
    /// The blocks of an MCU, in the order of the data.
    pub units: Vec<Unit>,
    /// MCUs in a row, and rows of MCUs.
    pub mcus: (u32, u32),
    /// The columns of MCUs that the region depends on.
    pub mcu_columns: Range<u32>,
    /// The rows of MCUs that the region depends on.
    pub mcu_rows: Range<u32>,
    /// The bytes of the file that all segments together read.
    pub data: Range<usize>,
    /// Parts of the data that can be decoded independently, in their order. Each holds an MCU that
    /// the region depends on.
    pub segments: Vec<Segment>,
    /// Whether the file has neither entry points nor restart markers, so that the only segment
    /// begins with the data.
    pub is_unsegmented: bool,
    /// Whether restart markers interrupt the data.
    pub has_restart_markers: bool,
    /// Of a coefficient form, which has neither Huffman tables, nor units, nor segments: its rows.
    pub form: Option<PlannedForm>,
}

/// The part of a plan that describes a coefficient form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlannedForm {
    /// Lanes of each row; 0: the bytes of the fast form.
    pub lanes: u8,
    /// The codes of each kind of blocks; none in the fast form.
    pub codes: Vec<KindCodes>,
    /// The bytes of each of [`DecodePlan::mcu_rows`] in the file.
    pub rows: Vec<Range<usize>>,
}

/// Meaning of the components, and colours of the pixels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PlanColours {
    /// The first component is grey: all three planes are copies of it.
    #[default]
    Grey,
    /// Luma and chroma are converted to red, green and blue.
    YCbCrToRgb,
    /// Red, green and blue stay.
    Rgb,
    /// Red, green and blue are converted to grey, in three equal planes.
    RgbToGrey,
}

/// The entry of a component in a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedComponent {
    /// Horizontal sampling factor.
    pub h: u32,
    /// Vertical sampling factor.
    pub v: u32,
    /// Columns of samples that are not padding.
    pub width: u32,
    /// Rows of samples that are not padding.
    pub height: u32,
    /// Columns of blocks in the whole picture.
    pub blocks_wide: u32,
    /// Rows of blocks in the whole picture.
    pub blocks_high: u32,
    /// Steps of its quantisation table in natural order; from 32,768 on they are negative, which
    /// makes no difference to 16-bit products.
    pub steps: [i16; 64],
    /// How its samples are upsampled to the picture.
    pub upsampling: UpsamplingKind,
    /// Columns of samples that the region depends on; empty for a component that is not needed.
    pub columns: Range<u32>,
    /// Rows of samples that the region depends on.
    pub rows: Range<u32>,
}

impl PlannedComponent {
    /// Columns of blocks that the region depends on.
    pub fn block_columns(&self) -> Range<u32> {
        self.columns.start / 8..self.columns.end.div_ceil(8)
    }

    /// Rows of blocks that the region depends on.
    pub fn block_rows(&self) -> Range<u32> {
        self.rows.start / 8..self.rows.end.div_ceil(8)
    }
}

/// How samples of a component are upsampled to the picture; libjpeg-turbo's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpsamplingKind {
    /// As they are.
    None,
    /// Twice the columns by the triangle filter.
    FancyH2V1,
    /// Twice the rows by the triangle filter.
    FancyH1V2,
    /// Twice the columns and rows by the triangle filter.
    FancyH2V2,
    /// Each sample several times.
    Replicate {
        /// Columns of a sample.
        columns: u32,
        /// Rows of a sample.
        rows: u32,
    },
}

impl From<Upsampling> for UpsamplingKind {
    fn from(upsampling: Upsampling) -> Self {
        match upsampling {
            Upsampling::None => Self::None,
            Upsampling::FancyH2V1 => Self::FancyH2V1,
            Upsampling::FancyH1V2 => Self::FancyH1V2,
            Upsampling::FancyH2V2 => Self::FancyH2V2,
            Upsampling::Replicate { columns, rows } => Self::Replicate { columns, rows },
        }
    }
}

/// A block of an MCU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Index in [`DecodePlan::components`].
    pub component: u8,
    /// Column of the block in the MCU.
    pub column: u8,
    /// Row of the block in the MCU.
    pub row: u8,
    /// Index in [`DecodePlan::huffman`] of its table for DC.
    pub dc: u8,
    /// Index in [`DecodePlan::huffman`] of its table for AC.
    pub ac: u8,
}

/// A part of the data that can be decoded independently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Offset in the file of the byte that holds the next bit.
    pub offset: usize,
    /// Bits of that byte that precede the segment, 0..8.
    pub bits: u8,
    /// DC values of the blocks before, by component.
    pub dc: [i16; 3],
    /// Its first MCU, counted through the scan.
    pub mcu: u32,
    /// The MCU after the last one that the region depends on.
    pub mcu_end: u32,
    /// The offset after the last byte that it can read.
    pub offset_end: usize,
    /// What follows MCU `mcu_end - 1`.
    pub end: SegmentEnd,
}

/// What follows a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentEnd {
    /// Further data or the end of the scan.
    Any,
    /// An entry point: decoding must have arrived at this position, with these DC values.
    EntryPoint {
        /// Offset in the file of the byte that holds the next bit.
        offset: usize,
        /// Bits of that byte that precede the entry point, 0..8.
        bits: u8,
        /// DC values of the blocks before, by component.
        dc: [i16; 3],
    },
    /// A restart marker: less than a byte may be left before it.
    RestartMarker {
        /// Offset in the file of its 0xff.
        offset: usize,
    },
}

/// Why there is no plan; [`Decoder`](crate::Decoder) must decode such a picture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The decoder refuses it too, or fills in missing data.
    #[error(transparent)]
    Refused(#[from] Error),
    /// Its coefficients are coded in several passes.
    #[error("the JPEG is progressive")]
    Progressive,
    /// It is sequential, with a scan for each component.
    #[error("the JPEG has several scans")]
    SeveralScans,
    /// CMYK or YCCK.
    #[error("the JPEG has four components")]
    FourComponents,
    /// An entry point differs from the position of its restart marker.
    #[error("an entry point and a restart marker disagree about the position of an MCU")]
    ContradictoryEntryPoints,
    /// It is not the file that was opened.
    #[error("another file than the one that was opened")]
    NotOpen,
    /// The options request less than full resolution.
    #[error("decoding at less than full resolution")]
    Scaled,
}
