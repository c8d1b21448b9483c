//! `random_posterize`: keeps fewer bits per channel with a given probability.

use super::Data;
use crate::recipe::declaration::{
    APPLIED, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
};
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.RandomPosterize` on PIL images: all but the upper `bits` bits of
/// every value are cleared when `uniform() < p`; one uniform is drawn in any case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomPosterize {
    /// Upper bits that are kept, 1 to 8.
    pub bits: u32,
    /// Probability.
    pub p: f64,
}

impl Data for RandomPosterize {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_posterize",
        about: "sets the lower bits of all values to 0 with probability `p`",
        phase: Phase::Pixels,
        targets: OnTargets::Leaves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[APPLIED],
        keys: &[
            Key::required(
                "bits",
                KeyType::WholeIn { least: 1, most: 8 },
                Value::Whole(4),
                "the number of upper bits that remain",
            ),
            Key::probability(0.5),
        ],
    };

    fn read(values: &Values) -> Self {
        Self { bits: values.whole("bits"), p: values.number("p") }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Whole(self.bits), Value::Number(self.p)]
    }
}
