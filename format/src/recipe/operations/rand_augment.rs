//! `rand_augment`: applies random operations out of 14, all with the same magnitude.

use super::{Data, fill};
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, RandomParameter,
    SIGN,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{Fill, SampleType, WarpInterpolation};

/// `torchvision.transforms.v2.RandAugment` on PIL images. The random parameters of each of
/// `num_ops` operations, in this order: the operation, `up_to(13)`; its sign, negative if
/// `uniform() < 0.5`, if it has one. docs/formats.md lists the operations and their magnitudes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandAugment {
    /// Number of operations that are applied.
    pub num_ops: u32,
    /// Index of the magnitude.
    pub magnitude: u32,
    /// Number of magnitudes.
    pub num_magnitude_bins: u32,
    /// How a pixel of a warp is computed.
    pub interpolation: WarpInterpolation,
    /// The colour outside the picture.
    pub fill: Fill,
}

impl Data for RandAugment {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "rand_augment",
        about: "applies `num_ops` of 14 operations, drawn at random, with one magnitude",
        phase: Phase::Pixels,
        targets: OnTargets::Refuses,
        takes: &[InputType::IMAGE],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[
            RandomParameter {
                name: "operation",
                distribution: "one of 14, uniform, for each of `num_ops`",
            },
            SIGN,
        ],
        keys: &[
            Key::optional(
                "num_ops",
                KeyType::WholeIn { least: 0, most: 100 },
                Value::Whole(2),
                "the number of operations to apply",
            ),
            Key::optional(
                "magnitude",
                KeyType::WholeIn { least: 0, most: 999 },
                Value::Whole(9),
                "the index of the magnitude, below `num_magnitude_bins`",
            ),
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
            num_ops: values.whole("num_ops"),
            magnitude: values.whole("magnitude"),
            num_magnitude_bins: values.whole("num_magnitude_bins"),
            interpolation: values.named("interpolation", WarpInterpolation::from_name),
            fill: fill::read(values),
        }
    }

    fn values(&self) -> Vec<Value> {
        vec![
            Value::Whole(self.num_ops),
            Value::Whole(self.magnitude),
            Value::Whole(self.num_magnitude_bins),
            Value::Word(self.interpolation.name()),
            fill::value(self.fill),
        ]
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        let Self { magnitude, num_magnitude_bins, .. } = *self;
        if magnitude >= num_magnitude_bins {
            let problem = format!("is {magnitude}, but there are {num_magnitude_bins} magnitudes");
            let remedy = format!("a number from 0 to {}", num_magnitude_bins - 1);
            return Err(Fault::of_value("magnitude", problem, remedy));
        }
        fill::follow(self.fill, sample)
    }
}
