//! `random_autocontrast`: stretches each channel to the range from 0 to 255 with a given
//! probability.

use super::Data;
use crate::recipe::declaration::{
    APPLIED, Declaration, InputType, Key, Needs, OnTargets, OutputType, Phase,
};
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.RandomAutocontrast` on PIL images, `ImageOps.autocontrast`, when
/// `uniform() < p`; one uniform is drawn in any case.
///
/// With lo and hi the least and the largest value of a channel, scale = 255 / (hi - lo), each value
/// x becomes x * scale + (-lo * scale), computed in float64 in this order, truncated and clipped to
/// 0..=255. A channel with a single value is unchanged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomAutocontrast {
    /// Probability.
    pub p: f64,
}

impl Data for RandomAutocontrast {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_autocontrast",
        about: "stretches each channel to the full range with probability `p`",
        phase: Phase::Pixels,
        targets: OnTargets::Leaves,
        takes: &[InputType::IMAGE, InputType::ELEMENTS],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[APPLIED],
        keys: &[Key::probability(0.5)],
    };

    fn read(values: &Values) -> Self {
        Self { p: values.number("p") }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Number(self.p)]
    }
}
