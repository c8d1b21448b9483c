//! `random_rotation`: rotates by a random angle.

use super::{Data, fill, warp};
use crate::recipe::declaration::{
    Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property,
    RandomParameter,
};
use crate::recipe::error::Fault;
use crate::recipe::sample_type::SampleType;
use crate::recipe::sizes::SizeRange;
use crate::recipe::value::{Value, Values};
use crate::recipe::{Fill, WarpInterpolation};

/// `torchvision.transforms.v2.RandomRotation` on PIL images, which is Pillow's `Image.rotate`:
/// rotates counterclockwise by `uniform_in(degrees.0, degrees.1)` degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomRotation {
    /// Bounds of the angle in degrees.
    pub degrees: (f64, f64),
    /// How a pixel is computed.
    pub interpolation: WarpInterpolation,
    /// Whether the result is enlarged to contain the whole rotated picture.
    pub expand: bool,
    /// Column and row, in pixels from the upper left corner, of the point that is not moved;
    /// `None`: the centre.
    pub center: Option<(f64, f64)>,
    /// The colour outside the picture.
    pub fill: Fill,
}

impl Data for RandomRotation {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_rotation",
        about: "rotates counterclockwise by a random angle",
        phase: Phase::Picture,
        targets: OnTargets::Moves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType { size: Property::Key("expand"), ..OutputType::IMAGE },
        needs: Needs::All,
        random: &[RandomParameter { name: "angle", distribution: "uniform in `degrees`" }],
        keys: &[
            Key::required(
                "degrees",
                KeyType::Interval { bounds: Bounds::DEGREES, middle: Some(0.0) },
                Value::Number(15.0),
                "angles in degrees; x: [-x, x]",
            ),
            Key::warp_interpolation(WarpInterpolation::Nearest),
            Key::optional(
                "expand",
                KeyType::Switch,
                Value::Switch(false),
                "whether the result is enlarged to contain the whole rotated picture; its size \
                    then varies",
            ),
            Key::absent(
                "center",
                KeyType::Numbers { counts: &[2], bounds: Bounds::POSITION },
                "column and row of the fixed point; none: the centre",
            ),
            fill::key(),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            degrees: values.interval("degrees"),
            interpolation: values.named("interpolation", WarpInterpolation::from_name),
            expand: values.switch("expand"),
            center: values.optional_pair("center"),
            fill: fill::read(values),
        }
    }

    fn values(&self) -> Vec<Value> {
        let Self { degrees, interpolation, expand, center, fill } = *self;
        vec![
            degrees.into(),
            Value::Word(interpolation.name()),
            Value::Switch(expand),
            center.into(),
            fill::value(fill),
        ]
    }

    fn sizes(&self, input: SizeRange) -> SizeRange {
        if !self.expand {
            return input;
        }
        let (height, width) = input.most;
        if input.limit().is_none() {
            return SizeRange::ANY;
        }
        // Both ends of the diagonal are rounded outwards.
        let diagonal = f64::from(height).hypot(f64::from(width)).ceil() as u32 + 2;
        SizeRange { least: (1, 1), most: (diagonal, diagonal) }
    }

    fn size(&self, input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        input.filter(|_| !self.expand)
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        warp::follow(self.interpolation, sample)?;
        fill::follow(self.fill, sample)
    }
}
