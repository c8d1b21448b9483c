//! `random_sigmoid_contrast`: random contrast by a sigmoid curve, or by its inverse.

use super::Data;
use super::random_gamma::SHARE;
use crate::recipe::declaration::{
    APPLIED, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
    RandomParameter, numbers,
};
use crate::recipe::value::{Value, Values};

/// [`super::SigmoidContrast`] when `uniform() < p`, with a contrast that is drawn from
/// `uniform_in(contrast.0, contrast.1)`, only if it is applied: the contrast of crumpets'
/// `MixtureRNG`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomSigmoidContrast {
    /// Bounds of the contrast.
    pub contrast: (f64, f64),
    /// Probability.
    pub p: f64,
}

impl Data for RandomSigmoidContrast {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_sigmoid_contrast",
        about: "raises or lowers the contrast by a sigmoid curve, with probability `p`",
        phase: Phase::Pixels,
        targets: OnTargets::Leaves,
        takes: &[InputType::IMAGE],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[
            APPLIED,
            RandomParameter { name: "contrast_share", distribution: "uniform in `contrast`" },
        ],
        keys: &[
            Key::optional(
                "contrast",
                KeyType::Interval { bounds: SHARE, middle: None },
                numbers(&[-1.0, 1.0]),
                "the share of the curve in the result; negative: the share of its inverse",
            ),
            Key::probability(0.5),
        ],
    };

    fn read(values: &Values) -> Self {
        Self { contrast: values.interval("contrast"), p: values.number("p") }
    }

    fn values(&self) -> Vec<Value> {
        vec![self.contrast.into(), Value::Number(self.p)]
    }
}
