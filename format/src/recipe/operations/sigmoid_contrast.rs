//! `sigmoid_contrast`: raises contrast by a sigmoid curve, or reduces it by the inverse.

use super::Data;
use crate::recipe::declaration::{
    Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
};
use crate::recipe::value::{Value, Values};

/// The contrast of crumpets' `add_gamma` on uint8: with b = 1 / (1 + exp(6.279)), every value x
/// becomes the nearest whole number, halves to even, of 255 * ((1 - |c|) * x / 255 + |c| * s),
/// where s is
///
/// - for c >= 0: (1 / (1 + exp(6.279 - 12.558 * x / 255)) - b) / (1 - 2 * b)
/// - for c < 0: (atanh((1 - 2 * b) * (2 * x / 255 - 1)) + atanh(1 - 2 * b)) / (2 * atanh(1 - 2 *
///   b))
///
/// in float64, with `exp` and `atanh` as in musl's libm. Crumpets computes the curves in float32,
/// so that its values may differ by 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SigmoidContrast {
    /// c, from -1 to 1.
    pub contrast: f64,
}

impl Data for SigmoidContrast {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "sigmoid_contrast",
        about: "raises the contrast by a sigmoid curve, or lowers it by its inverse",
        phase: Phase::Pixels,
        targets: OnTargets::Leaves,
        takes: &[InputType::IMAGE],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[],
        keys: &[Key::required(
            "contrast",
            KeyType::Number(Bounds { least: -1.0, is_least_excluded: false, most: Some(1.0) }),
            Value::Number(0.5),
            "the share of the curve in the result; negative: the share of its inverse",
        )],
    };

    fn read(values: &Values) -> Self {
        Self { contrast: values.number("contrast") }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Number(self.contrast)]
    }
}
