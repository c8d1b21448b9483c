//! `random_gamma`: a random power of every value, in all channels and in each, with contrast.

use super::Data;
use crate::recipe::declaration::{
    Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
    RandomParameter, numbers,
};
use crate::recipe::value::{Value, Values};

/// The gamma correction of crumpets' `add_gamma` on uint8, with the random parameters of its
/// `MixtureRNG`, in this order:
///
/// 1. `uniform() < p` and, only if so, the brightness: `uniform_in(brightness.0, brightness.1)`
/// 2. for `color`: `uniform() < p` and, only if so, three numbers: `uniform_in(color.0, color.1)`
/// 3. for `contrast`: `uniform() < p` and, only if so, c: `uniform_in(contrast.0, contrast.1)`
///
/// A number n, clipped to -0.999..=0.999, gives a gamma: with g = n + 1 it is 2 - g if g > 1, else
/// 1 / g. What is not drawn has a gamma of 1, and c = 0. Every value x of a channel becomes the
/// nearest whole number, halves to even, of 255 * pow(t, gamma of the brightness * gamma of the
/// channel), where t is the value from 0 to 1 that [`super::SigmoidContrast`] rounds, divided by
/// 255; in float64, with `pow` as in musl's libm. A picture of one channel has the gamma of the
/// brightness alone. Crumpets computes in float32, so that its values may differ by 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomGamma {
    /// Bounds of the brightness of all channels.
    pub brightness: (f64, f64),
    /// Bounds of the brightness of each channel; `None`: none is drawn.
    pub color: Option<(f64, f64)>,
    /// Bounds of the contrast; `None`: none is drawn.
    pub contrast: Option<(f64, f64)>,
    /// Probability of each of them.
    pub p: f64,
}

/// From -1 to 1.
pub(super) const SHARE: Bounds = Bounds { least: -1.0, is_least_excluded: false, most: Some(1.0) };

impl RandomGamma {
    /// The gamma of a brightness: above 1 darkens.
    pub fn gamma(brightness: f64) -> f64 {
        let gamma = brightness.clamp(-0.999, 0.999) + 1.0;
        if gamma > 1.0 { 2.0 - gamma } else { 1.0 / gamma }
    }
}

impl Data for RandomGamma {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_gamma",
        about: "raises values to random powers, with random contrast, each with probability `p`",
        phase: Phase::Pixels,
        targets: OnTargets::Leaves,
        takes: &[InputType::IMAGE],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[
            RandomParameter {
                name: "brightness_number",
                distribution: "with probability `p`, uniform in `brightness`",
            },
            RandomParameter {
                name: "color_numbers",
                distribution: "with probability `p`, one for each channel, uniform in `color`, \
                               where that is set",
            },
            RandomParameter {
                name: "contrast_share",
                distribution: "with probability `p`, uniform in `contrast`, where that is set",
            },
        ],
        keys: &[
            Key::optional(
                "brightness",
                KeyType::Interval { bounds: SHARE, middle: None },
                numbers(&[-0.5, 0.5]),
                "brightness of all channels; b: a gamma of 1 - b if b > 0, else 1 / (1 + b)",
            ),
            Key::absent(
                "color",
                KeyType::Interval { bounds: SHARE, middle: None },
                "brightness of each channel, as in `brightness`; none: the same for all",
            ),
            Key::absent(
                "contrast",
                KeyType::Interval { bounds: SHARE, middle: None },
                "contrast, as of `random_sigmoid_contrast`; none: it stays",
            ),
            Key::probability(0.5),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            brightness: values.interval("brightness"),
            color: values.optional_pair("color"),
            contrast: values.optional_pair("contrast"),
            p: values.number("p"),
        }
    }

    fn values(&self) -> Vec<Value> {
        vec![self.brightness.into(), self.color.into(), self.contrast.into(), Value::Number(self.p)]
    }
}
