//! A row of positions, with what is computed for them.

use crate::vector::BLOCK;
use crate::warp::packed::PIXEL_BYTES;

/// Some pixels of a row of the result.
#[derive(Debug, Clone)]
pub(super) struct Pixels {
    /// Where the pixel in front of each position lies in the packed picture.
    pub(super) offsets: [u32; BLOCK],
    /// All bits where the position is inside, otherwise 0. One that is not has the first pixel.
    pub(super) inside: [u32; BLOCK],
    /// How far each position lies behind the middle of that pixel, across and down.
    pub(super) distances: [[f32; BLOCK]; 2],
    /// The weights of four columns and of four rows.
    pub(super) across: [[f32; BLOCK]; 4],
    pub(super) down: [[f32; BLOCK]; 4],
    /// The sums of each channel.
    pub(super) sums: [[f32; PIXEL_BYTES]; BLOCK],
    /// The pixels of the result, red in the lowest byte, and the bits that are doubtful.
    pub(super) values: [u32; BLOCK],
    pub(super) doubts: [u32; BLOCK],
    /// Whether some bits are.
    pub(super) is_doubtful: bool,
}

/// A row of the result, in whole blocks.
///
/// Every step goes through the whole row before the next one begins: what a vector of one width
/// stored is then no longer on its way to memory when one of another width loads it.
#[derive(Debug, Default)]
pub(super) struct Row {
    pub(super) blocks: Vec<Pixels>,
    /// Whether some position is inside, and whether some lies behind the middle of a column.
    pub(super) is_inside: bool,
    pub(super) is_across: bool,
}

impl Row {
    /// Takes the columns of a row.
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

/// What is added up: some rows of some pixels each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Two rows of two pixels.
    Square2,
    /// Four rows of four pixels.
    Square4,
    /// Four rows of one pixel, that in front of the position.
    Column4,
}
