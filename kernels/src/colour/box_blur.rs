//! Pillow's Gaussian blur: three box blurs along the rows, then three along the columns.

use crate::Error;
use crate::pixels::Pixels;
use crate::vector::{BLOCK, Kernel, run};

/// Number of box blurs in each direction.
const PASSES: usize = 3;

/// A box filter whose two outermost values have a smaller weight.
#[derive(Debug, Clone, Copy)]
struct BoxFilter {
    /// Number of values on each side with full weight.
    radius: usize,
    /// Full weight, and the weight of the two outermost values, in units of 1 / 2^24.
    weights: [u32; 2],
}

impl BoxFilter {
    /// The box for a standard deviation, as Pillow computes it: in float32, except for the square
    /// root.
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

    /// The result from the sum of the values with full weight and the two outermost values.
    #[inline(always)]
    fn value(self, sum: u32, outer: [u8; 2]) -> u8 {
        let [weight, part] = self.weights;
        let outer = u32::from(outer[0]) + u32::from(outer[1]);
        // The weights add up to at most 2^24.
        ((sum * weight + outer * part + (1 << 23)) >> 24) as u8
    }
}

/// Blurs a picture with a radius, Pillow's name for the standard deviation.
pub(super) fn blur(radius: f64, pixels: &mut Pixels<'_>) -> Result<(), Error> {
    let radius = radius as f32;
    if radius == 0.0 {
        return Ok(());
    }
    let kernel = BoxFilter::of(radius);
    blur_rows(kernel, pixels)?;
    for _ in 0..PASSES {
        blur_columns(kernel, pixels)?;
    }
    Ok(())
}

/// The radius and the weights of the box for a radius in Pillow's sense; `None` if the blur has no
/// effect.
pub(super) fn box_of(radius: f64) -> Option<(u32, [u32; 2])> {
    let radius = radius as f32;
    let BoxFilter { radius, weights } = (radius != 0.0).then(|| BoxFilter::of(radius))?;
    Some((radius as u32, weights))
}

/// The values of one column in several rows.
type Side = [u8; BLOCK];

/// All blurs along the rows, for several rows at once.
fn blur_rows(kernel: BoxFilter, pixels: &mut Pixels<'_>) -> Result<(), Error> {
    let (cpu, size) = (pixels.cpu(), pixels.size());
    let (width, height) = (size.0 as usize, size.1 as usize);
    let mut columns = [0; 3].map(|_: u8| vec![[0; BLOCK]; width]);
    let mut next = vec![[0; BLOCK]; width];
    pixels.replace(size, |picture, y, planes| {
        let row = y % BLOCK;
        if row == 0 {
            for (plane, columns) in columns.iter_mut().enumerate() {
                for index in 0..BLOCK.min(height - y) {
                    let values = picture.row(plane, y + index);
                    for (side, value) in columns.iter_mut().zip(values) {
                        side[index] = *value;
                    }
                }
                for _ in 0..PASSES {
                    run(cpu, HorizontalBlur { kernel, columns, out: &mut next });
                    std::mem::swap(columns, &mut next);
                }
            }
        }
        for (out, columns) in planes.into_iter().zip(&columns) {
            for (out, side) in out.iter_mut().zip(columns) {
                *out = side[row];
            }
        }
    })
}

/// One blur along the rows, for several rows at once.
struct HorizontalBlur<'a> {
    kernel: BoxFilter,
    columns: &'a [Side],
    out: &'a mut [Side],
}

impl Kernel for HorizontalBlur<'_> {
    type Output = ();

    #[inline(always)]
    fn compute(self) {
        let Self { kernel, columns, out } = self;
        let (radius, last) = (kernel.radius, columns.len() - 1);
        let mut sums = [0u32; BLOCK];
        for index in 0..BLOCK {
            // The first column is repeated before the border.
            sums[index] = radius as u32 * u32::from(columns[0][index]);
        }
        for x in 0..=radius {
            for index in 0..BLOCK {
                sums[index] += u32::from(columns[x.min(last)][index]);
            }
        }
        for (x, out) in out.iter_mut().enumerate() {
            let before = columns[x.saturating_sub(radius + 1)];
            if x > 0 {
                let entering = columns[(x + radius).min(last)];
                for index in 0..BLOCK {
                    sums[index] =
                        sums[index] + u32::from(entering[index]) - u32::from(before[index]);
                }
            }
            let behind = columns[(x + radius + 1).min(last)];
            for index in 0..BLOCK {
                out[index] = kernel.value(sums[index], [before[index], behind[index]]);
            }
        }
    }
}

/// One blur along the columns.
fn blur_columns(kernel: BoxFilter, pixels: &mut Pixels<'_>) -> Result<(), Error> {
    let (cpu, size) = (pixels.cpu(), pixels.size());
    let (width, height) = (size.0 as usize, size.1 as usize);
    let mut sums = [0; 3].map(|_: u8| vec![0; width]);
    let radius = kernel.radius;
    pixels.replace(size, |picture, y, planes| {
        for (plane, (out, sums)) in planes.into_iter().zip(&mut sums).enumerate() {
            let row = |y: usize| picture.row(plane, y.min(height - 1));
            let above = row(y.saturating_sub(radius + 1));
            if y == 0 {
                // The first row is repeated above the border.
                for (x, sum) in sums.iter_mut().enumerate() {
                    let below = (0..=radius).map(|y| u32::from(row(y)[x])).sum::<u32>();
                    *sum = radius as u32 * u32::from(row(0)[x]) + below;
                }
            } else {
                run(cpu, SlidingSum { sums, leaving: above, entering: row(y + radius) });
            }
            run(cpu, VerticalBlur { kernel, sums, outer: [above, row(y + radius + 1)], out });
        }
    })
}

/// Running sums from which one row is subtracted and to which another is added, all of equal
/// length.
struct SlidingSum<'a> {
    sums: &'a mut [u32],
    leaving: &'a [u8],
    entering: &'a [u8],
}

impl Kernel for SlidingSum<'_> {
    type Output = ();

    #[inline(always)]
    fn compute(self) {
        for ((sum, old), new) in self.sums.iter_mut().zip(self.leaving).zip(self.entering) {
            *sum = *sum + u32::from(*new) - u32::from(*old);
        }
    }
}

/// Computes a row of results from running sums and the two outermost rows, all of equal length.
struct VerticalBlur<'a> {
    kernel: BoxFilter,
    sums: &'a [u32],
    outer: [&'a [u8]; 2],
    out: &'a mut [u8],
}

impl Kernel for VerticalBlur<'_> {
    type Output = ();

    #[inline(always)]
    fn compute(self) {
        let Self { kernel, sums, outer: [above, below], out } = self;
        for (((out, sum), above), below) in out.iter_mut().zip(sums).zip(above).zip(below) {
            *out = kernel.value(*sum, [*above, *below]);
        }
    }
}
