//! Rows of any interpolating warp, from a packed picture: each pixel of the result loads the pixels
//! around its position, all channels at once.
//!
//! In reading order: the positions of a row (this file and `row`), the sums in float32 and their
//! bytes (`sums`, with `portable` and `avx2`), and the doubtful values.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod portable;
mod row;
mod sums;

use super::interpolate::Location;
use super::packed::{PIXEL_BYTES, Packed};
use super::taps::Taps;
use super::{RowOfMap, RowWriter, Warp};
use crate::Cpu;
use crate::planes::Planes;
use crate::vector::{BLOCK, Kernel, run};
use row::{Pixels, Row};

/// The writer of rows of `warp`, which packs the picture at the first row; rows of a picture that
/// is too large are left to `others`.
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
        if !row.is_inside {
            out.into_iter().zip(warp.fill).for_each(|(out, fill)| out.fill(fill));
            return;
        }
        sums::compute(cpu, packed, taps, &mut row);
        sums::make_pixels(cpu, &mut row, warp.fill, taps.error());
        let doubt = DoubtfulValues { map: &map, size, packed, taps };
        for (number, block) in row.blocks.iter_mut().enumerate() {
            if block.is_doubtful {
                doubt.settle_block(number * BLOCK, block);
            }
        }
        sums::separate(cpu, &row, out);
    })
}

/// Computes the positions of a row and the weights around them.
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
        let sides = (size.0 as f64, size.1 as f64);
        for (number, pixels) in row.blocks.iter_mut().enumerate() {
            let first = number * BLOCK;
            // Separate loops for affine maps and perspectives.
            if map.divisor.is_none() {
                for index in 0..BLOCK {
                    let location = Location::of(map.affine(first + index), sides);
                    put(pixels, index, stride, location);
                }
            } else {
                for index in 0..BLOCK {
                    put(pixels, index, stride, Location::of(map.at(first + index), sides));
                }
            }
        }
        let (mut is_inside, mut is_across) = (0, false);
        for pixels in &mut row.blocks {
            for index in 0..BLOCK {
                is_inside |= pixels.inside[index];
            }
            let [across, down] = &pixels.distances;
            for distance in across {
                is_across |= *distance != 0.0;
            }
            weigh(taps, across, &mut pixels.across);
            weigh(taps, down, &mut pixels.down);
        }
        (row.is_inside, row.is_across) = (is_inside != 0, is_across);
    }
}

/// Stores a location.
#[inline(always)]
fn put(pixels: &mut Pixels, index: usize, stride: u32, location: Location) {
    pixels.offsets[index] = Packed::offset(stride, location.column, location.row);
    pixels.inside[index] = if location.is_inside { u32::MAX } else { 0 };
    // A distance above 0 must remain above 0.
    pixels.distances[0][index] = location.across as f32;
    pixels.distances[1][index] = location.down as f32;
}

/// Computes the weights for distances.
#[inline(always)]
fn weigh(taps: Taps, distances: &[f32; BLOCK], weights: &mut [[f32; BLOCK]; 4]) {
    let [first, second, third, fourth] = weights;
    for index in 0..BLOCK {
        [first[index], second[index], third[index], fourth[index]] = taps.weights(distances[index]);
    }
}

/// The data for computing the doubtful values of a row.
struct DoubtfulValues<'a> {
    map: &'a RowOfMap,
    size: (usize, usize),
    packed: &'a Packed,
    taps: Taps,
}

impl DoubtfulValues<'_> {
    /// Recomputes the doubtful pixels of a block that starts at column `first`.
    fn settle_block(&self, first: usize, pixels: &mut Pixels) {
        let doubts = pixels.doubts.iter().enumerate().filter(|(_, differs)| **differs != 0);
        for (index, differs) in doubts {
            let (offset, value) = (pixels.offsets[index], &mut pixels.values[index]);
            *value = self.settle(first + index, offset, *value, *differs);
        }
    }

    /// The pixel of a column with Pillow's arithmetic for the doubtful channels; the other channels
    /// are taken from `pixel`.
    fn settle(&self, column: usize, offset: u32, pixel: u32, differs: u32) -> u32 {
        let (bytes, stride) = (self.packed.bytes(), self.packed.stride());
        // The weighted pixels around the position, row by row.
        let around: [[u32; 4]; 4] = std::array::from_fn(|row| {
            let first = (offset as usize + row * stride - stride - 1) * PIXEL_BYTES;
            let row: &[u8; 4 * PIXEL_BYTES] =
                bytes[first..].first_chunk().expect("the pixels around a position are packed");
            std::array::from_fn(|tap| {
                u32::from_le_bytes(std::array::from_fn(|channel| row[PIXEL_BYTES * tap + channel]))
            })
        });
        let weighted = match self.taps {
            Taps::Two => 1..3,
            Taps::Four => 0..4,
        };
        let centre = around[1][1];
        let mut unequal = 0;
        for row in &around[weighted.clone()] {
            for pixel in &row[weighted.clone()] {
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
                // The weighted mean of equal bytes is exact.
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

    /// The distance of the position of a column from the pixel before it, across and down.
    fn distances(&self, column: usize) -> (f64, f64) {
        let sides = (self.size.0 as f64, self.size.1 as f64);
        let location = Location::of(self.map.at(column), sides);
        (location.across, location.down)
    }
}
