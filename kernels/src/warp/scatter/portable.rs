//! Computes sums of pixels, weighted by row and column, and their bytes.

use super::row::{Pixels, Row, Shape};
use crate::vector::BLOCK;
use crate::warp::packed::{PIXEL_BYTES, Packed};
use crate::warp::taps::bounds;

/// Bytes of the pixels of a row around a position.
const ROW: usize = 4 * PIXEL_BYTES;

/// Computes the sums of a row.
pub(super) fn sums(packed: &Packed, shape: Shape, row: &mut Row) {
    let (bytes, stride) = (packed.bytes(), packed.stride());
    let rows = match shape {
        Shape::Square2 => 1..3,
        Shape::Square4 | Shape::Column4 => 0..4,
    };
    for Pixels { offsets, across, down, sums, .. } in &mut row.blocks {
        for (index, (offset, out)) in offsets.iter().zip(sums).enumerate() {
            let mut line = [0.0f32; ROW];
            for tap in rows.clone() {
                let first = (*offset as usize + tap * stride - stride - 1) * PIXEL_BYTES;
                let pixels: &[u8; ROW] =
                    bytes[first..].first_chunk().expect("the pixels around are packed");
                let weight = down[tap][index];
                for (sum, byte) in line.iter_mut().zip(pixels) {
                    *sum += f32::from(*byte) * weight;
                }
            }
            let pixels = line.as_chunks::<PIXEL_BYTES>().0;
            *out = match shape {
                Shape::Column4 => pixels[1],
                Shape::Square2 | Shape::Square4 => std::array::from_fn(|channel| {
                    let mut sum = 0.0;
                    for (pixel, weights) in pixels.iter().zip(across.iter()) {
                        sum += pixel[channel] * weights[index];
                    }
                    sum
                }),
            };
        }
    }
}

/// Converts the sums of a row to pixels; outside, uses the fill.
pub(super) fn make_pixels(row: &mut Row, fill: [u8; PIXEL_BYTES], error: f32) {
    let fill = u32::from_le_bytes(fill);
    for Pixels { sums, inside, values, doubts, is_doubtful, .. } in &mut row.blocks {
        let mut doubtful = 0;
        for index in 0..BLOCK {
            let [mut least, mut most] = [[0; PIXEL_BYTES]; 2];
            for channel in 0..PIXEL_BYTES {
                [least[channel], most[channel]] = bounds(sums[index][channel], error);
            }
            let [least, most] = [least, most].map(u32::from_le_bytes);
            values[index] = least & inside[index] | fill & !inside[index];
            doubts[index] = (least ^ most) & inside[index];
            doubtful |= doubts[index];
        }
        *is_doubtful = doubtful != 0;
    }
}

/// Separates the channels of pixels.
pub(super) fn separate(pixels: &[u32; BLOCK], planes: [&mut [u8; BLOCK]; 3]) {
    for (plane, shift) in planes.into_iter().zip([0, 8, 16]) {
        for (byte, pixel) in plane.iter_mut().zip(pixels) {
            *byte = (pixel >> shift) as u8;
        }
    }
}
