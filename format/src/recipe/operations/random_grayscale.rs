//! `random_grayscale`: converts to grey with a given probability.

use super::Data;
use crate::recipe::declaration::{
    APPLIED, Declaration, InputType, Key, Needs, OnTargets, OutputType, Phase,
};
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.RandomGrayscale`: every channel becomes the luma of
/// [`super::Grayscale`] when `uniform() < p`; one uniform is drawn in any case. The number of
/// channels is preserved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomGrayscale {
    /// Probability.
    pub p: f64,
}

impl Data for RandomGrayscale {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_grayscale",
        about: "makes all channels grey with probability `p`",
        phase: Phase::Pixels,
        targets: OnTargets::Leaves,
        takes: &[InputType::IMAGE, InputType::ELEMENTS],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[APPLIED],
        keys: &[Key::probability(0.1)],
    };

    fn read(values: &Values) -> Self {
        Self { p: values.number("p") }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Number(self.p)]
    }
}
