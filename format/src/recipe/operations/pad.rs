//! `pad`: adds pixels around a picture.

use super::{Data, fill, padding};
use crate::recipe::declaration::{
    Declaration, InputType, Needs, OnTargets, OutputType, Phase, Property,
};
use crate::recipe::error::Fault;
use crate::recipe::sample_type::SampleType;
use crate::recipe::sizes::SizeRange;
use crate::recipe::value::{Value, Values};
use crate::recipe::{Fill, Padding, PaddingMode};

/// `torchvision.transforms.v2.Pad`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pad {
    /// Pixels on each side.
    pub padding: Padding,
    /// The colour of the padding, for [`PaddingMode::Constant`].
    pub fill: Fill,
    /// The content of the padding.
    pub padding_mode: PaddingMode,
}

impl Data for Pad {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "pad",
        about: "adds pixels on each side",
        phase: Phase::Geometry,
        targets: OnTargets::Moves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType { size: Property::Key("padding"), ..OutputType::IMAGE },
        needs: Needs::AsNext,
        random: &[],
        keys: &[padding::required_key(), fill::key(), padding::mode_key()],
    };

    fn read(values: &Values) -> Self {
        Self {
            padding: padding::read(values),
            fill: fill::read(values),
            padding_mode: padding::read_mode(values),
        }
    }

    fn values(&self) -> Vec<Value> {
        let Self { padding, fill, padding_mode } = *self;
        vec![padding::value(padding), fill::value(fill), Value::Word(padding_mode.name())]
    }

    fn repeats_pixels(&self) -> Option<(&'static str, &'static str)> {
        let mode = self.padding_mode;
        (mode != PaddingMode::Constant).then_some(("padding_mode", mode.name()))
    }

    fn sizes(&self, input: SizeRange) -> SizeRange {
        input.padded(self.padding)
    }

    fn size(&self, input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        input.map(|size| self.padding.around(size))
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        fill::follow(self.fill, sample)
    }
}
