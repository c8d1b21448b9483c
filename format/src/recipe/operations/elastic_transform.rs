//! `elastic_transform`: displaces pixels by smooth random fields.

use super::{Data, fill, warp};
use crate::recipe::declaration::{
    Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
    RandomParameter, numbers,
};
use crate::recipe::error::Fault;
use crate::recipe::sample_type::SampleType;
use crate::recipe::value::{Value, Values};
use crate::recipe::{Fill, WarpInterpolation};

/// `torchvision.transforms.v2.ElasticTransform`: two smooth random fields displace the position
/// that each pixel is read from. torchvision computes it on tensors; the result differs by at most
/// 1. docs/formats.md has the exact definition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ElasticTransform {
    /// Strength of the displacement along rows and along columns.
    pub alpha: (f64, f64),
    /// Standard deviations of the Gaussian that smooths the fields, along rows and along columns,
    /// in pixels; both 0: they are not smoothed.
    pub sigma: (f64, f64),
    /// How a pixel is computed: bilinear or nearest.
    pub interpolation: WarpInterpolation,
    /// The colour outside the picture.
    pub fill: Fill,
}

/// Largest standard deviation, which bounds the work per pixel.
const SIGMA_MAX: f64 = 100.0;

/// The modes of PyTorch's `grid_sample` whose results stay within the range of a byte.
const INTERPOLATIONS: &[&str] =
    &[WarpInterpolation::Bilinear.name(), WarpInterpolation::Nearest.name()];

/// A number for both axes, or one for each.
const fn of_axes(
    name: &'static str,
    most: Option<f64>,
    default: &'static [f64],
    about: &'static str,
) -> Key {
    let bounds = Bounds { least: 0.0, is_least_excluded: false, most };
    Key::optional(name, KeyType::Numbers { counts: &[1, 2], bounds }, numbers(default), about)
}

impl Data for ElasticTransform {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "elastic_transform",
        about: "moves pixels by smooth random fields",
        phase: Phase::Picture,
        targets: OnTargets::Moves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[RandomParameter {
            name: "displacement",
            distribution: "two fields, each value uniform in [-1, 1), smoothed and times `alpha`",
        }],
        keys: &[
            of_axes("alpha", None, &[50.0, 50.0], "strength of the moves, along rows and columns"),
            of_axes(
                "sigma",
                Some(SIGMA_MAX),
                &[5.0, 5.0],
                "standard deviations of the smoothing in pixels, along rows and columns",
            ),
            Key::optional(
                "interpolation",
                KeyType::Word { choices: INTERPOLATIONS },
                Value::Word(INTERPOLATIONS[0]),
                "how a pixel is computed, as PyTorch's grid_sample does",
            ),
            fill::key(),
        ],
    };

    fn read(values: &Values) -> Self {
        let pair = |key: &str| match *values.numbers(key) {
            [both] => (both, both),
            [across, down] => (across, down),
            ref other => panic!("`{key}` declares {} numbers", other.len()),
        };
        Self {
            alpha: pair("alpha"),
            sigma: pair("sigma"),
            interpolation: values.named("interpolation", WarpInterpolation::from_name),
            fill: fill::read(values),
        }
    }

    fn values(&self) -> Vec<Value> {
        let Self { alpha, sigma, interpolation, fill } = *self;
        vec![alpha.into(), sigma.into(), Value::Word(interpolation.name()), fill::value(fill)]
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        if (self.sigma.0 > 0.0) != (self.sigma.1 > 0.0) {
            let problem = format!("is [{:?}, {:?}]", self.sigma.0, self.sigma.1);
            return Err(Fault::of_value("sigma", problem, "both above 0, or both 0"));
        }
        warp::follow(self.interpolation, sample)?;
        fill::follow(self.fill, sample)
    }
}
