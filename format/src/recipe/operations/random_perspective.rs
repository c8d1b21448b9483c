//! `random_perspective`: a random perspective with a given probability.

use super::{Data, fill, warp};
use crate::recipe::declaration::{
    APPLIED, Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
    RandomParameter,
};
use crate::recipe::error::Fault;
use crate::recipe::sample_type::SampleType;
use crate::recipe::value::{Value, Values};
use crate::recipe::{Fill, WarpInterpolation};

/// `torchvision.transforms.v2.RandomPerspective` on PIL images, which is Pillow's
/// `Image.transform` with `PERSPECTIVE`: when `uniform() < p`, each corner of the picture moves
/// inwards.
///
/// For a picture of H rows and W columns, with bh = trunc(`distortion_scale` * (H / 2)) and
/// bw = trunc(`distortion_scale` * (W / 2)), H / 2 and W / 2 rounded down, the corners move to:
///
/// 1. top left: x = `up_to(bw)`, then y = `up_to(bh)`
/// 2. top right: x = W - 1 - bw + `up_to(bw)`, then y = `up_to(bh)`
/// 3. bottom right: x = W - 1 - bw + `up_to(bw)`, then y = H - 1 - bh + `up_to(bh)`
/// 4. bottom left: x = `up_to(bw)`, then y = H - 1 - bh + `up_to(bh)`
///
/// Corners have whole coordinates, 0 to W - 1 and 0 to H - 1. The coefficients of the inverse map
/// are rounded to float32. A picture is unchanged if its moved corners do not define a map (three
/// of them are on a line, as in a picture of one row).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomPerspective {
    /// How far a corner can move, as a share of half the side.
    pub distortion_scale: f64,
    /// Probability.
    pub p: f64,
    /// How a pixel is computed.
    pub interpolation: WarpInterpolation,
    /// The colour outside the picture.
    pub fill: Fill,
}

impl Data for RandomPerspective {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_perspective",
        about: "moves the corners inwards at random, with probability `p`",
        phase: Phase::Picture,
        targets: OnTargets::Moves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[
            APPLIED,
            RandomParameter {
                name: "corners",
                distribution: "each coordinate uniform over whole pixels, up to \
                               `distortion_scale` of half the side inwards",
            },
        ],
        keys: &[
            Key::optional(
                "distortion_scale",
                KeyType::Number(Bounds::UNIT),
                Value::Number(0.5),
                "how far a corner can move, as a share of half the side",
            ),
            Key::probability(0.5),
            Key::warp_interpolation(WarpInterpolation::Bilinear),
            fill::key(),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            distortion_scale: values.number("distortion_scale"),
            p: values.number("p"),
            interpolation: values.named("interpolation", WarpInterpolation::from_name),
            fill: fill::read(values),
        }
    }

    fn values(&self) -> Vec<Value> {
        let Self { distortion_scale, p, interpolation, fill } = *self;
        vec![
            Value::Number(distortion_scale),
            Value::Number(p),
            Value::Word(interpolation.name()),
            fill::value(fill),
        ]
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        warp::follow(self.interpolation, sample)?;
        fill::follow(self.fill, sample)
    }
}
