//! `random_equalize`: equalizes the histogram of each channel with a given probability.

use super::Data;
use crate::recipe::declaration::{
    APPLIED, Declaration, InputType, Key, Needs, OnTargets, OutputType, Phase,
};
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.RandomEqualize` on PIL images, `ImageOps.equalize`, when
/// `uniform() < p`; one uniform is drawn in any case.
///
/// With h the histogram of a channel, step = (pixels - h of the largest value that occurs) / 255,
/// rounded down, a value x becomes (step / 2 + the sum of h over the values below x) / step, both
/// rounded down, and at most 255. A channel with a single value or a step of 0 is unchanged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomEqualize {
    /// Probability.
    pub p: f64,
}

impl Data for RandomEqualize {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_equalize",
        about: "equalizes the histogram of each channel with probability `p`",
        phase: Phase::Pixels,
        targets: OnTargets::Leaves,
        takes: &[InputType::IMAGE, InputType::RGBA],
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
