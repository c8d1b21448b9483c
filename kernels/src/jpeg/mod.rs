//! JPEG: the file as it came, its coefficients, and its coefficient form.

pub mod form;

/// 64 quantised DCT coefficients of a block, natural order (row by row: index 8 * v + u).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Block(pub [i16; 64]);

/// All blocks of one component, row by row, padded to whole MCUs of the frame.
///
/// Padding blocks hold what the file codes for them, zeros where it codes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoefficientPlane {
    /// Blocks in a row.
    pub blocks_wide: u32,
    /// Rows of blocks.
    pub blocks_high: u32,
    /// Blocks, `blocks_wide * blocks_high` of them.
    pub blocks: Vec<Block>,
}

/// The coefficients of a picture, one plane for each component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coefficients {
    /// Planes in the order of the components.
    pub planes: Vec<CoefficientPlane>,
}

/// A quantisation table in natural order, values 1..=65535.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuantTable(pub [u16; 64]);
