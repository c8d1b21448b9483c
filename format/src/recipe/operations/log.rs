//! `log`: the logarithm of every value.

use super::Data;
use crate::recipe::LogBase;
use crate::recipe::declaration::{
    Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
};
use crate::recipe::value::{Value, Values};

/// `multiplier * log(max(x, floor))`, in float32. With `base = "10"`, `multiplier = 10` and
/// `floor = 1e-10`, `librosa.power_to_db` with `ref=1, top_db=None`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Log {
    /// Base.
    pub base: LogBase,
    /// The value that replaces smaller ones.
    pub floor: f64,
    /// Factor.
    pub multiplier: f64,
}

/// A floor must be a normal float32.
const FLOORS: Bounds =
    Bounds { least: 1.175_494_4e-38, is_least_excluded: false, most: Some(1e38) };

/// Factors that keep logarithms of float32 finite.
const FACTORS: Bounds = Bounds { least: -1e6, is_least_excluded: false, most: Some(1e6) };

impl Data for Log {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "log",
        about: "takes the logarithm of every value",
        phase: Phase::Series,
        targets: OnTargets::Refuses,
        takes: InputType::SERIES,
        gives: OutputType::SERIES,
        needs: Needs::All,
        random: &[],
        keys: &[
            Key::optional(
                "base",
                KeyType::Word { choices: LogBase::NAMES },
                Value::Word(LogBase::E.name()),
                "the base",
            ),
            Key::optional(
                "floor",
                KeyType::Number(FLOORS),
                Value::Number(1e-10),
                "the value that replaces smaller ones",
            ),
            Key::optional(
                "multiplier",
                KeyType::Number(FACTORS),
                Value::Number(1.0),
                "the factor of the logarithm",
            ),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            base: values.named("base", LogBase::from_name),
            floor: values.number("floor"),
            multiplier: values.number("multiplier"),
        }
    }

    fn values(&self) -> Vec<Value> {
        vec![
            Value::Word(self.base.name()),
            Value::Number(self.floor),
            Value::Number(self.multiplier),
        ]
    }
}
