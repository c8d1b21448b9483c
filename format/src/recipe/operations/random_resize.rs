//! `random_resize`: resizes to a random shorter side.

use super::Data;
use crate::recipe::Interpolation;
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property,
    RandomParameter, SIDE_MAX,
};
use crate::recipe::error::Fault;
use crate::recipe::sample_type::SampleType;
use crate::recipe::sizes::SizeRange;
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.RandomResize`: resizes like [`super::Resize`] to a shorter side of
/// `min_size + up_to(max_size - 1 - min_size)` pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomResize {
    /// Least length of the shorter side.
    pub min_size: u32,
    /// The exclusive upper bound of the length.
    pub max_size: u32,
    /// Filter.
    pub interpolation: Interpolation,
    /// Whether the filter widens when shrinking.
    pub antialias: bool,
}

const SIDE: KeyType = KeyType::WholeIn { least: 1, most: SIDE_MAX };

impl Data for RandomResize {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_resize",
        about: "resizes to a random shorter side",
        phase: Phase::Geometry,
        targets: OnTargets::Moves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType { size: Property::Variable, ..OutputType::IMAGE },
        needs: Needs::All,
        random: &[RandomParameter {
            name: "side",
            distribution: "a whole number, uniform from `min_size` to `max_size` - 1",
        }],
        keys: &[
            Key::required("min_size", SIDE, Value::Whole(256), "minimum shorter side in pixels"),
            Key::required(
                "max_size",
                SIDE,
                Value::Whole(481),
                "maximum shorter side in pixels, exclusive",
            ),
            Key::interpolation(),
            Key::antialias(),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            min_size: values.whole("min_size"),
            max_size: values.whole("max_size"),
            interpolation: values.named("interpolation", Interpolation::from_name),
            antialias: values.switch("antialias"),
        }
    }

    fn values(&self) -> Vec<Value> {
        let Self { min_size, max_size, interpolation, antialias } = *self;
        vec![
            Value::Whole(min_size),
            Value::Whole(max_size),
            Value::Word(interpolation.name()),
            Value::Switch(antialias),
        ]
    }

    fn sizes(&self, input: SizeRange) -> SizeRange {
        input.of_shorter_side((self.min_size, self.max_size - 1), None)
    }

    fn size(&self, _input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        None
    }

    fn follow(&self, _sample: &mut SampleType) -> Result<(), Fault> {
        if self.min_size < self.max_size {
            return Ok(());
        }
        let problem = format!("is {}, not above `min_size` = {}", self.max_size, self.min_size);
        Err(Fault::of_value("max_size", problem, "maximum shorter side in pixels, exclusive side"))
    }
}
