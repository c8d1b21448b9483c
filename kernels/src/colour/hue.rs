//! The hue of a picture, through Pillow's mode HSV.

use crate::Error;
use crate::pixels::Pixels;

/// Adds to the hue of every pixel, as 8 bits of Pillow's mode HSV.
pub(super) fn turn_hue(factor: f64, pixels: &mut Pixels<'_>) -> Result<(), Error> {
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
