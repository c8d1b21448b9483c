//! A row of positions, and the weighted sums of the pixels around them.

use super::portable;
use crate::Cpu;
use crate::vector::BLOCK;
use crate::warp::packed::{PIXEL_BYTES, Packed};
use crate::warp::taps::Taps;

/// A row of the result, in whole blocks.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// Where the pixel in front of each position lies in the packed picture.
    pub(super) offsets: Vec<u32>,
    /// Whether the position is inside. One that is not has the first pixel.
    pub(super) is_inside: Vec<bool>,
    /// The weights of four columns and of four rows.
    pub(super) across: [Vec<f32>; 4],
    pub(super) down: [Vec<f32>; 4],
    /// Whether some position lies behind the middle of a column, of a row.
    pub(super) is_across: bool,
    pub(super) is_down: bool,
    /// The sums of each channel.
    pub(super) sums: Vec<[f32; PIXEL_BYTES]>,
}

impl Row {
    /// Takes the columns of a row.
    pub(super) fn set_length(&mut self, columns: usize) {
        let length = columns.next_multiple_of(BLOCK);
        self.offsets.resize(length, 0);
        self.is_inside.resize(length, false);
        for weights in self.across.iter_mut().chain(&mut self.down) {
            weights.resize(length, 0.0);
        }
        self.sums.resize(length, [0.0; PIXEL_BYTES]);
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

/// Computes the sums of a row.
pub(super) fn compute(cpu: Cpu, packed: &Packed, taps: Taps, row: &mut Row) {
    let shape = match taps {
        Taps::Two => Shape::Square2,
        Taps::Four if row.is_across => Shape::Square4,
        Taps::Four => Shape::Column4,
    };
    // Around the pixel at an offset, one row and pixel in front of it and two behind are loaded.
    let stride = packed.stride();
    let last = row.offsets.iter().fold(0, |last, offset| last.max(*offset)) as usize;
    let first = row.offsets.iter().fold(u32::MAX, |first, offset| first.min(*offset)) as usize;
    let end = (last + 2 * stride + 3) * PIXEL_BYTES;
    assert!(first > stride && end <= packed.bytes().len(), "the pixels around are packed");
    let length = row.offsets.len();
    assert!(row.sums.len() == length, "every position has sums");
    let weights = row.across.iter().chain(&row.down);
    assert!(weights.into_iter().all(|it| it.len() == length), "every position has weights");
    match cpu {
        #[cfg(target_arch = "x86_64")]
        Cpu::Avx2 | Cpu::Avx512 => super::avx2::sums(packed, shape, row),
        _ => portable::sums(packed, shape, row),
    }
}
