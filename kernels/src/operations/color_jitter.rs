//! Executes `color_jitter`, with the arithmetic of Pillow.

use super::PixelOperation;
use super::luma::luma;
use crate::Error;
use crate::pixels::Pixels;
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::ColorJitter;

/// The properties in the order in which factors are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Property {
    Brightness,
    Contrast,
    Saturation,
    Hue,
}

impl Property {
    const ALL: [Self; 4] = [Self::Brightness, Self::Contrast, Self::Saturation, Self::Hue];

    /// Changes the property by a factor.
    fn change(self, factor: f64, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        match self {
            Self::Brightness => blend_with(0, factor, pixels),
            Self::Contrast => blend_with(mean_luma(pixels)?, factor, pixels),
            Self::Saturation => saturate(factor, pixels),
            Self::Hue => turn_hue(factor, pixels),
        }
    }
}

/// The properties in the order of application, each with its factor if it is changed.
fn drawn(jitter: &ColorJitter, draws: &mut Draws) -> [(Property, Option<f64>); 4] {
    let mut order = [0, 1, 2, 3];
    for last in (1..4u32).rev() {
        order.swap(last as usize, draws.up_to(last) as usize);
    }
    let factors =
        jitter.factors().map(|bounds| bounds.map(|(low, high)| draws.uniform_in(low, high)));
    order.map(|index| (Property::ALL[index], factors[index]))
}

impl PixelOperation for ColorJitter {
    fn is_applied(&self, _draws: &mut Draws) -> bool {
        self.factors().iter().any(Option::is_some)
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        for (property, factor) in drawn(self, draws) {
            if let Some(factor) = factor {
                property.change(factor, pixels)?;
            }
        }
        Ok(())
    }
}

/// `Image.blend` of two values: `from` at 0, `to` at 1, clipped beyond.
fn blend(from: u8, to: u8, factor: f32) -> u8 {
    let difference = f32::from(to) - f32::from(from);
    // The cast truncates and stops at 0 and 255.
    (f32::from(from) + factor * difference) as u8
}

/// Blends every value with one value, at a factor of 0.
fn blend_with(value: u8, factor: f64, pixels: &mut Pixels<'_>) -> Result<(), Error> {
    let factor = factor as f32;
    let table: [u8; 256] = std::array::from_fn(|to| blend(value, to as u8, factor));
    pixels.each_row(|row| {
        for out in row.into_iter().flatten() {
            *out = table[usize::from(*out)];
        }
    })
}

/// The mean luma of the pixels, rounded to the nearest whole number, halves up.
fn mean_luma(pixels: &mut Pixels<'_>) -> Result<u8, Error> {
    let mut sum = 0;
    pixels.each_row(|[red, green, blue]| {
        let row = red.iter().zip(green).zip(blue);
        sum += row.map(|((red, green), blue)| u64::from(luma(*red, *green, *blue))).sum::<u64>();
    })?;
    Ok((sum as f64 / pixels.count() as f64 + 0.5) as u8)
}

/// Blends every pixel with its luma, at a factor of 0.
fn saturate(factor: f64, pixels: &mut Pixels<'_>) -> Result<(), Error> {
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

/// Adds to the hue of every pixel, as 8 bits of Pillow's mode HSV.
fn turn_hue(factor: f64, pixels: &mut Pixels<'_>) -> Result<(), Error> {
    // Towards zero, then modulo 256.
    let shift = (factor * 255.0) as i32 as u8;
    pixels.each_row(|[red, green, blue]| {
        for ((red, green), blue) in red.iter_mut().zip(green).zip(blue) {
            let [hue, saturation, value] = to_hsv([*red, *green, *blue]);
            [*red, *green, *blue] = to_rgb([hue.wrapping_add(shift), saturation, value]);
        }
    })
}

/// Pillow's `convert("HSV")`: float32 where it computes in float32, float64 elsewhere.
fn to_hsv([red, green, blue]: [u8; 3]) -> [u8; 3] {
    let (most, least) = (red.max(green).max(blue), red.min(green).min(blue));
    if most == least {
        return [0, 0, most];
    }
    let range = f32::from(most - least);
    let saturation = range / f32::from(most);
    let [from_red, from_green, from_blue] =
        [red, green, blue].map(|value| f32::from(most - value) / range);
    let hue = if red == most {
        from_blue - from_green
    } else if green == most {
        (2.0 + f64::from(from_red) - f64::from(from_blue)) as f32
    } else {
        (4.0 + f64::from(from_green) - f64::from(from_red)) as f32
    };
    // The hue is from -1 to 5 here; a turn more makes it positive.
    let hue = ((f64::from(hue) / 6.0 + 1.0) % 1.0) as f32;
    [(f64::from(hue) * 255.0) as u8, (f64::from(saturation) * 255.0) as u8, most]
}

/// Pillow's conversion from HSV to RGB.
fn to_rgb([hue, saturation, value]: [u8; 3]) -> [u8; 3] {
    if saturation == 0 {
        return [value; 3];
    }
    let position = f64::from(f32::from(hue) * 6.0) / 255.0;
    let sector = position.floor();
    let inside = (position - sector) as f32;
    let saturation = (f64::from(saturation) / 255.0) as f32;
    // Halves away from zero, as C's `round`.
    let at = |share: f64| (f64::from(value) * share).round() as u8;
    let p = at(1.0 - f64::from(saturation));
    let q = at(1.0 - f64::from(saturation * inside));
    let t = at(1.0 - f64::from(saturation) * (1.0 - f64::from(inside)));
    match sector as u8 % 6 {
        0 => [value, t, p],
        1 => [q, value, p],
        2 => [p, value, t],
        3 => [p, q, value],
        4 => [t, p, value],
        _ => [value, p, q],
    }
}
