//! Colour spaces as in OpenCV's `cvtColor` on uint8, identical for all 2^24 colours.
//!
//! Tables are used where OpenCV uses tables, and float32 where it uses float32. A product that
//! OpenCV adds with a fused instruction is not rounded before the sum.

use crate::picture_program::{PictureChange, SpaceConversion};
use crate::recording::Recording;
use meetpoint_format::recipe::ColorSpace;

/// Values of a byte.
const VALUES: usize = 256;

/// Fraction bits of the quotients of HSV, of the factors of Y'CrCb, and of those of L*a*b*.
const QUOTIENT_BITS: u32 = 12;
const LUMA_BITS: u32 = 14;
const XYZ_BITS: u32 = 12;

/// Fraction bits of a linear value of L*a*b*, and of its root.
const LINEAR_BITS: u32 = 3;
const ROOT_BITS: u32 = XYZ_BITS + LINEAR_BITS;

/// Entries of the table of roots: linear values up to 1.5 times the largest.
const ROOTS: usize = VALUES * 3 / 2 * (1 << LINEAR_BITS);

/// X, Y and Z by red, green and blue, each divided by that of the white point D65.
const XYZ: [[i32; 3]; 3] = [[1777, 1541, 778], [871, 2929, 296], [73, 448, 3575]];

/// The conversion from RGB to a colour space.
#[derive(Debug)]
pub(crate) enum Converter {
    /// Hue from 0 to 179, saturation, value.
    Hsv {
        /// 255 and 30 divided by a byte.
        saturation: Box<[i32; VALUES]>,
        hue: Box<[i32; VALUES]>,
    },
    /// Hue from 0 to 179, lightness, saturation.
    Hls,
    /// L* times 2.55, a* and b* plus 128.
    Lab {
        /// The linear value of a byte of sRGB, and the roots of linear values.
        linear: Box<[i32; VALUES]>,
        roots: Vec<i32>,
    },
    /// Y', and Cr and Cb around 128.
    Ycrcb,
}

/// Rounds a fixed-point number to the nearest integer, halves up.
fn descaled(number: i32, bits: u32) -> i32 {
    (number + (1 << (bits - 1))) >> bits
}

fn byte(number: i32) -> u8 {
    number.clamp(0, 255) as u8
}

/// Rounds a float32 to the nearest integer, halves to even.
fn rounded(number: f32) -> u8 {
    number.round_ties_even() as u8
}

impl Converter {
    /// Creates the conversion to a colour space.
    pub(crate) fn new(space: ColorSpace) -> Self {
        let quotients = |by: f64| -> Box<[i32; VALUES]> {
            let quotient = |value: usize| match value {
                0 => 0,
                _ => (by * f64::from(1 << QUOTIENT_BITS) / value as f64).round_ties_even() as i32,
            };
            Box::new(std::array::from_fn(quotient))
        };
        match space {
            ColorSpace::Hsv => Self::Hsv { saturation: quotients(255.0), hue: quotients(30.0) },
            ColorSpace::Hls => Self::Hls,
            ColorSpace::Lab => Self::Lab {
                linear: Box::new(std::array::from_fn(linear)),
                roots: (0..ROOTS).map(root).collect(),
            },
            ColorSpace::Ycrcb => Self::Ycrcb,
        }
    }

    /// Converts a colour.
    pub(crate) fn convert(&self, rgb: [u8; 3]) -> [u8; 3] {
        match self {
            Self::Hsv { saturation, hue } => to_hsv(rgb, saturation, hue),
            Self::Hls => to_hls(rgb),
            Self::Lab { linear, roots } => to_lab(rgb, linear, roots),
            Self::Ycrcb => to_ycrcb(rgb),
        }
    }

    /// Records the conversion.
    pub(crate) fn record(&self, recording: &mut Recording<'_>) {
        let conversion = match self {
            Self::Hsv { .. } => SpaceConversion::Hsv,
            Self::Hls => SpaceConversion::Hls,
            Self::Lab { linear, roots } => {
                // The factors of X, Y and Z each add up to 1, so no sum exceeds the largest value.
                let occurring = &roots[..=linear[VALUES - 1] as usize];
                let numbers: Vec<i32> = linear.iter().chain(occurring).copied().collect();
                let pair = |pair: &[i32]| pair[0] | pair.get(1).map_or(0, |upper| upper << 16);
                SpaceConversion::Lab { words: recording.add_words(numbers.chunks(2).map(pair)) }
            }
            Self::Ycrcb => SpaceConversion::Ycrcb,
        };
        recording.push(PictureChange::Space(conversion));
    }
}

fn to_hsv(rgb: [u8; 3], saturations: &[i32; VALUES], hues: &[i32; VALUES]) -> [u8; 3] {
    let [red, green, blue] = rgb.map(i32::from);
    let value = red.max(green).max(blue);
    let range = value - red.min(green).min(blue);
    let saturation = descaled(range * saturations[value as usize], QUOTIENT_BITS);
    let hue = if value == red {
        green - blue
    } else if value == green {
        blue - red + 2 * range
    } else {
        red - green + 4 * range
    };
    let hue = descaled(hue * hues[range as usize], QUOTIENT_BITS);
    [byte(if hue < 0 { hue + 180 } else { hue }), byte(saturation), byte(value)]
}

fn to_hls(rgb: [u8; 3]) -> [u8; 3] {
    let [red, green, blue] = rgb.map(|value| f32::from(value) * ((1.0f64 / 255.0) as f32));
    let (most, least) = (red.max(green).max(blue), red.min(green).min(blue));
    let (range, sum) = (most - least, most + least);
    let lightness = sum * 0.5;
    if range <= f32::EPSILON {
        return [0, rounded(lightness * 255.0), 0];
    }
    let saturation = range / if lightness < 0.5 { sum } else { 2.0 - sum };
    let (part, turn) = if most == red {
        (green - blue, if green < blue { 360.0 } else { 0.0 })
    } else if most == green {
        (blue - red, 120.0)
    } else {
        (red - green, 240.0)
    };
    // The product is exact in float64.
    let hue = (f64::from(part) * f64::from(60.0 / range) + turn) as f32;
    [rounded(hue * 0.5), rounded(lightness * 255.0), rounded(saturation * 255.0)]
}

/// The linear value of a byte of sRGB, times 255 and 2^3.
fn linear(value: usize) -> i32 {
    let x = value as f32 / 255.0;
    let linear = if x <= 809.0 / 20000.0 {
        x / (323.0 / 25.0)
    } else {
        let shift = 11.0f32 / 200.0;
        let base = (x + shift) / (1.0 + shift);
        libm::pow(f64::from(base), f64::from(12.0f32 / 5.0)) as f32
    };
    (linear * (255 << LINEAR_BITS) as f32).round_ties_even() as i32
}

/// The cube root of a linear value, or its linear replacement near 0, times 2^15.
fn root(value: usize) -> i32 {
    let x = 1.0 / (255.0 * (1 << LINEAR_BITS) as f32) * value as f32;
    let root = if x < 216.0 / 24389.0 {
        let line = f64::from(x) * f64::from(841.0f32 / 108.0) + f64::from(16.0f32 / 116.0);
        line as f32
    } else {
        // OpenCV truncates the root.
        let exact = libm::cbrt(f64::from(x));
        let nearest = exact as f32;
        if f64::from(nearest) > exact { nearest.next_down() } else { nearest }
    };
    (root * (1 << ROOT_BITS) as f32).round_ties_even() as i32
}

fn to_lab(rgb: [u8; 3], linear: &[i32; VALUES], roots: &[i32]) -> [u8; 3] {
    const SCALE: i32 = (116 * 255 + 50) / 100;
    const SHIFT: i32 = (16 * 255 * (1 << ROOT_BITS) + 50) / 100;
    const MIDDLE: i32 = 128 << ROOT_BITS;
    let rgb = rgb.map(|value| linear[usize::from(value)]);
    let [x, y, z] = XYZ.map(|factors| {
        let sum: i32 = factors.iter().zip(rgb).map(|(factor, value)| factor * value).sum();
        roots[descaled(sum, XYZ_BITS) as usize]
    });
    let lightness = descaled(SCALE * y - SHIFT, ROOT_BITS);
    let a = descaled(500 * (x - y) + MIDDLE, ROOT_BITS);
    let b = descaled(200 * (y - z) + MIDDLE, ROOT_BITS);
    [lightness, a, b].map(byte)
}

fn to_ycrcb(rgb: [u8; 3]) -> [u8; 3] {
    let [red, green, blue] = rgb.map(i32::from);
    let luma = descaled(4899 * red + 9617 * green + 1868 * blue, LUMA_BITS);
    let chroma = |factor: i32, difference: i32| {
        descaled(factor * difference + (128 << LUMA_BITS), LUMA_BITS)
    };
    [luma, chroma(11682, red - luma), chroma(9241, blue - luma)].map(byte)
}

#[cfg(test)]
mod tests {
    use super::Converter;
    use crate::golden;
    use meetpoint_format::recipe::ColorSpace;

    /// Hashes of the converted colours whose channels are multiples of a step.
    #[test]
    fn colours_equal_those_of_opencv() {
        for (words, expected) in golden::lines(include_str!("../../tests/golden/spaces.txt")) {
            let [name, step] = words[..] else { panic!("{words:?}") };
            let converter = Converter::new(ColorSpace::from_name(name).unwrap());
            let steps = || (0..=255u8).step_by(golden::number(step));
            let colours = steps().flat_map(|red| {
                steps().flat_map(move |green| steps().map(move |blue| [red, green, blue]))
            });
            let bytes: Vec<u8> = colours.flat_map(|colour| converter.convert(colour)).collect();
            assert_eq!(golden::sha256(&bytes), expected[0], "{name}");
        }
    }
}
