//! `random_invert`: subtracts every value from 255 with a given probability.

use super::Data;
use crate::recipe::declaration::{
    APPLIED, Declaration, InputType, Key, Needs, OnTargets, OutputType, Phase,
};
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.RandomInvert` on PIL images: every value x becomes 255 - x when
/// `uniform() < p`; one uniform is drawn in any case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomInvert {
    /// Probability.
    pub p: f64,
}

impl Data for RandomInvert {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_invert",
        about: "inverts all channels with probability `p`",
        phase: Phase::Pixels,
        targets: OnTargets::Leaves,
        takes: &[InputType::ANY_IMAGE],
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
