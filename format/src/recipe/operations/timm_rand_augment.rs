//! `timm_rand_augment`: random operations out of 15, with magnitudes around a given one.

use super::{Data, fill};
use crate::recipe::declaration::{
    Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
    RandomParameter, SIGN,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{Fill, SampleType, TimmInterpolation};

/// The RandAugment of timm 1.0 on PIL images, such as `rand-m9-mstd0.5-inc1`. The random parameters
/// of each of `num_ops` operations, in this order: the operation, `up_to(14)`; whether it is
/// applied, `uniform() < p`; and if it is:
///
/// 1. its magnitude, if `magnitude_std` is not 0: `magnitude` + `magnitude_std` * a normal number
///    (one word), or above a `magnitude_std` of 100 `uniform_in(0, magnitude)`; clipped to
///    0..=`magnitude_max`;
/// 2. its sign, negative if `uniform() < 0.5`, if it has one;
/// 3. the interpolation, bilinear at 0 and bicubic at 1 of `up_to(1)`, if it is a warp and
///    `interpolation` is "random".
///
/// docs/formats.md lists the operations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimmRandAugment {
    /// Operations that are drawn.
    pub num_ops: u32,
    /// Magnitude; 10 is full strength.
    pub magnitude: f64,
    /// Deviation of the magnitude; above 100 it is uniform.
    pub magnitude_std: f64,
    /// Largest magnitude.
    pub magnitude_max: f64,
    /// Probability of each operation.
    pub p: f64,
    /// Whether every operation changes more at a larger magnitude.
    pub increasing: bool,
    /// How a pixel of a warp is computed.
    pub interpolation: TimmInterpolation,
    /// The colour outside the picture.
    pub fill: Fill,
}

const NOT_NEGATIVE: KeyType =
    KeyType::Number(Bounds { least: 0.0, is_least_excluded: false, most: None });

impl Data for TimmRandAugment {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "timm_rand_augment",
        about: "applies `num_ops` of 15 operations, drawn at random, as timm does",
        phase: Phase::Pixels,
        targets: OnTargets::Refuses,
        takes: &[InputType::IMAGE],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[
            RandomParameter {
                name: "operation",
                distribution: "one of 15, uniform, for each of `num_ops`",
            },
            RandomParameter {
                name: "applied",
                distribution: "true with probability `p`, for each",
            },
            RandomParameter {
                name: "magnitude",
                distribution: "normal with `magnitude` and `magnitude_std`, or uniform",
            },
            SIGN,
            RandomParameter {
                name: "filter",
                distribution: "bilinear or bicubic, where `interpolation` says random",
            },
        ],
        keys: &[
            Key::optional(
                "num_ops",
                KeyType::WholeIn { least: 0, most: 100 },
                Value::Whole(2),
                "the number of operations to draw",
            ),
            Key::optional(
                "magnitude",
                NOT_NEGATIVE,
                Value::Number(10.0),
                "the magnitude; 10 is the full range",
            ),
            Key::optional(
                "magnitude_std",
                NOT_NEGATIVE,
                Value::Number(0.0),
                "standard deviation of the magnitude; above 100, the magnitude is uniform from 0 \
                    to `magnitude`",
            ),
            Key::optional(
                "magnitude_max",
                KeyType::Number(Bounds { least: 0.0, is_least_excluded: false, most: Some(30.0) }),
                Value::Number(10.0),
                "the largest magnitude",
            ),
            Key::probability(0.5),
            Key::optional(
                "increasing",
                KeyType::Switch,
                Value::Switch(false),
                "whether every operation changes more at a larger magnitude",
            ),
            Key::optional(
                "interpolation",
                KeyType::Word { choices: TimmInterpolation::NAMES },
                Value::Word(TimmInterpolation::NAMES[0]),
                "how a pixel of a warp is computed",
            ),
            fill::key_of_grey(),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            num_ops: values.whole("num_ops"),
            magnitude: values.number("magnitude"),
            magnitude_std: values.number("magnitude_std"),
            magnitude_max: values.number("magnitude_max"),
            p: values.number("p"),
            increasing: values.switch("increasing"),
            interpolation: values.named("interpolation", TimmInterpolation::from_name),
            fill: fill::read(values),
        }
    }

    fn values(&self) -> Vec<Value> {
        vec![
            Value::Whole(self.num_ops),
            Value::Number(self.magnitude),
            Value::Number(self.magnitude_std),
            Value::Number(self.magnitude_max),
            Value::Number(self.p),
            Value::Switch(self.increasing),
            Value::Word(self.interpolation.name()),
            fill::value(self.fill),
        ]
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        fill::follow(self.fill, sample)
    }
}
