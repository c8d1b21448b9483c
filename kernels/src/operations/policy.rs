//! The operations of torchvision's policies, and the execution of `rand_augment` and
//! `trivial_augment_wide`.

use super::{PixelOperation, random_rotation};
use crate::Error;
use crate::colour::Change;
use crate::pixels::Pixels;
use crate::warp::{Map, Warp, packed_bytes};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{
    Fill, RandAugment, RandomRotation, TrivialAugmentWide, WarpInterpolation,
};

/// An operation, by torchvision's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Identity,
    ShearX,
    ShearY,
    TranslateX,
    TranslateY,
    Rotate,
    Brightness,
    Color,
    Contrast,
    Sharpness,
    Posterize,
    Solarize,
    AutoContrast,
    Equalize,
    Invert,
}

/// The operations of `rand_augment` and `trivial_augment_wide`, in the order of their numbers.
const STEPS: [Step; 14] = [
    Step::Identity,
    Step::ShearX,
    Step::ShearY,
    Step::TranslateX,
    Step::TranslateY,
    Step::Rotate,
    Step::Brightness,
    Step::Color,
    Step::Contrast,
    Step::Sharpness,
    Step::Posterize,
    Step::Solarize,
    Step::AutoContrast,
    Step::Equalize,
];

/// The ranges of magnitudes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    /// The ranges of AutoAugment and RandAugment.
    Standard,
    /// The ranges of TrivialAugment.
    Wide,
    /// The ranges of AugMix.
    Mix,
}

/// How warps compute pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub(super) interpolation: WarpInterpolation,
    pub(super) fill: Fill,
}

/// Draws whether a magnitude is negative.
pub(super) fn is_negative(draws: &mut Draws) -> bool {
    draws.chance(0.5)
}

/// `torch.linspace` in float32.
fn spaced(start: f64, end: f64, index: u32, count: u32) -> f64 {
    let (start, end) = (start as f32, end as f32);
    let step = (end - start) / (count - 1) as f32;
    let value = if index < count / 2 {
        start + step * index as f32
    } else {
        end - step * (count - 1 - index) as f32
    };
    f64::from(value)
}

impl Step {
    /// Whether it has magnitudes.
    pub(super) fn has_magnitude(self) -> bool {
        match self {
            Self::Identity | Self::AutoContrast | Self::Equalize | Self::Invert => false,
            Self::ShearX
            | Self::ShearY
            | Self::TranslateX
            | Self::TranslateY
            | Self::Rotate
            | Self::Brightness
            | Self::Color
            | Self::Contrast
            | Self::Sharpness
            | Self::Posterize
            | Self::Solarize => true,
        }
    }

    /// Whether its magnitudes are signed.
    pub(super) fn is_signed(self) -> bool {
        match self {
            Self::ShearX
            | Self::ShearY
            | Self::TranslateX
            | Self::TranslateY
            | Self::Rotate
            | Self::Brightness
            | Self::Color
            | Self::Contrast
            | Self::Sharpness => true,
            Self::Identity
            | Self::Posterize
            | Self::Solarize
            | Self::AutoContrast
            | Self::Equalize
            | Self::Invert => false,
        }
    }

    /// The magnitude at an index of `count`, without its sign; 0 if there is none.
    pub(super) fn magnitude(
        self,
        space: Space,
        index: u32,
        count: u32,
        (width, height): (u32, u32),
    ) -> f64 {
        let is_wide = space == Space::Wide;
        let up_to = |end: f64| spaced(0.0, end, index, count);
        let share = |side: u32| match space {
            Space::Standard => 150.0 / 331.0 * f64::from(side),
            Space::Wide => 32.0,
            Space::Mix => f64::from(side) / 3.0,
        };
        match self {
            Self::ShearX | Self::ShearY => up_to(if is_wide { 0.99 } else { 0.3 }),
            Self::TranslateX => up_to(share(width)),
            Self::TranslateY => up_to(share(height)),
            Self::Rotate => up_to(if is_wide { 135.0 } else { 30.0 }),
            Self::Brightness | Self::Color | Self::Contrast | Self::Sharpness => {
                up_to(if is_wide { 0.99 } else { 0.9 })
            }
            Self::Posterize => {
                let bits = if is_wide { 6.0 } else { 4.0 };
                let step = (f64::from(count - 1) / bits) as f32;
                let most = if space == Space::Mix { 4.0 } else { 8.0 };
                f64::from((most - index as f32 / step).round_ties_even())
            }
            Self::Solarize => spaced(1.0, 0.0, index, count),
            Self::Identity | Self::AutoContrast | Self::Equalize | Self::Invert => 0.0,
        }
    }

    /// Changes a picture by a magnitude.
    pub(super) fn apply(
        self,
        magnitude: f64,
        style: Style,
        pixels: &mut Pixels<'_>,
    ) -> Result<(), Error> {
        let shear = || libm::tan(libm::atan(magnitude).to_degrees().to_radians());
        let change = match self {
            Self::Identity => return Ok(()),
            Self::ShearX => return warp([1.0, shear(), 0.0, 0.0, 1.0, 0.0], style, pixels),
            Self::ShearY => {
                // Like in torchvision, computed from an angle.
                let angle = libm::atan(magnitude).to_degrees().to_radians();
                let slope = libm::sin(angle) / libm::cos(angle);
                return warp([1.0, 0.0, 0.0, slope, 1.0, 0.0], style, pixels);
            }
            Self::TranslateX => {
                return warp([1.0, 0.0, -magnitude.trunc(), 0.0, 1.0, 0.0], style, pixels);
            }
            Self::TranslateY => {
                return warp([1.0, 0.0, 0.0, 0.0, 1.0, -magnitude.trunc()], style, pixels);
            }
            Self::Rotate => return rotate(magnitude, style, pixels),
            Self::Brightness => Change::Brightness(1.0 + magnitude),
            Self::Color => Change::Saturation(1.0 + magnitude),
            Self::Contrast => Change::Contrast(1.0 + magnitude),
            Self::Sharpness => Change::Sharpness(1.0 + magnitude),
            Self::Posterize => Change::Posterize(magnitude as u32),
            Self::Solarize => Change::Solarize(255.0 * magnitude),
            Self::AutoContrast => Change::Autocontrast,
            Self::Equalize => Change::Equalize,
            Self::Invert => Change::Invert,
        };
        change.apply(pixels)
    }
}

/// Moves every pixel by an affine map.
pub(super) fn warp(map: [f64; 6], style: Style, pixels: &mut Pixels<'_>) -> Result<(), Error> {
    let Style { interpolation, fill } = style;
    let map = Map::Affine(map);
    Warp { size: pixels.size(), map, interpolation, fill: fill.rgba() }.apply(pixels)
}

/// Pillow's `Image.rotate` by an angle in degrees.
pub(super) fn rotate(degrees: f64, style: Style, pixels: &mut Pixels<'_>) -> Result<(), Error> {
    let Style { interpolation, fill } = style;
    let rotation = RandomRotation {
        degrees: (degrees, degrees),
        interpolation,
        expand: false,
        center: None,
        fill,
    };
    // Python's remainder has the sign of the divisor.
    let angle = degrees % 360.0;
    let angle = if angle < 0.0 { angle + 360.0 } else { angle };
    match random_rotation::warp(&rotation, angle, pixels.size()) {
        Some(warp) => warp.apply(pixels),
        None => Ok(()),
    }
}

impl PixelOperation for RandAugment {
    fn is_applied(&self, _draws: &mut Draws) -> bool {
        self.num_ops > 0
    }

    fn needs_copy(&self) -> bool {
        true
    }

    fn buffer_bytes(&self, size: (u32, u32)) -> u64 {
        packed_bytes(size)
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        let style = Style { interpolation: self.interpolation, fill: self.fill };
        for _ in 0..self.num_ops {
            let step = STEPS[draws.up_to(13) as usize];
            let (index, count) = (self.magnitude, self.num_magnitude_bins);
            let magnitude = step.magnitude(Space::Standard, index, count, pixels.size());
            let is_negative = step.is_signed() && is_negative(draws);
            step.apply(if is_negative { -magnitude } else { magnitude }, style, pixels)?;
        }
        Ok(())
    }
}

impl PixelOperation for TrivialAugmentWide {
    fn is_applied(&self, _draws: &mut Draws) -> bool {
        true
    }

    fn needs_copy(&self) -> bool {
        true
    }

    fn buffer_bytes(&self, size: (u32, u32)) -> u64 {
        packed_bytes(size)
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        let style = Style { interpolation: self.interpolation, fill: self.fill };
        let count = self.num_magnitude_bins;
        let step = STEPS[draws.up_to(13) as usize];
        let index = if step.has_magnitude() { draws.up_to(count - 1) } else { 0 };
        let magnitude = step.magnitude(Space::Wide, index, count, pixels.size());
        let is_negative = step.is_signed() && is_negative(draws);
        step.apply(if is_negative { -magnitude } else { magnitude }, style, pixels)
    }
}
