//! `random_affine`: rotates, shifts, scales and shears at random, in one step.

use super::{Data, fill, warp};
use crate::recipe::declaration::{
    Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property,
    RandomParameter, WholeSize, numbers,
};
use crate::recipe::error::Fault;
use crate::recipe::sample_type::SampleType;
use crate::recipe::value::{Value, Values};
use crate::recipe::{Dtype, Fill, WarpInterpolation};

/// `torchvision.transforms.v2.RandomAffine` on PIL images, which is Pillow's `Image.transform` with
/// `AFFINE`. With `size` it resizes in the same step, as the augmentation of crumpets does.
///
/// The random parameters, in this order:
///
/// 1. the angle in degrees, clockwise: `uniform_in(degrees.0, degrees.1)`
/// 2. for `translate` (a, b) that is not (0, 0): `uniform_in(-a * W, a * W)`, then
///    `uniform_in(-b * H, b * H)`, both rounded to whole pixels, halves to the even number, where W
///    and H are the sides of the result
/// 3. the scale: `uniform_in(scale.0, scale.1)`
/// 4. the shear in degrees: `uniform_in` of both ends for the columns, then for the rows
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomAffine {
    /// Bounds of the angle in degrees.
    pub degrees: (f64, f64),
    /// Largest shifts as shares of the width and of the height.
    pub translate: (f64, f64),
    /// Bounds of the scale.
    pub scale: (f64, f64),
    /// Bounds of the shear in degrees, along the rows and along the columns.
    pub shear: [(f64, f64); 2],
    /// How a pixel is computed.
    pub interpolation: WarpInterpolation,
    /// The colour outside the picture.
    pub fill: Fill,
    /// Column and row, in pixels from the upper left corner, of the point that is not moved;
    /// `None`: the centre.
    pub center: Option<(f64, f64)>,
    /// Rows and columns of the result, which the picture covers at a scale of 1; `None`: those of
    /// the picture, whose pixels keep their size at a scale of 1.
    pub size: Option<(u32, u32)>,
    /// Samples along each side of a pixel of the result, which is their mean; `None`: the number of
    /// source pixels along it, 1 to [`Self::SUPERSAMPLING_MAX`].
    pub supersampling: Option<u32>,
}

impl RandomAffine {
    /// Maximum number of samples along the side of a pixel.
    pub const SUPERSAMPLING_MAX: u32 = 3;
}

const AUTO: &str = "auto";

impl Data for RandomAffine {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_affine",
        about: "rotates, shifts, scales and shears at random, and resizes if `size` is set",
        phase: Phase::Picture,
        targets: OnTargets::Moves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType { size: Property::Key("size"), ..OutputType::IMAGE },
        needs: Needs::All,
        random: &[
            RandomParameter { name: "angle", distribution: "uniform in `degrees`" },
            RandomParameter {
                name: "shift",
                distribution: "across and down, uniform up to `translate` of the side either way, \
                               rounded to pixels; if `translate` is not 0",
            },
            RandomParameter { name: "scale_factor", distribution: "uniform in `scale`" },
            RandomParameter {
                name: "shear_angles",
                distribution: "along rows and columns, uniform in `shear`",
            },
        ],
        keys: &[
            Key::required(
                "degrees",
                KeyType::Interval { bounds: Bounds::DEGREES, middle: Some(0.0) },
                Value::Number(15.0),
                "angles in degrees; x: [-x, x]",
            ),
            Key::optional(
                "translate",
                KeyType::Numbers { counts: &[2], bounds: Bounds::UNIT },
                numbers(&[0.0, 0.0]),
                "largest shifts as shares of width and height",
            ),
            Key::optional(
                "scale",
                KeyType::Interval { bounds: Bounds::POSITIVE, middle: None },
                numbers(&[1.0, 1.0]),
                "scales",
            ),
            Key::optional(
                "shear",
                KeyType::Numbers { counts: &[1, 2, 4], bounds: Bounds::DEGREES },
                numbers(&[0.0, 0.0, 0.0, 0.0]),
                "shears in degrees, low and high along rows and then along columns; x: [-x, x]",
            ),
            Key::warp_interpolation(WarpInterpolation::Nearest),
            fill::key(),
            Key::absent(
                "center",
                KeyType::Numbers { counts: &[2], bounds: Bounds::POSITION },
                "column and row of the fixed point; none: the centre",
            ),
            Key::absent(
                "size",
                KeyType::size(WholeSize::Square),
                "both sides of the result, or height and width, which the picture fills at scale \
                    1; none: the size of the picture",
            ),
            Key::optional(
                "supersampling",
                KeyType::WholeOrWord { least: 1, most: Self::SUPERSAMPLING_MAX, choices: &[AUTO] },
                Value::Whole(1),
                "samples along each side of a pixel, which is the mean of all of them; auto: \
                 depends on the scale",
            ),
        ],
    };

    fn read(values: &Values) -> Self {
        let shear = match *values.numbers("shear") {
            [x] => [(-x, x), (0.0, 0.0)],
            [low, high] => [(low, high), (0.0, 0.0)],
            [low, high, low_down, high_down] => [(low, high), (low_down, high_down)],
            ref other => panic!("`shear` declares {} numbers", other.len()),
        };
        Self {
            degrees: values.interval("degrees"),
            translate: values.interval("translate"),
            scale: values.interval("scale"),
            shear,
            interpolation: values.named("interpolation", WarpInterpolation::from_name),
            fill: fill::read(values),
            center: values.optional_pair("center"),
            size: values.optional_sides("size"),
            supersampling: values.whole_or_word("supersampling"),
        }
    }

    fn values(&self) -> Vec<Value> {
        let Self { degrees, translate, scale, shear, interpolation, fill, .. } = *self;
        let [across, down] = shear;
        vec![
            degrees.into(),
            translate.into(),
            scale.into(),
            Value::Numbers(vec![across.0, across.1, down.0, down.1].into()),
            Value::Word(interpolation.name()),
            fill::value(fill),
            self.center.into(),
            self.size.map_or(Value::Absent, |(height, width)| Value::Sides([height, width])),
            self.supersampling.map_or(Value::Word(AUTO), Value::Whole),
        ]
    }

    fn size(&self, input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        self.size.or(input)
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        if let Some((low, high)) = self.shear.iter().find(|(low, high)| low > high) {
            let problem = format!("has the low end {low:?} above the high end {high:?}");
            return Err(Fault::of_value("shear", problem, "low and high ends in this order"));
        }
        if sample.dtype != Dtype::Uint8 && self.supersampling != Some(1) {
            let problem = format!("is not 1, but the values are {} here", sample.dtype.name());
            return Err(Fault::of_value("supersampling", problem, "1"));
        }
        warp::follow(self.interpolation, sample)?;
        fill::follow(self.fill, sample)
    }
}
