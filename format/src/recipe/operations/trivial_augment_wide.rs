//! `trivial_augment_wide`: one operation of 14 with a random magnitude.

use super::{Data, fill};
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, RandomParameter,
    SIGN,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{Fill, SampleType, WarpInterpolation};

/// `torchvision.transforms.v2.TrivialAugmentWide` on PIL images. The random parameters, in this
/// order: the operation, `up_to(13)`; its magnitude, `up_to(num_magnitude_bins - 1)`, if it has
/// magnitudes; its sign, negative if `uniform() < 0.5`, if it has one. docs/formats.md lists the
/// operations and their magnitudes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrivialAugmentWide {
    /// Number of magnitudes.
    pub num_magnitude_bins: u32,
    /// How a pixel of a warp is computed.
    pub interpolation: WarpInterpolation,
    /// The colour outside the picture.
    pub fill: Fill,
}

impl Data for TrivialAugmentWide {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "trivial_augment_wide",
        about: "applies one of 14 operations with a random magnitude",
        phase: Phase::Pixels,
        targets: OnTargets::Refuses,
        takes: &[InputType::IMAGE],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[
            RandomParameter { name: "operation", distribution: "one of 14, uniform" },
            RandomParameter {
                name: "magnitude",
                distribution: "one of `num_magnitude_bins`, uniform",
            },
            SIGN,
        ],
        keys: &[
            Key::optional(
                "num_magnitude_bins",
                KeyType::WholeIn { least: 2, most: 1000 },
                Value::Whole(31),
                "the number of magnitudes",
            ),
            Key::warp_interpolation(WarpInterpolation::Nearest),
            fill::key(),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            num_magnitude_bins: values.whole("num_magnitude_bins"),
            interpolation: values.named("interpolation", WarpInterpolation::from_name),
            fill: fill::read(values),
        }
    }

    fn values(&self) -> Vec<Value> {
        vec![
            Value::Whole(self.num_magnitude_bins),
            Value::Word(self.interpolation.name()),
            fill::value(self.fill),
        ]
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        fill::follow(self.fill, sample)
    }
}
