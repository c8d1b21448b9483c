//! `random_adjust_sharpness`: sharpens or smooths with a given probability.

use super::Data;
use crate::recipe::declaration::{
    APPLIED, Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
};
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.RandomAdjustSharpness` on PIL images, `ImageEnhance.Sharpness`, when
/// `uniform() < p`; one uniform is drawn in any case.
///
/// Every value x becomes d + sharpness_factor * (x - d), as in [`super::ColorJitter`], where d is
/// the value of Pillow's filter SMOOTH: (2 * s + 13) / 26, rounded down, with s the sum of the 3 x
/// 3 values around x, x itself counted five times; at the border of the picture d is x.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomAdjustSharpness {
    /// 0 smooths, 1 changes nothing, 2 sharpens.
    pub sharpness_factor: f64,
    /// Probability.
    pub p: f64,
}

impl Data for RandomAdjustSharpness {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_adjust_sharpness",
        about: "makes the picture sharper or softer with probability `p`",
        phase: Phase::Pixels,
        targets: OnTargets::Leaves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[APPLIED],
        keys: &[
            Key::required(
                "sharpness_factor",
                KeyType::Number(Bounds { least: 0.0, is_least_excluded: false, most: None }),
                Value::Number(2.0),
                "0 smooths, 1 changes nothing, 2 sharpens",
            ),
            Key::probability(0.5),
        ],
    };

    fn read(values: &Values) -> Self {
        Self { sharpness_factor: values.number("sharpness_factor"), p: values.number("p") }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Number(self.sharpness_factor), Value::Number(self.p)]
    }
}
