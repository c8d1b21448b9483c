//! Quantised coefficients of a picture, and the tables that they were divided by.

/// 64 quantised DCT coefficients of a block, natural order (row by row: index 8 * v + u).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Block(pub [i16; 64]);

impl Block {
    /// A block of zeros.
    pub const ZERO: Self = Self([0; 64]);
}

/// All blocks of one component, row by row, padded to whole MCUs of the frame.
///
/// Padding blocks contain the values coded in the file, or zeros.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CoefficientPlane {
    /// Blocks in a row.
    pub blocks_wide: u32,
    /// Rows of blocks.
    pub blocks_high: u32,
    /// The blocks.
    pub blocks: Vec<Block>,
}

/// All coefficients of a picture, one plane a component in the order of the frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coefficients {
    /// The planes.
    pub planes: Vec<CoefficientPlane>,
}

/// A quantisation table in natural order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuantTable(pub [u16; 64]);
