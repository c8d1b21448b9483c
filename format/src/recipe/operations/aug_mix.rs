//! `aug_mix`: a mixture of differently augmented copies of a picture.

use super::{Data, fill};
use crate::recipe::declaration::{
    Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
    RandomParameter, SIGN,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{Fill, SampleType, WarpInterpolation};

/// `torchvision.transforms.v2.AugMix`, with Pillow's operations instead of those on tensors. The
/// random parameters, in this order:
///
/// 1. the weights of the picture and of the mixture: two gamma numbers of shape `alpha`, each
///    divided by their sum;
/// 2. the weights of the `mixture_width` chains: as many gamma numbers, each divided by their sum
///    and multiplied by the weight of the mixture; numbers whose sum is 0 give equal weights;
/// 3. for each chain: its depth, 1 + `up_to(2)`, if `chain_depth` is 0; then, for each of its
///    operations, its number, `up_to(8)`, or with `all_ops` `up_to(12)`; the index of its
///    magnitude, `up_to(severity - 1)`, if it has magnitudes; its sign, negative if
///    `uniform() < 0.5`, if it has one.
///
/// Weights are rounded to float32. In float32, the weight of the picture times each value, and,
/// chain after chain, the weight of the chain times the value after it are summed; the sum is
/// truncated. docs/formats.md has the operations, their magnitudes and the gamma numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AugMix {
    /// Number of magnitudes to draw from.
    pub severity: u32,
    /// Number of chains.
    pub mixture_width: u32,
    /// Operations of a chain; 0: 1 to 3, at random.
    pub chain_depth: u32,
    /// Parameter of the distribution of weights.
    pub alpha: f64,
    /// Whether brightness, colour, contrast and sharpness change too.
    pub all_ops: bool,
    /// How a pixel of a warp is computed.
    pub interpolation: WarpInterpolation,
    /// The colour outside the picture.
    pub fill: Fill,
}

impl Data for AugMix {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "aug_mix",
        about: "mixes the picture with the results of chains of random operations on it",
        phase: Phase::Pixels,
        targets: OnTargets::Refuses,
        takes: &[InputType::IMAGE],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[
            RandomParameter {
                name: "weights",
                distribution: "Dirichlet with `alpha`, of picture and mixture, and of the chains",
            },
            RandomParameter {
                name: "depth",
                distribution: "1 to 3, uniform, for each chain, where `chain_depth` is 0",
            },
            RandomParameter { name: "operation", distribution: "uniform, for each of a chain" },
            RandomParameter { name: "magnitude", distribution: "one of `severity`, uniform" },
            SIGN,
        ],
        keys: &[
            Key::optional(
                "severity",
                KeyType::WholeIn { least: 1, most: 10 },
                Value::Whole(3),
                "the number of magnitudes to draw from, of 10",
            ),
            Key::optional(
                "mixture_width",
                KeyType::WholeIn { least: 1, most: 16 },
                Value::Whole(3),
                "the chains",
            ),
            Key::optional(
                "chain_depth",
                KeyType::WholeIn { least: 0, most: 16 },
                Value::Whole(0),
                "the number of operations of a chain; 0: 1 to 3, at random",
            ),
            Key::optional(
                "alpha",
                KeyType::Number(Bounds {
                    least: 0.01,
                    is_least_excluded: false,
                    most: Some(1000.0),
                }),
                Value::Number(1.0),
                "the parameter of the beta and Dirichlet distributions of the weights",
            ),
            Key::optional(
                "all_ops",
                KeyType::Switch,
                Value::Switch(true),
                "whether brightness, colour, contrast and sharpness change too",
            ),
            Key::warp_interpolation(WarpInterpolation::Bilinear),
            fill::key(),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            severity: values.whole("severity"),
            mixture_width: values.whole("mixture_width"),
            chain_depth: values.whole("chain_depth"),
            alpha: values.number("alpha"),
            all_ops: values.switch("all_ops"),
            interpolation: values.named("interpolation", WarpInterpolation::from_name),
            fill: fill::read(values),
        }
    }

    fn values(&self) -> Vec<Value> {
        vec![
            Value::Whole(self.severity),
            Value::Whole(self.mixture_width),
            Value::Whole(self.chain_depth),
            Value::Number(self.alpha),
            Value::Switch(self.all_ops),
            Value::Word(self.interpolation.name()),
            fill::value(self.fill),
        ]
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        fill::follow(self.fill, sample)
    }
}
