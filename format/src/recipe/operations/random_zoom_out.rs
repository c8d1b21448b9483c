//! `random_zoom_out`: places the picture on a larger canvas with a given probability.

use super::{Data, fill};
use crate::recipe::Fill;
use crate::recipe::declaration::{
    APPLIED, Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
    Property, RandomParameter, numbers,
};
use crate::recipe::error::Fault;
use crate::recipe::sample_type::SampleType;
use crate::recipe::sizes::SizeRange;
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.RandomZoomOut`: when `uniform() < p`, the picture is padded to a
/// larger canvas.
///
/// For a picture of H rows and W columns, r = `uniform_in(side_range.0, side_range.1)`; the canvas
/// has trunc(H * r) rows and trunc(W * r) columns. Of the d added columns, trunc(d * `uniform()`)
/// are left of the picture; of the d added rows, trunc(d * `uniform()`) are above it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomZoomOut {
    /// The colour of the padding.
    pub fill: Fill,
    /// Bounds of a side of the canvas as a multiple of that of the picture.
    pub side_range: (f64, f64),
    /// Probability.
    pub p: f64,
}

impl Data for RandomZoomOut {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_zoom_out",
        about: "puts the picture at a random position on a larger canvas, with probability `p`",
        phase: Phase::Geometry,
        targets: OnTargets::Moves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType { size: Property::Variable, ..OutputType::IMAGE },
        needs: Needs::AsNext,
        random: &[
            APPLIED,
            RandomParameter { name: "ratio", distribution: "uniform in `side_range`" },
            RandomParameter { name: "left", distribution: "share of the room, uniform" },
            RandomParameter { name: "top", distribution: "share of the room, uniform" },
        ],
        keys: &[
            fill::key(),
            Key::optional(
                "side_range",
                KeyType::Interval {
                    bounds: Bounds { least: 1.0, is_least_excluded: false, most: None },
                    middle: None,
                },
                numbers(&[1.0, 4.0]),
                "sides of the canvas as multiples of those of the picture",
            ),
            Key::probability(0.5),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            fill: fill::read(values),
            side_range: values.interval("side_range"),
            p: values.number("p"),
        }
    }

    fn values(&self) -> Vec<Value> {
        let Self { fill, side_range, p } = *self;
        vec![fill::value(fill), side_range.into(), Value::Number(p)]
    }

    fn sizes(&self, input: SizeRange) -> SizeRange {
        input.stretched(self.side_range.1)
    }

    fn size(&self, _input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        None
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        fill::follow(self.fill, sample)
    }
}
