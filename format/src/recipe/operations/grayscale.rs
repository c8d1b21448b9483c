//! `grayscale`: one grey channel, or three equal ones.

use super::Data;
use crate::recipe::SampleType;
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.Grayscale`: Pillow's luma, `convert("L")`:
/// (19595 R + 38470 G + 7471 B + 32768) >> 16.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grayscale {
    /// Channels of the result: 1, or 3 that are equal.
    pub num_output_channels: u32,
}

impl Data for Grayscale {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "grayscale",
        about: "makes the picture grey, in one channel or three equal ones",
        phase: Phase::Pixels,
        targets: OnTargets::Leaves,
        takes: &[InputType::IMAGE],
        gives: OutputType { channels: Property::Key("num_output_channels"), ..OutputType::IMAGE },
        needs: Needs::All,
        random: &[],
        keys: &[Key::optional(
            "num_output_channels",
            KeyType::Whole { choices: &[1, 3] },
            Value::Whole(1),
            "the channels of the result",
        )],
    };

    fn read(values: &Values) -> Self {
        Self { num_output_channels: values.whole("num_output_channels") }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Whole(self.num_output_channels)]
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        sample.channels = self.num_output_channels;
        Ok(())
    }
}
