//! `random_vertical_flip`: mirrors top to bottom with a given probability.

use super::Data;
use crate::recipe::declaration::{
    APPLIED, Declaration, InputType, Key, Needs, OnTargets, OutputType, Phase,
};
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.RandomVerticalFlip`: mirrored top to bottom when
/// `uniform() < p`; one uniform is drawn in any case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomVerticalFlip {
    /// Probability.
    pub p: f64,
}

impl Data for RandomVerticalFlip {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_vertical_flip",
        about: "mirrors top to bottom with probability `p`",
        phase: Phase::Geometry,
        targets: OnTargets::Moves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType::IMAGE,
        needs: Needs::AsNext,
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
