//! `random_iou_crop`: a random part of a picture that overlaps with its boxes.

use super::Data;
use crate::recipe::declaration::{
    Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property,
    RandomParameter,
};
use crate::recipe::error::Fault;
use crate::recipe::sample_type::SampleType;
use crate::recipe::sizes::SizeRange;
use crate::recipe::value::{Value, Values};
use std::borrow::Cow;

/// `torchvision.transforms.v2.RandomIoUCrop`: a part of the picture that overlaps with one of its
/// boxes by at least a random amount, or the whole picture.
///
/// For a picture of H rows and W columns, each of up to [`Self::ROUNDS_MAX`] rounds draws the index
/// of an option, `up_to(count - 1)`. With an option of 1 or more, the picture is unchanged.
/// Otherwise each of up to `trials` trials draws w = trunc(W * `uniform_in(min_scale, max_scale)`)
/// and h of H likewise; unless w or h is 0 or w / h is outside of the aspect ratios, then left =
/// trunc((W - w) * `uniform()`) and top of H - h likewise. The trial succeeds if the centre of a
/// box lies in the part, borders excluded, and the part's intersection over union with one such box
/// is not below the option. Boxes whose centres lie outside are dropped. If no round succeeds, the
/// picture is unchanged; torchvision would try forever.
#[derive(Debug, Clone, PartialEq)]
pub struct RandomIouCrop {
    /// Bounds of a side as a share of that of the picture.
    pub scale: (f64, f64),
    /// Bounds of width / height.
    pub aspect_ratio: (f64, f64),
    /// Minimum overlaps to choose from.
    pub sampler_options: Vec<f64>,
    /// Trials per round.
    pub trials: u32,
}

impl RandomIouCrop {
    /// Rounds after which the picture is left unchanged.
    pub const ROUNDS_MAX: u32 = 50;
}

impl Data for RandomIouCrop {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_iou_crop",
        about: "cuts out a random part that overlaps with a box, or nothing; needs one target of \
                boxes",
        phase: Phase::Geometry,
        targets: OnTargets::Moves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType { size: Property::Variable, ..OutputType::IMAGE },
        needs: Needs::Region,
        random: &[
            RandomParameter { name: "option", distribution: "one of `sampler_options`" },
            RandomParameter {
                name: "sides",
                distribution: "shares of those of the picture, uniform in the scales; up to \
                               `trials` tries",
            },
            RandomParameter {
                name: "left",
                distribution: "share of the room, uniform; with sides",
            },
            RandomParameter { name: "top", distribution: "share of the room, uniform; with sides" },
        ],
        keys: &[
            Key::optional(
                "min_scale",
                KeyType::Number(SHARE),
                Value::Number(0.3),
                "smallest side as a share of that of the picture",
            ),
            Key::optional(
                "max_scale",
                KeyType::Number(SHARE),
                Value::Number(1.0),
                "largest side as a share of that of the picture",
            ),
            Key::optional(
                "min_aspect_ratio",
                KeyType::Number(Bounds::POSITIVE),
                Value::Number(0.5),
                "smallest width over height",
            ),
            Key::optional(
                "max_aspect_ratio",
                KeyType::Number(Bounds::POSITIVE),
                Value::Number(2.0),
                "largest width over height",
            ),
            Key::optional(
                "sampler_options",
                KeyType::Numbers {
                    counts: &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
                    bounds: Bounds::NOT_NEGATIVE,
                },
                Value::Numbers(Cow::Borrowed(&[0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0])),
                "minimum intersections over union, one of which is drawn; 1: the whole picture",
            ),
            Key::optional(
                "trials",
                KeyType::WholeIn { least: 1, most: 1000 },
                Value::Whole(40),
                "attempts before another option is drawn",
            ),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            scale: (values.number("min_scale"), values.number("max_scale")),
            aspect_ratio: (values.number("min_aspect_ratio"), values.number("max_aspect_ratio")),
            sampler_options: values.numbers("sampler_options").to_vec(),
            trials: values.whole("trials"),
        }
    }

    fn values(&self) -> Vec<Value> {
        let Self { scale, aspect_ratio, sampler_options, trials } = self;
        vec![
            Value::Number(scale.0),
            Value::Number(scale.1),
            Value::Number(aspect_ratio.0),
            Value::Number(aspect_ratio.1),
            Value::Numbers(sampler_options.clone().into()),
            Value::Whole(*trials),
        ]
    }

    fn needs_boxes(&self) -> bool {
        true
    }

    fn sizes(&self, input: SizeRange) -> SizeRange {
        SizeRange { least: (1, 1), ..input }
    }

    fn size(&self, _input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        None
    }

    fn follow(&self, _sample: &mut SampleType) -> Result<(), Fault> {
        let ordered = |low: &'static str, high: &str, (least, most): (f64, f64)| {
            if least <= most {
                return Ok(());
            }
            let problem = format!("is {least}, more than `{high}`, which is {most}");
            Err(Fault::of_value(low, problem, format!("at most {most}")))
        };
        ordered("min_scale", "max_scale", self.scale)?;
        ordered("min_aspect_ratio", "max_aspect_ratio", self.aspect_ratio)
    }
}

/// A share that is not 0.
const SHARE: Bounds = Bounds { least: 0.0, is_least_excluded: true, most: Some(1.0) };
