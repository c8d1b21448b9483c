//! `adjust_gamma`: a power of every value.

use super::Data;
use crate::recipe::declaration::{
    Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
};
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.functional.adjust_gamma` on PIL images: every value x becomes
/// (255 + 1 - 0.001) * gain * pow(x / 255, gamma), computed in float64 in this order, truncated and
/// at most 255; `pow` as in musl's libm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdjustGamma {
    /// The exponent: above 1 darkens.
    pub gamma: f64,
    /// The factor.
    pub gain: f64,
}

const NOT_NEGATIVE: KeyType =
    KeyType::Number(Bounds { least: 0.0, is_least_excluded: false, most: None });

impl Data for AdjustGamma {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "adjust_gamma",
        about: "raises every value, as a share of 255, to the power of `gamma`",
        phase: Phase::Pixels,
        targets: OnTargets::Leaves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[],
        keys: &[
            Key::required("gamma", NOT_NEGATIVE, Value::Number(2.2), "the exponent"),
            Key::optional("gain", NOT_NEGATIVE, Value::Number(1.0), "the factor of the result"),
        ],
    };

    fn read(values: &Values) -> Self {
        Self { gamma: values.number("gamma"), gain: values.number("gain") }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Number(self.gamma), Value::Number(self.gain)]
    }
}
