//! `random_shortest_size`: resizes to one of several lengths of the shorter side.

use super::Data;
use crate::recipe::Interpolation;
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property,
    RandomParameter, SIDE_MAX,
};
use crate::recipe::sizes::SizeRange;
use crate::recipe::value::{Value, Values};
use std::borrow::Cow;

/// Lengths of sides: at least one, at most [`Sides::COUNT_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sides {
    sides: [u32; Self::COUNT_MAX],
    count: usize,
}

impl Sides {
    /// Maximum number of lengths.
    pub const COUNT_MAX: usize = 32;

    /// These lengths; `None` if there are none or too many.
    pub fn new(sides: &[u32]) -> Option<Self> {
        let mut all = [0; Self::COUNT_MAX];
        let count = sides.len();
        all.get_mut(..count).filter(|_| count > 0)?.copy_from_slice(sides);
        Some(Self { sides: all, count })
    }

    /// The lengths.
    pub fn as_slice(&self) -> &[u32] {
        &self.sides[..self.count]
    }
}

/// `torchvision.transforms.v2.RandomShortestSize`: resizes so that the shorter side has one of
/// several lengths and the longer one is at most `max_size`.
///
/// The length is that at `up_to(count - 1)` of `min_size`. For a picture of H rows and W columns,
/// r = length / min(H, W), and with `max_size` no more than `max_size` / max(H, W); the result has
/// trunc(W * r) columns and trunc(H * r) rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomShortestSize {
    /// Lengths of the shorter side.
    pub min_size: Sides,
    /// Largest length of the longer side.
    pub max_size: Option<u32>,
    /// Filter.
    pub interpolation: Interpolation,
    /// Whether the filter widens when shrinking.
    pub antialias: bool,
}

impl Data for RandomShortestSize {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_shortest_size",
        about: "resizes to a shorter side chosen from a list",
        phase: Phase::Geometry,
        targets: OnTargets::Moves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType { size: Property::Variable, ..OutputType::IMAGE },
        needs: Needs::All,
        random: &[RandomParameter { name: "side", distribution: "one of `min_size`, uniform" }],
        keys: &[
            Key::required(
                "min_size",
                KeyType::WholeList { count_max: Sides::COUNT_MAX, least: 1, most: SIDE_MAX },
                Value::Wholes(Cow::Borrowed(&[480, 512, 544])),
                "the shorter sides in pixels",
            ),
            Key::absent(
                "max_size",
                KeyType::WholeIn { least: 1, most: SIDE_MAX },
                "the maximum of the longer side; none: no limit",
            ),
            Key::interpolation(),
            Key::antialias(),
        ],
    };

    fn read(values: &Values) -> Self {
        let sides = Sides::new(values.wholes("min_size"));
        Self {
            min_size: sides.expect("the number of sides was checked"),
            max_size: values.optional_whole("max_size"),
            interpolation: values.named("interpolation", Interpolation::from_name),
            antialias: values.switch("antialias"),
        }
    }

    fn values(&self) -> Vec<Value> {
        let Self { min_size, max_size, interpolation, antialias } = *self;
        vec![
            Value::Wholes(min_size.as_slice().to_vec().into()),
            max_size.map_or(Value::Absent, Value::Whole),
            Value::Word(interpolation.name()),
            Value::Switch(antialias),
        ]
    }

    fn sizes(&self, input: SizeRange) -> SizeRange {
        let sides = self.min_size.as_slice();
        let (least, most) = (sides.iter().min(), sides.iter().max());
        let shorter = (*least.expect("at least one"), *most.expect("at least one"));
        input.of_shorter_side(shorter, self.max_size)
    }

    fn size(&self, _input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        None
    }
}
