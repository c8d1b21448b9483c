//! `scale_jitter`: resizes by a random factor.

use super::Data;
use crate::recipe::Interpolation;
use crate::recipe::declaration::{
    Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property,
    RandomParameter, SIDE_MAX, numbers,
};
use crate::recipe::sizes::SizeRange;
use crate::recipe::value::{Value, Values};
use std::borrow::Cow;

/// `torchvision.transforms.v2.ScaleJitter`: resizes to the largest size that fits into
/// `target_size`, times a random factor.
///
/// For a picture of H rows and W columns, r = min(`target_size.1` / H, `target_size.0` / W) *
/// `uniform_in(scale_range.0, scale_range.1)`; the result has trunc(W * r) columns and
/// trunc(H * r) rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScaleJitter {
    /// Width and height that the picture fits into at a factor of 1, width first as in torchvision.
    pub target_size: (u32, u32),
    /// Bounds of the factor.
    pub scale_range: (f64, f64),
    /// Filter.
    pub interpolation: Interpolation,
    /// Whether the filter widens when shrinking.
    pub antialias: bool,
}

impl Data for ScaleJitter {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "scale_jitter",
        about: "resizes to fit into a size, which is scaled by a random factor",
        phase: Phase::Geometry,
        targets: OnTargets::Moves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType { size: Property::Variable, ..OutputType::IMAGE },
        needs: Needs::All,
        random: &[RandomParameter { name: "factor", distribution: "uniform in `scale_range`" }],
        keys: &[
            Key::required(
                "target_size",
                KeyType::Wholes { counts: &[2], least: 1, most: SIDE_MAX },
                Value::Wholes(Cow::Borrowed(&[1024, 1024])),
                "width and height that the picture fits into at a factor of 1",
            ),
            Key::optional(
                "scale_range",
                KeyType::Interval { bounds: Bounds::POSITIVE, middle: None },
                numbers(&[0.1, 2.0]),
                "factors",
            ),
            Key::interpolation(),
            Key::antialias(),
        ],
    };

    fn read(values: &Values) -> Self {
        let [width, height] = *values.wholes("target_size") else {
            panic!("`target_size` declares two numbers")
        };
        Self {
            target_size: (width, height),
            scale_range: values.interval("scale_range"),
            interpolation: values.named("interpolation", Interpolation::from_name),
            antialias: values.switch("antialias"),
        }
    }

    fn values(&self) -> Vec<Value> {
        let Self { target_size, scale_range, interpolation, antialias } = *self;
        vec![
            Value::Wholes(vec![target_size.0, target_size.1].into()),
            scale_range.into(),
            Value::Word(interpolation.name()),
            Value::Switch(antialias),
        ]
    }

    fn sizes(&self, _input: SizeRange) -> SizeRange {
        let (width, height) = self.target_size;
        let target = SizeRange { least: (1, 1), most: (height, width) };
        let side = |side: u32| (f64::from(side) * self.scale_range.1).ceil().max(1.0) as u32;
        SizeRange { most: (side(target.most.0), side(target.most.1)), ..target }
    }

    fn size(&self, _input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        None
    }
}
