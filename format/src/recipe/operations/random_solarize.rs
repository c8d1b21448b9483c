//! `random_solarize`: inverts bright values with a given probability.

use super::Data;
use crate::recipe::declaration::{
    APPLIED, Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
};
use crate::recipe::error::Fault;
use crate::recipe::sample_type::SampleType;
use crate::recipe::value::{Value, Values};
use crate::recipe::vocabulary::Dtype;

/// `torchvision.transforms.v2.RandomSolarize` on PIL images: every value x that is not below
/// `threshold` becomes 255 - x when `uniform() < p`; one uniform is drawn in any case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomSolarize {
    /// Smallest value that is inverted.
    pub threshold: f64,
    /// Probability.
    pub p: f64,
}

impl Data for RandomSolarize {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_solarize",
        about: "inverts the values from `threshold` on with probability `p`",
        phase: Phase::Pixels,
        targets: OnTargets::Leaves,
        takes: &[InputType::IMAGE, InputType::RGBA, InputType::FLOAT_IMAGE],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[APPLIED],
        keys: &[
            Key::required(
                "threshold",
                KeyType::Number(Bounds { least: 0.0, is_least_excluded: false, most: Some(256.0) }),
                Value::Number(128.0),
                "the least value that is inverted",
            ),
            Key::probability(0.5),
        ],
    };

    fn read(values: &Values) -> Self {
        Self { threshold: values.number("threshold"), p: values.number("p") }
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        if sample.dtype != Dtype::Float32 || self.threshold <= 1.0 {
            return Ok(());
        }
        let problem = format!("is {:?}, but values of float32 are from 0 to 1", self.threshold);
        Err(Fault::of_value("threshold", problem, "a number from 0 to 1"))
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Number(self.threshold), Value::Number(self.p)]
    }
}
