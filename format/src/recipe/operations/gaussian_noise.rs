//! `gaussian_noise`: normal noise.

use super::Data;
use crate::recipe::declaration::{
    Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
    RandomParameter,
};
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.GaussianNoise` on uint8: a field is drawn, and every value x becomes
/// x + trunc(mean * 255 + n * (sigma * 255)), where n is the normal number of its word; computed in
/// float64, clipped to 0..=255, or without `clip` modulo 256. A grey picture has the words of its
/// first channel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GaussianNoise {
    /// Mean, as a share of 255.
    pub mean: f64,
    /// Standard deviation, as a share of 255.
    pub sigma: f64,
    /// Whether values are clipped.
    pub clip: bool,
}

impl Data for GaussianNoise {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "gaussian_noise",
        about: "adds normal noise to every value",
        phase: Phase::Pixels,
        targets: OnTargets::Leaves,
        takes: &[InputType::IMAGE],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[RandomParameter {
            name: "noise",
            distribution: "standard normal, for each value",
        }],
        keys: &[
            Key::optional(
                "mean",
                KeyType::Number(Bounds { least: -1.0, is_least_excluded: false, most: Some(1.0) }),
                Value::Number(0.0),
                "the mean, as a share of 255",
            ),
            Key::optional(
                "sigma",
                KeyType::Number(Bounds { least: 0.0, is_least_excluded: false, most: Some(16.0) }),
                Value::Number(0.1),
                "the standard deviation, as a share of 255",
            ),
            Key::optional(
                "clip",
                KeyType::Switch,
                Value::Switch(true),
                "whether values are clipped; otherwise they are taken modulo 256",
            ),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            mean: values.number("mean"),
            sigma: values.number("sigma"),
            clip: values.switch("clip"),
        }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Number(self.mean), Value::Number(self.sigma), Value::Switch(self.clip)]
    }
}
