//! Changes the hue of a picture, through Pillow's mode HSV.
//!
//! Pillow computes in float32 and float64. The cheaper arithmetic here (float32 for the hue,
//! integers for the rest) gives the same results, which the tests compare with Pillow's for every
//! input. All cases are computed for every pixel and unneeded results discarded, so that the loop
//! has no branches and is vectorised.

use crate::vector::{Change, truncated};

/// Rotates the hue of a pixel: adds to it, as 8 bits of Pillow's mode HSV.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HueRotation {
    shift: u8,
}

impl HueRotation {
    /// Creates the change for a fraction of the circle.
    pub(super) fn by(factor: f64) -> Self {
        // Rounded towards zero, then modulo 256.
        Self { shift: (factor * 255.0) as i32 as u8 }
    }

    /// The number that is added.
    pub(super) fn shift(self) -> u8 {
        self.shift
    }
}

impl Change for HueRotation {
    #[inline(always)]
    fn pixel(&self, colour: [u8; 3]) -> [u8; 3] {
        let [hue, saturation, value] = to_hsv(colour);
        to_rgb([hue.wrapping_add(self.shift), saturation, value])
    }
}

/// Pillow's `convert("HSV")`.
#[inline(always)]
fn to_hsv([red, green, blue]: [u8; 3]) -> [u8; 3] {
    let (most, least) = (red.max(green).max(blue), red.min(green).min(blue));
    let range = most - least;
    // The hue is the middle of the sector plus the share of one channel, minus that of the other;
    // one of the two shares is 0, that of the larger channel.
    let (middle, before, after) = if red == most {
        (0.0, green, blue)
    } else if green == most {
        (2.0, blue, red)
    } else {
        (4.0, red, green)
    };
    // For grey, the shares are 0 / 1.
    let divisor = f32::from(range.max(1));
    let share = f32::from(most - before.max(after)) / divisor;
    let hue = if before > after { middle + 1.0 - share } else { middle - 1.0 + share };
    // From -1 to 5; adding a full turn makes it positive.
    let turns = hue / 6.0;
    let turns = if turns < 0.0 { turns + 1.0 } else { turns };
    let is_grey = range == 0;
    let hue = truncated(turns * 255.0);
    let saturation = truncated(255.0 * f32::from(range) / f32::from(most.max(1)));
    [if is_grey { 0 } else { hue }, saturation, most]
}

/// Twice the number of hues in a sector, 42.5, as an integer.
const SECTOR: i32 = 85;

/// Twice the number of hues in a sector, times the number of saturations.
const WHOLE: i32 = SECTOR * 255;

/// Pillow's conversion from HSV to RGB.
#[inline(always)]
fn to_rgb([hue, saturation, value]: [u8; 3]) -> [u8; 3] {
    let position = 2 * i32::from(hue);
    // Divided by 85.
    let sector = (position * 772) >> 16;
    let inside = position - SECTOR * sector;
    let (full, taken) = (i32::from(value), i32::from(saturation));
    // value * (1 - saturation / 255), rounded to nearest; a half does not occur.
    let low = full * (255 - taken) + 128;
    let low = ((low + (low >> 8)) >> 8) as u8;
    // In alternate sectors a channel falls from the value to `low`, or rises.
    let is_falling = sector & 1 == 1;
    let part = if is_falling { inside } else { SECTOR - inside };
    // The rounded product with 1 / 21675 in float32 is accurate enough for every number.
    let between = (full * (WHOLE - taken * part)) as f32 * (1.0 / WHOLE as f32);
    let between = truncated(between + 0.5);
    // The hue 255 is in sector 6, which equals sector 0.
    let sector = if sector == 6 { 0 } else { sector };
    // Whether the sector is in a range; both comparisons are always evaluated.
    let is_in = |first: i32, last: i32| (sector >= first) & (sector <= last);
    let red = if (sector == 1) | (sector == 4) { between } else { low };
    let red = if (sector == 0) | (sector == 5) { value } else { red };
    let green = if (sector == 0) | (sector == 3) { between } else { low };
    let green = if is_in(1, 2) { value } else { green };
    let blue = if (sector == 2) | (sector == 5) { between } else { low };
    let blue = if is_in(3, 4) { value } else { blue };
    [red, green, blue]
}

#[cfg(test)]
mod tests {
    use super::{to_hsv, to_rgb};

    /// `convert("HSV")` of Pillow's `Convert.c`.
    fn pillow_to_hsv([red, green, blue]: [u8; 3]) -> [u8; 3] {
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
        let hue = ((f64::from(hue) / 6.0 + 1.0) % 1.0) as f32;
        [(f64::from(hue) * 255.0) as u8, (f64::from(saturation) * 255.0) as u8, most]
    }

    /// `convert("RGB")` of Pillow's `Convert.c`.
    fn pillow_to_rgb([hue, saturation, value]: [u8; 3]) -> [u8; 3] {
        if saturation == 0 {
            return [value; 3];
        }
        let position = f64::from(f32::from(hue) * 6.0) / 255.0;
        let sector = position.floor();
        let inside = (position - sector) as f32;
        let saturation = (f64::from(saturation) / 255.0) as f32;
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

    fn each_triple(mut check: impl FnMut([u8; 3])) {
        for first in 0..=255 {
            for second in 0..=255 {
                (0..=255).for_each(|third| check([first, second, third]));
            }
        }
    }

    #[test]
    fn every_colour_becomes_what_pillow_makes_of_it() {
        each_triple(|rgb| assert_eq!(to_hsv(rgb), pillow_to_hsv(rgb), "{rgb:?}"));
    }

    #[test]
    fn every_hue_saturation_and_value_become_what_pillow_makes_of_them() {
        each_triple(|hsv| assert_eq!(to_rgb(hsv), pillow_to_rgb(hsv), "{hsv:?}"));
    }
}
