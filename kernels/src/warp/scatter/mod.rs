//! Rows of any warp that mixes pixels, from a packed picture: each pixel of the result loads the
//! pixels around its position, all channels at once.
//!
//! In reading order: the positions of a row, the sums in float32 (`sums`, `portable` and `avx2`),
//! the bytes, and the values that are doubtful.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod portable;
mod sums;

use super::interpolate::Block;
use super::packed::{PIXEL_BYTES, Packed};
use super::taps::{Taps, bounds};
use super::{RowOfMap, RowWriter, Warp};
use crate::Cpu;
use crate::planes::Planes;
use crate::vector::{BLOCK, Kernel, run};
use sums::Row;

/// Rows of `warp`, whose picture is packed when the first is written; those of a picture that is
/// too large are left to `others`.
pub(super) fn scatter<'a>(
    warp: &'a Warp,
    taps: Taps,
    cpu: Cpu,
    mut others: RowWriter<'a>,
) -> RowWriter<'a> {
    let mut packed = None;
    let mut row = Row::default();
    Box::new(move |from: &Planes, y, out: [&mut [u8]; 3]| {
        let Some(packed) = packed.get_or_insert_with(|| Packed::of(from, cpu)) else {
            return others(from, y, out);
        };
        let map = RowOfMap::new(warp.map, y);
        let size = from.size();
        row.set_length(out[0].len());
        run(cpu, Locate { map: &map, size, stride: packed.stride() as u32, taps, row: &mut row });
        if row.is_inside.contains(&true) {
            sums::compute(cpu, packed, taps, &mut row);
        }
        let doubt = Doubt { map: &map, size, packed, taps };
        run(cpu, Finish { row: &row, out, fill: warp.fill, error: taps.error(), doubt });
    })
}

/// Finds the positions of a row and the weights around them.
struct Locate<'a> {
    map: &'a RowOfMap,
    size: (usize, usize),
    stride: u32,
    taps: Taps,
    row: &'a mut Row,
}

impl Kernel for Locate<'_> {
    type Output = ();

    #[inline(always)]
    fn compute(self) {
        let Self { map, size, stride, taps, row } = self;
        let [mut is_across, mut is_down] = [false; 2];
        for first in (0..row.offsets.len()).step_by(BLOCK) {
            let block = Block::of(map, first, size);
            let offsets: &mut [u32; BLOCK] =
                row.offsets[first..].first_chunk_mut().expect("a row has whole blocks");
            for index in 0..BLOCK {
                offsets[index] = Packed::offset(stride, block.columns[index], block.rows[index]);
            }
            row.is_inside[first..][..BLOCK].copy_from_slice(&block.is_inside);
            for (weights, distances, is_mixed) in [
                (&mut row.across, &block.across, &mut is_across),
                (&mut row.down, &block.down, &mut is_down),
            ] {
                let [first_taps, second, third, fourth] = weights;
                let [first_taps, second, third, fourth] =
                    [first_taps, second, third, fourth].map(|weights| {
                        let block: &mut [f32; BLOCK] =
                            weights[first..].first_chunk_mut().expect("a row has whole blocks");
                        block
                    });
                for index in 0..BLOCK {
                    let distance = distances[index] as f32;
                    *is_mixed |= distances[index] != 0.0;
                    let weights = taps.weights(distance);
                    [first_taps[index], second[index], third[index], fourth[index]] = weights;
                }
            }
        }
        (row.is_across, row.is_down) = (is_across, is_down);
    }
}

/// Makes bytes of the sums of a row.
struct Finish<'a> {
    row: &'a Row,
    out: [&'a mut [u8]; 3],
    fill: [u8; 4],
    error: f32,
    doubt: Doubt<'a>,
}

/// Bytes of a block.
const BYTES: usize = BLOCK * PIXEL_BYTES;

impl Kernel for Finish<'_> {
    type Output = ();

    #[inline(always)]
    fn compute(self) {
        let Self { row, out: [red, green, blue], fill, error, doubt } = self;
        let fill = u32::from_le_bytes(fill);
        for first in (0..red.len()).step_by(BLOCK) {
            let sums: &[f32; BYTES] =
                row.sums.as_flattened()[PIXEL_BYTES * first..].first_chunk().expect("whole blocks");
            let (mut least, mut most) = ([0; BYTES], [0; BYTES]);
            for index in 0..BYTES {
                [least[index], most[index]] = bounds(sums[index], error);
            }
            let is_inside: &[bool; BLOCK] =
                row.is_inside[first..].first_chunk().expect("whole blocks");
            let (pixels, others) = (least.as_chunks::<4>().0, most.as_chunks::<4>().0);
            let mut values = [0; BLOCK];
            let mut doubts = [0; BLOCK];
            for index in 0..BLOCK {
                let [value, other] = [pixels, others].map(|it| u32::from_le_bytes(it[index]));
                values[index] = if is_inside[index] { value } else { fill };
                doubts[index] = if is_inside[index] { value ^ other } else { 0 };
            }
            let mut doubtful = 0;
            for doubt in &doubts {
                doubtful |= doubt;
            }
            if doubtful != 0 {
                for (index, differs) in doubts.iter().enumerate().filter(|(_, it)| **it != 0) {
                    let offset = row.offsets[first + index];
                    values[index] = doubt.settle(first + index, offset, values[index], *differs);
                }
            }
            let count = BLOCK.min(red.len() - first);
            for (plane, shift) in [(&mut *red, 0), (&mut *green, 8), (&mut *blue, 16)] {
                let mut bytes = [0; BLOCK];
                for index in 0..BLOCK {
                    bytes[index] = (values[index] >> shift) as u8;
                }
                plane[first..][..count].copy_from_slice(&bytes[..count]);
            }
        }
    }
}

/// What the doubtful values of a row are computed from.
struct Doubt<'a> {
    map: &'a RowOfMap,
    size: (usize, usize),
    packed: &'a Packed,
    taps: Taps,
}

impl Doubt<'_> {
    /// The pixel of a column as Pillow computes it, where it differs from a pixel that is right in
    /// all other channels.
    #[inline(never)]
    fn settle(&self, column: usize, offset: u32, pixel: u32, differs: u32) -> u32 {
        let (bytes, stride) = (self.packed.bytes(), self.packed.stride());
        // The pixels around, row by row: those that are weighed.
        let around: [[u32; 4]; 4] = std::array::from_fn(|row| {
            let first = (offset as usize + row * stride - stride - 1) * PIXEL_BYTES;
            let row: &[u8; 4 * PIXEL_BYTES] =
                bytes[first..].first_chunk().expect("the pixels around a position are packed");
            std::array::from_fn(|tap| {
                u32::from_le_bytes(std::array::from_fn(|channel| row[PIXEL_BYTES * tap + channel]))
            })
        });
        let weighed = match self.taps {
            Taps::Two => 1..3,
            Taps::Four => 0..4,
        };
        let centre = around[1][1];
        let mut unequal = 0;
        for row in &around[weighed.clone()] {
            for pixel in &row[weighed.clone()] {
                unequal |= pixel ^ centre;
            }
        }
        let mut exact = None;
        let mut settled = pixel;
        for channel in 0..3 {
            let mask = 0xff << (8 * channel);
            if differs & mask == 0 {
                continue;
            }
            let value = if unequal & mask == 0 {
                // Equal bytes are their own weighted mean.
                centre & mask
            } else {
                let (across, down) = *exact.get_or_insert_with(|| self.distances(column));
                let number = |pixel: u32| f64::from(pixel >> (8 * channel) & 0xff);
                let rows = around.map(|row| self.taps.along(row.map(number), across));
                u32::from(Taps::byte(self.taps.along(rows, down))) << (8 * channel)
            };
            settled = settled & !mask | value;
        }
        settled
    }

    /// How far the position of a column lies behind the pixel in front of it, across and down.
    fn distances(&self, column: usize) -> (f64, f64) {
        let block = Block::of(self.map, column, self.size);
        (block.across[0], block.down[0])
    }
}
