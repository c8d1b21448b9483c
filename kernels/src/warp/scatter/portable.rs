//! The sums of pixels, each weighed by its row and by its column.

use super::sums::{Row, Shape};
use crate::warp::packed::{PIXEL_BYTES, Packed};

/// Bytes of the pixels of a row around a position.
const ROW: usize = 4 * PIXEL_BYTES;

/// Computes the sums of a row.
pub(super) fn sums(packed: &Packed, shape: Shape, row: &mut Row) {
    let (bytes, stride) = (packed.bytes(), packed.stride());
    let Row { offsets, across, down, sums, .. } = row;
    let rows = match shape {
        Shape::Square2 => 1..3,
        Shape::Square4 | Shape::Column4 => 0..4,
    };
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
