//! `random_photometric_distort`: colours distorted as for the detector SSD.

use super::Data;
use crate::recipe::declaration::{
    Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
    RandomParameter, numbers,
};
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.RandomPhotometricDistort` on PIL images. The random parameters:
///
/// 1. for each of brightness, contrast, saturation and hue: `uniform() < p`, whether it changes,
///    and, only if it does, a factor `uniform_in(low, high)`;
/// 2. `uniform() < 0.5`: whether the contrast changes before saturation and hue;
/// 3. `uniform() < p`: whether the channels are permuted, and, only if they are, their order as in
///    [`super::RandomChannelPermutation`].
///
/// Brightness changes first, then contrast, saturation and hue, or saturation, hue and contrast,
/// each as in [`super::ColorJitter`], and last the order of the channels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomPhotometricDistort {
    /// Factors of the brightness.
    pub brightness: (f64, f64),
    /// Factors of the contrast.
    pub contrast: (f64, f64),
    /// Factors of the saturation.
    pub saturation: (f64, f64),
    /// Shifts of the hue as shares of the circle.
    pub hue: (f64, f64),
    /// Probability of each change.
    pub p: f64,
}

/// An interval of factors.
const fn factors(name: &'static str, default: &'static [f64], about: &'static str) -> Key {
    let bounds = Bounds { least: 0.0, is_least_excluded: false, most: None };
    Key::optional(name, KeyType::Interval { bounds, middle: None }, numbers(default), about)
}

/// An interval of shifts.
const HUE: KeyType = KeyType::Interval {
    bounds: Bounds { least: -0.5, is_least_excluded: false, most: Some(0.5) },
    middle: None,
};

impl Data for RandomPhotometricDistort {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_photometric_distort",
        about: "changes brightness, contrast, saturation, hue and the order of the channels, each \
                with probability `p`",
        phase: Phase::Pixels,
        targets: OnTargets::Leaves,
        takes: &[InputType::IMAGE],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[
            RandomParameter {
                name: "brightness_factor",
                distribution: "uniform in `brightness` with probability `p`, else none",
            },
            RandomParameter {
                name: "contrast_factor",
                distribution: "uniform in `contrast` with probability `p`, else none",
            },
            RandomParameter {
                name: "saturation_factor",
                distribution: "uniform in `saturation` with probability `p`, else none",
            },
            RandomParameter {
                name: "hue_factor",
                distribution: "uniform in `hue` with probability `p`, else none",
            },
            RandomParameter { name: "contrast_before", distribution: "true with probability 0.5" },
            RandomParameter {
                name: "channel_permutation",
                distribution: "a permutation, uniform, with probability `p`, else none",
            },
        ],
        keys: &[
            factors("brightness", &[0.875, 1.125], "factors of the brightness"),
            factors("contrast", &[0.5, 1.5], "factors of the contrast"),
            factors("saturation", &[0.5, 1.5], "factors of the saturation"),
            Key::optional(
                "hue",
                HUE,
                numbers(&[-0.05, 0.05]),
                "shifts of the hue as shares of the circle",
            ),
            Key::probability(0.5),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            brightness: values.interval("brightness"),
            contrast: values.interval("contrast"),
            saturation: values.interval("saturation"),
            hue: values.interval("hue"),
            p: values.number("p"),
        }
    }

    fn values(&self) -> Vec<Value> {
        let Self { brightness, contrast, saturation, hue, p } = *self;
        vec![brightness.into(), contrast.into(), saturation.into(), hue.into(), Value::Number(p)]
    }
}
