//! `crumpets_affine`: the one warp of crumpets, to pictures of one size.

use super::{Data, fill, warp};
use crate::recipe::declaration::{
    Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property,
    RandomParameter, WholeSize, numbers,
};
use crate::recipe::error::Fault;
use crate::recipe::sample_type::SampleType;
use crate::recipe::value::{Value, Values};
use crate::recipe::{Dtype, Fill, RandomAffine, ScaleMode, WarpInterpolation};

/// The geometry of crumpets' `rotate_and_resize` with the random parameters of its `MixtureRNG`,
/// computed as Pillow's `Image.transform` with `AFFINE` does.
///
/// The random parameters, in this order: the angle in degrees, `rotation_sigma` times a normal
/// number; the scale, `uniform_in(scale.0, scale.1)`; two shears, `uniform_in(shear.0, shear.1)`;
/// two shifts, vertical and then horizontal, `uniform_in(shift.0, shift.1)`; the aspect, 1 +
/// `aspect_sigma` times a normal number, at least [`Self::ASPECT_MIN`].
///
/// With half the sides of the picture (w, h) and of the result (u, v), and r = min(h / v, w / u) /
/// scale (`longest`: max), the point (x, y) of the result, from its centre, comes from the point of
/// the picture that these steps give: x and y become x + shear 1 * y and y + shear 0 * x; times
/// (r * aspect, r / aspect); turned by the angle; moved by (w + |w - u * r| * shift 1, h + |h - v *
/// r| * shift 0). Unlike in crumpets, the centre of a pixel is half a pixel from its corner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CrumpetsAffine {
    /// Rows and columns of the result.
    pub size: (u32, u32),
    /// Bounds of the scale, at 1 of which the picture fills the result.
    pub scale: (f64, f64),
    /// Bounds of the shifts, as shares of the difference between the picture's size and the
    /// result's.
    pub shift: (f64, f64),
    /// Standard deviation of the angle in degrees.
    pub rotation_sigma: f64,
    /// Standard deviation of the aspect.
    pub aspect_sigma: f64,
    /// Bounds of the shears: steps along one side for each step along the other.
    pub shear: (f64, f64),
    /// Which side of the picture fills the result.
    pub scale_mode: ScaleMode,
    /// How a pixel is computed.
    pub interpolation: WarpInterpolation,
    /// The colour outside the picture.
    pub fill: Fill,
    /// As [`RandomAffine::supersampling`].
    pub supersampling: Option<u32>,
}

impl CrumpetsAffine {
    /// Smallest aspect: crumpets has no limit, so that a normal number may mirror the picture.
    pub const ASPECT_MIN: f64 = 0.1;
}

const AUTO: &str = "auto";

const fn sigma(name: &'static str, most: f64, about: &'static str) -> Key {
    let bounds = Bounds { least: 0.0, is_least_excluded: false, most: Some(most) };
    Key::optional(name, KeyType::Number(bounds), Value::Number(0.0), about)
}

const fn share(name: &'static str, about: &'static str) -> Key {
    let bounds = Bounds { least: -10.0, is_least_excluded: false, most: Some(10.0) };
    Key::optional(name, KeyType::Interval { bounds, middle: None }, numbers(&[0.0, 0.0]), about)
}

impl Data for CrumpetsAffine {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "crumpets_affine",
        about: "rotates, scales, shears and shifts at random to one size, as crumpets does",
        phase: Phase::Picture,
        targets: OnTargets::Moves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType { size: Property::Key("size"), ..OutputType::IMAGE },
        needs: Needs::All,
        random: &[
            RandomParameter { name: "angle", distribution: "normal, deviation `rotation_sigma`" },
            RandomParameter { name: "scale_factor", distribution: "uniform in `scale`" },
            RandomParameter { name: "shears", distribution: "two, uniform in `shear`" },
            RandomParameter { name: "shifts", distribution: "two, uniform in `shift`" },
            RandomParameter {
                name: "aspect",
                distribution: "normal, mean 1, deviation `aspect_sigma`",
            },
        ],
        keys: &[
            Key::required(
                "size",
                KeyType::size(WholeSize::Square),
                Value::Whole(224),
                "both sides of the result, or height and width",
            ),
            Key::optional(
                "scale",
                KeyType::Interval { bounds: Bounds::POSITIVE, middle: None },
                numbers(&[1.0, 1.0]),
                "scales; at 1 the picture fills the result",
            ),
            share("shift", "shifts as shares of what the picture has beyond the result"),
            sigma("rotation_sigma", 360.0, "the standard deviation of the angle in degrees"),
            sigma("aspect_sigma", 1.0, "the standard deviation of the aspect"),
            share("shear", "steps along one side for each step along the other"),
            Key::optional(
                "scale_mode",
                KeyType::Word { choices: ScaleMode::NAMES },
                Value::Word(ScaleMode::Shortest.name()),
                "which side of the picture fills the result at a scale of 1",
            ),
            Key::warp_interpolation(WarpInterpolation::Bilinear),
            fill::key(),
            Key::optional(
                "supersampling",
                KeyType::WholeOrWord {
                    least: 1,
                    most: RandomAffine::SUPERSAMPLING_MAX,
                    choices: &[AUTO],
                },
                Value::Word(AUTO),
                "samples along each side of a pixel, which is the mean of all of them; auto: \
                 depends on the scale",
            ),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            size: values.sides("size"),
            scale: values.interval("scale"),
            shift: values.interval("shift"),
            rotation_sigma: values.number("rotation_sigma"),
            aspect_sigma: values.number("aspect_sigma"),
            shear: values.interval("shear"),
            scale_mode: values.named("scale_mode", ScaleMode::from_name),
            interpolation: values.named("interpolation", WarpInterpolation::from_name),
            fill: fill::read(values),
            supersampling: values.whole_or_word("supersampling"),
        }
    }

    fn values(&self) -> Vec<Value> {
        vec![
            Value::Sides([self.size.0, self.size.1]),
            self.scale.into(),
            self.shift.into(),
            Value::Number(self.rotation_sigma),
            Value::Number(self.aspect_sigma),
            self.shear.into(),
            Value::Word(self.scale_mode.name()),
            Value::Word(self.interpolation.name()),
            fill::value(self.fill),
            self.supersampling.map_or(Value::Word(AUTO), Value::Whole),
        ]
    }

    fn size(&self, _input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        Some(self.size)
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        if sample.dtype != Dtype::Uint8 && self.supersampling != Some(1) {
            let problem = format!("is not 1, but the values are {} here", sample.dtype.name());
            return Err(Fault::of_value("supersampling", problem, "1"));
        }
        warp::follow(self.interpolation, sample)?;
        fill::follow(self.fill, sample)
    }
}
