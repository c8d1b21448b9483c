//! Executes `timm_rand_augment`, with the magnitudes of timm.

use super::PixelOperation;
use super::policy::{Style, is_negative, rotate, warp};
use crate::Error;
use crate::colour::Change;
use crate::pixels::Pixels;
use crate::random::normal;
use crate::warp::packed_bytes;
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{TimmInterpolation, TimmRandAugment, WarpInterpolation};

/// An operation, by timm's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    AutoContrast,
    Equalize,
    Invert,
    Rotate,
    Posterize,
    Solarize,
    SolarizeAdd,
    Color,
    Contrast,
    Brightness,
    Sharpness,
    ShearX,
    ShearY,
    TranslateXRel,
    TranslateYRel,
}

/// The operations in the order of their numbers.
const STEPS: [Step; 15] = [
    Step::AutoContrast,
    Step::Equalize,
    Step::Invert,
    Step::Rotate,
    Step::Posterize,
    Step::Solarize,
    Step::SolarizeAdd,
    Step::Color,
    Step::Contrast,
    Step::Brightness,
    Step::Sharpness,
    Step::ShearX,
    Step::ShearY,
    Step::TranslateXRel,
    Step::TranslateYRel,
];

/// A magnitude of full effect.
const FULL: f64 = 10.0;

/// Deviations of the magnitude above this select a uniform distribution.
const UNIFORM_ABOVE: f64 = 100.0;

/// The share of a side by which a full translation moves.
const TRANSLATION: f64 = 0.45;

impl PixelOperation for TimmRandAugment {
    fn is_applied(&self, _draws: &mut Draws) -> bool {
        self.num_ops > 0 && self.p > 0.0
    }

    fn needs_copy(&self) -> bool {
        true
    }

    fn buffer_bytes(&self, size: (u32, u32)) -> u64 {
        packed_bytes(size)
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        for _ in 0..self.num_ops {
            let step = STEPS[draws.up_to(14) as usize];
            if draws.chance(self.p) {
                apply(self, step, magnitude(self, draws), draws, pixels)?;
            }
        }
        Ok(())
    }
}

/// Draws the magnitude of an applied operation.
fn magnitude(augment: &TimmRandAugment, draws: &mut Draws) -> f64 {
    let TimmRandAugment { magnitude, magnitude_std, magnitude_max, .. } = *augment;
    let drawn = if magnitude_std > UNIFORM_ABOVE {
        draws.uniform_in(0.0, magnitude)
    } else if magnitude_std > 0.0 {
        magnitude + magnitude_std * normal(draws.next_u32())
    } else {
        magnitude
    };
    drawn.clamp(0.0, magnitude_max)
}

/// Changes a picture.
fn apply(
    augment: &TimmRandAugment,
    step: Step,
    magnitude: f64,
    draws: &mut Draws,
    pixels: &mut Pixels<'_>,
) -> Result<(), Error> {
    let level = magnitude / FULL;
    let signed = |value: f64, draws: &mut Draws| if is_negative(draws) { -value } else { value };
    let factor = |draws: &mut Draws| {
        if augment.increasing {
            f64::max(0.1, 1.0 + signed(level * 0.9, draws))
        } else {
            level * 1.8 + 0.1
        }
    };
    let style =
        |draws: &mut Draws| Style { interpolation: filter(augment, draws), fill: augment.fill };
    let (width, height) = pixels.size();
    let change = match step {
        Step::AutoContrast => Change::Autocontrast,
        Step::Equalize => Change::Equalize,
        Step::Invert => Change::Invert,
        Step::Rotate => {
            let degrees = signed(level * 30.0, draws);
            return rotate(degrees, style(draws), pixels);
        }
        Step::Posterize => {
            let bits = (level * 4.0) as u32;
            Change::Posterize(if augment.increasing { 4u32.saturating_sub(bits) } else { bits })
        }
        Step::Solarize => {
            let threshold = f64::min(256.0, (level * 256.0).trunc());
            Change::Solarize(if augment.increasing { 256.0 - threshold } else { threshold })
        }
        Step::SolarizeAdd => {
            Change::SolarizeAdd { addend: (level * 110.0).min(128.0) as u8, threshold: 128.0 }
        }
        Step::Color => Change::Saturation(factor(draws)),
        Step::Contrast => Change::Contrast(factor(draws)),
        Step::Brightness => Change::Brightness(factor(draws)),
        Step::Sharpness => Change::Sharpness(factor(draws)),
        Step::ShearX => {
            let slope = signed(level * 0.3, draws);
            return warp([1.0, slope, 0.0, 0.0, 1.0, 0.0], style(draws), pixels);
        }
        Step::ShearY => {
            let slope = signed(level * 0.3, draws);
            return warp([1.0, 0.0, 0.0, slope, 1.0, 0.0], style(draws), pixels);
        }
        Step::TranslateXRel => {
            let shift = signed(level * TRANSLATION, draws) * f64::from(width);
            return warp([1.0, 0.0, shift, 0.0, 1.0, 0.0], style(draws), pixels);
        }
        Step::TranslateYRel => {
            let shift = signed(level * TRANSLATION, draws) * f64::from(height);
            return warp([1.0, 0.0, 0.0, 0.0, 1.0, shift], style(draws), pixels);
        }
    };
    change.apply(pixels)
}

/// The interpolation of a warp.
fn filter(augment: &TimmRandAugment, draws: &mut Draws) -> WarpInterpolation {
    match augment.interpolation {
        TimmInterpolation::Random if draws.up_to(1) == 0 => WarpInterpolation::Bilinear,
        TimmInterpolation::Random | TimmInterpolation::Bicubic => WarpInterpolation::Bicubic,
        TimmInterpolation::Bilinear => WarpInterpolation::Bilinear,
    }
}
