//! `auto_augment`: one of 25 learnt pairs of operations.

use super::{Data, fill};
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, RandomParameter,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{AugmentPolicy, Fill, SampleType, WarpInterpolation};

/// `torchvision.transforms.v2.AutoAugment` on PIL images. The random parameters, in this order: the
/// pair, `up_to(24)`; then, for each of its two operations, whether it is applied, `uniform()` <
/// its probability, and if so its sign, negative if `uniform() < 0.5`, if it has one.
/// docs/formats.md lists the magnitudes; the pairs are those of torchvision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AutoAugment {
    /// The dataset for which the pairs were learnt.
    pub policy: AugmentPolicy,
    /// How a pixel of a warp is computed.
    pub interpolation: WarpInterpolation,
    /// The colour outside the picture.
    pub fill: Fill,
}

impl Data for AutoAugment {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "auto_augment",
        about: "applies one of 25 pairs of operations, learnt for a dataset",
        phase: Phase::Pixels,
        targets: OnTargets::Refuses,
        takes: &[InputType::IMAGE],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[
            RandomParameter { name: "pair", distribution: "one of 25, uniform" },
            RandomParameter {
                name: "applied",
                distribution: "true with the probability of the operation, for both",
            },
            RandomParameter {
                name: "sign",
                distribution: "negative with probability 0.5, where the operation has a sign",
            },
        ],
        keys: &[
            Key::optional(
                "policy",
                KeyType::Word { choices: AugmentPolicy::NAMES },
                Value::Word(AugmentPolicy::NAMES[0]),
                "the dataset for which the pairs were learnt",
            ),
            Key::warp_interpolation(WarpInterpolation::Nearest),
            fill::key(),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            policy: values.named("policy", AugmentPolicy::from_name),
            interpolation: values.named("interpolation", WarpInterpolation::from_name),
            fill: fill::read(values),
        }
    }

    fn values(&self) -> Vec<Value> {
        vec![
            Value::Word(self.policy.name()),
            Value::Word(self.interpolation.name()),
            fill::value(self.fill),
        ]
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        fill::follow(self.fill, sample)
    }
}
