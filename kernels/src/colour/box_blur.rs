//! Pillow's Gaussian blur: three blurs by a box along the rows, then three along the columns.

use crate::Error;
use crate::pixels::Pixels;

/// Blurs in each direction.
const PASSES: usize = 3;

/// A box whose two outer values count in part.
#[derive(Debug, Clone, Copy)]
struct Box {
    /// Values on each side that count in full.
    radius: usize,
    /// Their weight, and that of the two outer values, in 1 / 2^24.
    weights: [u32; 2],
}

impl Box {
    /// The box for a standard deviation, as Pillow computes it: in float32, but for the root.
    fn of(deviation: f32) -> Self {
        let square = deviation * deviation / PASSES as f32;
        let length = (12.0 * f64::from(square) + 1.0).sqrt() as f32;
        let whole = ((f64::from(length) - 1.0) / 2.0).floor() as f32;
        let mut part = (2.0 * whole + 1.0) * (whole * (whole + 1.0) - 3.0 * square);
        part /= 6.0 * (square - (whole + 1.0) * (whole + 1.0));
        let radius = whole + part;
        let weight = ((1 << 24) as f32 / (radius * 2.0 + 1.0)) as u32;
        let whole = radius as u32;
        let outer = ((1 << 24) - (whole * 2 + 1) * weight) / 2;
        Self { radius: whole as usize, weights: [weight, outer] }
    }

    /// A value, from the sum of those that count in full and the two outer ones.
    fn value(self, sum: u32, outer: [u8; 2]) -> u8 {
        let [weight, part] = self.weights;
        let outer = u32::from(outer[0]) + u32::from(outer[1]);
        // All weights together are at most 2^24.
        ((sum * weight + outer * part + (1 << 23)) >> 24) as u8
    }
}

/// Blurs a picture with a radius, Pillow's name for the standard deviation.
pub(super) fn blur(radius: f64, pixels: &mut Pixels<'_>) -> Result<(), Error> {
    let radius = radius as f32;
    if radius == 0.0 {
        return Ok(());
    }
    let kernel = Box::of(radius);
    let mut line = Vec::new();
    pixels.each_row(|planes| {
        for plane in planes {
            for _ in 0..PASSES {
                blur_row(kernel, plane, &mut line);
            }
        }
    })?;
    let size = pixels.size();
    let (width, height) = (size.0 as usize, size.1 as usize);
    let mut sums = vec![[0u32; 3]; width];
    for _ in 0..PASSES {
        let radius = kernel.radius;
        pixels.replace(size, |picture, y, planes| {
            for (plane, out) in planes.into_iter().enumerate() {
                let row = |y: usize| picture.row(plane, y.min(height - 1));
                if y == 0 {
                    // Above the first row, which counts for those above it.
                    for (x, sum) in sums.iter_mut().enumerate() {
                        let below = (0..=radius).map(|y| u32::from(row(y)[x])).sum::<u32>();
                        sum[plane] = radius as u32 * u32::from(row(0)[x]) + below;
                    }
                } else {
                    let (leaving, entering) = (row(y.saturating_sub(radius + 1)), row(y + radius));
                    for ((sum, old), new) in sums.iter_mut().zip(leaving).zip(entering) {
                        sum[plane] = sum[plane] + u32::from(*new) - u32::from(*old);
                    }
                }
                let above = row(y.saturating_sub(radius + 1));
                let below = row(y + radius + 1);
                let outer = above.iter().zip(below);
                for ((out, sum), (above, below)) in out.iter_mut().zip(&sums).zip(outer) {
                    *out = kernel.value(sum[plane], [*above, *below]);
                }
            }
        })?;
    }
    Ok(())
}

/// Blurs a row in place; `line` is memory for a copy.
fn blur_row(kernel: Box, row: &mut [u8], line: &mut Vec<u8>) {
    line.clear();
    line.extend_from_slice(row);
    let (radius, last) = (kernel.radius, line.len() - 1);
    let at = |x: usize| line[x.min(last)];
    let before: u32 = (0..=radius).map(|x| u32::from(at(x))).sum();
    let mut sum = radius as u32 * u32::from(line[0]) + before;
    for (x, out) in row.iter_mut().enumerate() {
        let outer = at(x.saturating_sub(radius + 1));
        if x > 0 {
            sum = sum + u32::from(at(x + radius)) - u32::from(outer);
        }
        *out = kernel.value(sum, [outer, at(x + radius + 1)]);
    }
}
