//! `pillow_gaussian_blur`: Pillow's Gaussian blur, approximated by box blurs.

use super::Data;
use crate::recipe::declaration::{
    APPLIED, Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
    RandomParameter, numbers,
};
use crate::recipe::value::{Value, Values};

/// Pillow's `ImageFilter.GaussianBlur` when `uniform() < p`, with a radius that is drawn from
/// `uniform_in(radius.0, radius.1)`; both uniforms are drawn in any case.
///
/// It is three blurs by a box along each row, then three along each column, each rounded to 8 bits.
/// In float32, with s = radius * radius / 3 and l = floor((sqrt(12 * s + 1) - 1) / 2), the root in
/// float64, the radius of the box is R:
///
/// R = l + (2 * l + 1) * (l * (l + 1) - 3 * s) / (6 * (s - (l + 1) * (l + 1)))
///
/// With r = floor(R), w = floor(2^24 / (2 * R + 1)) and f = (2^24 - (2 * r + 1) * w) / 2, a value
/// becomes this, where N is the sum of the values up to r away and F that of the two r + 1 away:
///
/// (w * N + f * F + 2^23) >> 24
///
/// Beyond the border, values repeat. A radius of 0 changes nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PillowGaussianBlur {
    /// Bounds of the radius in pixels.
    pub radius: (f64, f64),
    /// Probability.
    pub p: f64,
}

impl Data for PillowGaussianBlur {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "pillow_gaussian_blur",
        about: "blurs as Pillow does, with probability `p`",
        phase: Phase::Pixels,
        targets: OnTargets::Leaves,
        takes: &[InputType::IMAGE, InputType::RGBA],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[APPLIED, RandomParameter { name: "radius", distribution: "uniform in `radius`" }],
        keys: &[
            Key::optional(
                "radius",
                KeyType::Interval {
                    bounds: Bounds { least: 0.0, is_least_excluded: false, most: Some(1000.0) },
                    middle: None,
                },
                numbers(&[0.1, 2.0]),
                "the standard deviation in pixels",
            ),
            Key::probability(1.0),
        ],
    };

    fn read(values: &Values) -> Self {
        Self { radius: values.interval("radius"), p: values.number("p") }
    }

    fn values(&self) -> Vec<Value> {
        vec![self.radius.into(), Value::Number(self.p)]
    }
}
