//! A row of positions, the weighted sums of the pixels around them, and the bytes of these.

use super::portable;
use crate::Cpu;
use crate::vector::BLOCK;
use crate::warp::packed::{PIXEL_BYTES, Packed};
use crate::warp::taps::Taps;

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

/// Computes the sums of a row.
pub(super) fn compute(cpu: Cpu, packed: &Packed, taps: Taps, row: &mut Row) {
    assert!(cpu.is_available(), "this machine has no {}", cpu.name());
    let shape = match taps {
        Taps::Two => Shape::Square2,
        Taps::Four if row.is_across => Shape::Square4,
        Taps::Four => Shape::Column4,
    };
    match cpu {
        #[cfg(target_arch = "x86_64")]
        Cpu::Avx2 | Cpu::Avx512 => super::avx2::sums(packed, shape, row),
        _ => portable::sums(packed, shape, row),
    }
}

/// Makes pixels of the sums of a row; outside, of a fill. Of a byte that is doubtful, which differs
/// by less than `error` from a whole number, it is the lower one.
pub(super) fn make_pixels(cpu: Cpu, row: &mut Row, fill: [u8; PIXEL_BYTES], error: f32) {
    assert!(cpu.is_available(), "this machine has no {}", cpu.name());
    match cpu {
        #[cfg(target_arch = "x86_64")]
        Cpu::Avx2 | Cpu::Avx512 => super::avx2::make_pixels(row, fill, error),
        _ => portable::make_pixels(row, fill, error),
    }
}

/// Writes the channels of the pixels of a row.
pub(super) fn separate(cpu: Cpu, row: &Row, out: [&mut [u8]; 3]) {
    assert!(cpu.is_available(), "this machine has no {}", cpu.name());
    let [red, green, blue] = out;
    for (number, pixels) in row.blocks.iter().enumerate() {
        let first = number * BLOCK;
        let planes = [&mut red[first..], &mut green[first..], &mut blue[first..]];
        let separate = |planes: [&mut [u8; BLOCK]; 3]| match cpu {
            #[cfg(target_arch = "x86_64")]
            Cpu::Avx2 | Cpu::Avx512 => super::avx2::separate(&pixels.values, planes),
            _ => portable::separate(&pixels.values, planes),
        };
        let [red, green, blue] = planes;
        match [&mut *red, &mut *green, &mut *blue].map(|it| it.first_chunk_mut::<BLOCK>()) {
            [Some(red), Some(green), Some(blue)] => separate([red, green, blue]),
            _ => {
                let mut blocks = [[0; BLOCK]; 3];
                separate(blocks.each_mut());
                for (plane, block) in [red, green, blue].into_iter().zip(&blocks) {
                    plane.copy_from_slice(&block[..plane.len()]);
                }
            }
        }
    }
}
