//! Brightness, contrast, saturation and sharpness: Pillow's `ImageEnhance`, which blends a picture
//! with one that lacks the property.

use super::luma::luma;
use super::smooth::smooth;
use crate::Error;
use crate::pixels::Pixels;

/// `Image.blend` of two values: `from` at 0, `to` at 1, clipped beyond.
fn blend(from: u8, to: u8, factor: f32) -> u8 {
    let difference = f32::from(to) - f32::from(from);
    // The cast truncates and stops at 0 and 255.
    (f32::from(from) + factor * difference) as u8
}

/// Every value blended with one value, at a factor of 0.
pub(super) fn table(value: u8, factor: f64) -> [u8; 256] {
    let factor = factor as f32;
    std::array::from_fn(|to| blend(value, to as u8, factor))
}

/// The mean luma of the pixels, rounded to the nearest whole number, halves up.
pub(super) fn mean_luma(pixels: &mut Pixels<'_>) -> Result<u8, Error> {
    let mut sum = 0;
    pixels.each_row(|[red, green, blue]| {
        let row = red.iter().zip(green).zip(blue);
        sum += row.map(|((red, green), blue)| u64::from(luma(*red, *green, *blue))).sum::<u64>();
    })?;
    Ok((sum as f64 / pixels.count() as f64 + 0.5) as u8)
}

/// Blends every pixel with its luma, at a factor of 0.
pub(super) fn saturate(factor: f64, pixels: &mut Pixels<'_>) -> Result<(), Error> {
    let factor = factor as f32;
    pixels.each_row(|[red, green, blue]| {
        for ((red, green), blue) in red.iter_mut().zip(green).zip(blue) {
            let grey = luma(*red, *green, *blue);
            for out in [red, green, blue] {
                *out = blend(grey, *out, factor);
            }
        }
    })
}

/// Blends every value with that of the smoothed picture, at a factor of 0.
pub(super) fn sharpen(factor: f64, pixels: &mut Pixels<'_>) -> Result<(), Error> {
    let factor = factor as f32;
    let size = pixels.size();
    pixels.replace(size, |picture, y, planes| {
        for (plane, out) in planes.into_iter().enumerate() {
            let row = |y| picture.row(plane, y);
            // A row at the border is its own neighbour.
            let below = (y + 1).min(size.1 as usize - 1);
            smooth([row(y.saturating_sub(1)), row(y), row(below)], out);
            for (out, value) in out.iter_mut().zip(row(y)) {
                *out = blend(*out, *value, factor);
            }
        }
    })
}
