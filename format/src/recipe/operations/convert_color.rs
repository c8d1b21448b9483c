//! `convert_color`: another colour space.

use super::Data;
use crate::recipe::ColorSpace;
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
};
use crate::recipe::error::Fault;
use crate::recipe::sample_type::SampleType;
use crate::recipe::value::{Value, Values};

/// Red, green and blue to another colour space: OpenCV's `cvtColor` of uint8, whose result is
/// again three channels of uint8. No operation on colours can follow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConvertColor {
    /// The colour space of the result.
    pub space: ColorSpace,
}

impl Data for ConvertColor {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "convert_color",
        about: "converts RGB to another colour space, as OpenCV does",
        phase: Phase::Pixels,
        targets: OnTargets::Leaves,
        takes: &[InputType { channels: &[3], ..InputType::IMAGE }],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[],
        keys: &[Key::required(
            "space",
            KeyType::Word { choices: ColorSpace::NAMES },
            Value::Word(ColorSpace::Hsv.name()),
            "the colour space",
        )],
    };

    fn read(values: &Values) -> Self {
        Self { space: values.named("space", ColorSpace::from_name) }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Word(self.space.name())]
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        sample.space = Some(self.space);
        Ok(())
    }
}
