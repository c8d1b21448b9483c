//! `random_time_crop`: a random section of a given length in time.

use super::{Data, fix_length};
use crate::recipe::SampleType;
use crate::recipe::declaration::{
    Declaration, InputType, Needs, OnTargets, OutputType, Phase, Property, RandomParameter,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};

/// A random section of this length; shorter inputs are padded at their end.
///
/// With T steps in time: if T > `length`, the first step is `up_to(T - length)`; otherwise there is
/// no draw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomTimeCrop {
    /// Steps in time.
    pub length: u32,
    /// Value of the padding, rounded to float32.
    pub value: f64,
}

impl Data for RandomTimeCrop {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_time_crop",
        about: "cuts out a random part of a length in time",
        phase: Phase::Series,
        targets: OnTargets::Refuses,
        takes: InputType::SERIES,
        gives: OutputType { size: Property::Key("length"), ..OutputType::SERIES },
        needs: Needs::All,
        random: &[RandomParameter {
            name: "start",
            distribution: "uniform over the steps where it fits, if there are several",
        }],
        keys: &[fix_length::LENGTH, fix_length::VALUE],
    };

    fn read(values: &Values) -> Self {
        Self { length: values.whole("length"), value: values.number("value") }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Whole(self.length), Value::Number(self.value)]
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        fix_length::follow(self.length, sample)
    }
}
