//! A row of positions and the results for them.

use crate::vector::BLOCK;
use crate::warp::packed::PIXEL_BYTES;

/// A block of pixels of a row of the result.
#[derive(Debug, Clone)]
pub(super) struct Pixels {
    /// Offset in the packed picture of the pixel before each position.
    pub(super) offsets: [u32; BLOCK],
    /// All bits set if the position is inside, otherwise 0; positions outside use the first pixel.
    pub(super) inside: [u32; BLOCK],
    /// The distance of each position from the centre of that pixel, across and down.
    pub(super) distances: [[f32; BLOCK]; 2],
    /// The weights of four columns and of four rows.
    pub(super) across: [[f32; BLOCK]; 4],
    pub(super) down: [[f32; BLOCK]; 4],
    /// The sums of each channel.
    pub(super) sums: [[f32; PIXEL_BYTES]; BLOCK],
    /// The pixels of the result, red in the lowest byte, and the doubtful bits.
    pub(super) values: [u32; BLOCK],
    pub(super) doubts: [u32; BLOCK],
    /// Whether any bits are doubtful.
    pub(super) is_doubtful: bool,
}

/// A row of the result, in whole blocks.
///
/// Every step processes the whole row before the next one starts, so that stores of one vector
/// width have completed before loads of another width read them.
#[derive(Debug, Default)]
pub(super) struct Row {
    pub(super) blocks: Vec<Pixels>,
    /// Whether any position is inside, and whether any is off the centre of a column.
    pub(super) is_inside: bool,
    pub(super) is_across: bool,
}

impl Row {
    /// Sets the number of columns of a row.
    pub(super) fn set_length(&mut self, columns: usize) {
        let none = || Pixels {
            offsets: [0; BLOCK],
            inside: [0; BLOCK],
            distances: [[0.0; BLOCK]; 2],
            across: [[0.0; BLOCK]; 4],
            down: [[0.0; BLOCK]; 4],
            sums: [[0.0; PIXEL_BYTES]; BLOCK],
            values: [0; BLOCK],
            doubts: [0; BLOCK],
            is_doubtful: false,
        };
        self.blocks.resize_with(columns.div_ceil(BLOCK), none);
    }
}

/// The shape of the summed pixels: rows and pixels per row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Two rows of two pixels.
    Square2,
    /// Four rows of four pixels.
    Square4,
    /// Four rows of one pixel, the one before the position.
    Column4,
}
