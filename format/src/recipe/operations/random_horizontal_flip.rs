//! `random_horizontal_flip`: mirrors left to right with a given probability.

use super::Data;
use crate::recipe::declaration::{
    APPLIED, Declaration, InputType, Key, Needs, OnTargets, OutputType, Phase,
};
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.RandomHorizontalFlip`: mirrored left to right when
/// `uniform() < p`; one uniform is drawn in any case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomHorizontalFlip {
    /// Probability.
    pub p: f64,
}

impl Data for RandomHorizontalFlip {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_horizontal_flip",
        about: "mirrors left to right with probability `p`",
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
