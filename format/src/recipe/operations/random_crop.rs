//! `random_crop`: a random part of a picture, which may be padded first.

use super::{Data, fill, padding};
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property,
    RandomParameter, WholeSize,
};
use crate::recipe::error::Fault;
use crate::recipe::sample_type::SampleType;
use crate::recipe::value::{Value, Values};
use crate::recipe::{Fill, Padding, PaddingMode};

/// `torchvision.transforms.v2.RandomCrop`: pads as [`super::Pad`] does, then cuts out a random
/// part.
///
/// With `pad_if_needed`, a side of the padded picture that is too short by d pixels is extended by
/// d at both ends. With H rows and W columns then: if H > `height`, top = `up_to(H - height)`;
/// then, if W > `width`, left = `up_to(W - width)`; otherwise 0, without a draw. A side that is
/// still too short is an error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomCrop {
    /// Rows.
    pub height: u32,
    /// Columns.
    pub width: u32,
    /// Pixels that are added on each side first.
    pub padding: Padding,
    /// Whether a picture that is too small is padded.
    pub pad_if_needed: bool,
    /// The colour of the padding, for [`PaddingMode::Constant`].
    pub fill: Fill,
    /// The content of the padding.
    pub padding_mode: PaddingMode,
}

impl RandomCrop {
    /// The padding of a picture of this height and width.
    pub fn padding_of(&self, size: (u32, u32)) -> Padding {
        let (height, width) = self.padding.around(size);
        let Padding { left, top, right, bottom } = self.padding;
        let missing = |wanted: u32, length: u32| match self.pad_if_needed {
            true => wanted.saturating_sub(length),
            false => 0,
        };
        let (down, across) = (missing(self.height, height), missing(self.width, width));
        Padding {
            left: left.saturating_add(across),
            top: top.saturating_add(down),
            right: right.saturating_add(across),
            bottom: bottom.saturating_add(down),
        }
    }
}

impl Data for RandomCrop {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_crop",
        about: "cuts out a random part, of the padded picture if `padding` is set",
        phase: Phase::Geometry,
        targets: OnTargets::Moves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType { size: Property::Key("size"), ..OutputType::IMAGE },
        needs: Needs::Region,
        random: &[
            RandomParameter {
                name: "top",
                distribution: "uniform over the rows where it fits, if there are several",
            },
            RandomParameter {
                name: "left",
                distribution: "uniform over the columns where it fits, if there are several",
            },
        ],
        keys: &[
            Key::required(
                "size",
                KeyType::size(WholeSize::Square),
                Value::Whole(224),
                "both sides in pixels, or height and width",
            ),
            padding::key(),
            Key::optional(
                "pad_if_needed",
                KeyType::Switch,
                Value::Switch(false),
                "whether a side that is too short is padded on both ends",
            ),
            fill::key(),
            padding::mode_key(),
        ],
    };

    fn read(values: &Values) -> Self {
        let (height, width) = values.sides("size");
        Self {
            height,
            width,
            padding: padding::read(values),
            pad_if_needed: values.switch("pad_if_needed"),
            fill: fill::read(values),
            padding_mode: padding::read_mode(values),
        }
    }

    fn values(&self) -> Vec<Value> {
        let Self { height, width, padding, pad_if_needed, fill, padding_mode } = *self;
        vec![
            Value::Sides([height, width]),
            padding::value(padding),
            Value::Switch(pad_if_needed),
            fill::value(fill),
            Value::Word(padding_mode.name()),
        ]
    }

    fn repeats_pixels(&self) -> Option<(&'static str, &'static str)> {
        let mode = self.padding_mode;
        (mode != PaddingMode::Constant).then_some(("padding_mode", mode.name()))
    }

    fn size(&self, _input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        Some((self.height, self.width))
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        if let Some(size) = sample.size {
            let (height, width) = self.padding_of(size).around(size);
            if height < self.height || width < self.width {
                let problem = format!("is larger than the padded picture of {height} x {width}");
                let remedy = "at most the sides of the picture, or pad_if_needed = true";
                return Err(Fault::of_value("size", problem, remedy));
            }
        }
        fill::follow(self.fill, sample)
    }
}
