//! Brightness, contrast, saturation and sharpness: Pillow's `ImageEnhance`, which blends a picture
//! with a degenerate one that lacks the property.

use super::between::blend;
use super::luma::{SumLuma, luma};
use super::smooth::smooth;
use crate::Error;
use crate::pixels::Pixels;
use crate::vector::{Change, Kernel, run};

/// A table that blends every value with one value, which is the result at a factor of 0.
pub(super) fn table(value: u8, factor: f64) -> [u8; 256] {
    let factor = factor as f32;
    std::array::from_fn(|to| blend(value, to as u8, factor))
}

/// The mean luma of the pixels, rounded to the nearest integer, halves up.
pub(super) fn mean_luma(pixels: &mut Pixels<'_>) -> Result<u8, Error> {
    let (cpu, mut sum) = (pixels.cpu(), 0);
    pixels.each_row(|[red, green, blue]| sum += run(cpu, SumLuma([red, green, blue])))?;
    Ok((sum as f64 / pixels.count() as f64 + 0.5) as u8)
}

/// Blends a pixel with its luma, which is the result at a factor of 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Saturate {
    factor: f32,
}

impl Saturate {
    /// Creates the change for a factor.
    pub(super) fn by(factor: f64) -> Self {
        Self { factor: factor as f32 }
    }

    /// The factor.
    pub(super) fn factor(self) -> f32 {
        self.factor
    }
}

impl Change for Saturate {
    #[inline(always)]
    fn pixel(&self, [red, green, blue]: [u8; 3]) -> [u8; 3] {
        let (grey, factor) = (luma(red, green, blue), self.factor);
        [blend(grey, red, factor), blend(grey, green, factor), blend(grey, blue, factor)]
    }
}

/// Blends every value with that of the smoothed picture, which is the result at a factor of 0.
pub(super) fn sharpen(factor: f64, pixels: &mut Pixels<'_>) -> Result<(), Error> {
    let (cpu, factor) = (pixels.cpu(), factor as f32);
    let size = pixels.size();
    pixels.replace(size, |picture, y, planes| {
        for (plane, out) in planes.into_iter().enumerate() {
            let row = |y| picture.row(plane, y);
            // A border row is used as its own missing neighbour.
            let below = (y + 1).min(size.1 as usize - 1);
            let rows = [row(y.saturating_sub(1)), row(y), row(below)];
            run(cpu, Sharpen { factor, rows, out });
        }
    })
}

/// Blends every value of a row with the smoothed value, computed from the row and its neighbours.
struct Sharpen<'a> {
    factor: f32,
    rows: [&'a [u8]; 3],
    out: &'a mut [u8],
}

impl Kernel for Sharpen<'_> {
    type Output = ();

    #[inline(always)]
    fn compute(self) {
        let Self { factor, rows, out } = self;
        smooth(rows, factor, out);
    }
}
