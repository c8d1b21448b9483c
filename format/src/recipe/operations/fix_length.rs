//! `fix_length`: cuts or pads the end.

use super::Data;
use crate::recipe::declaration::{
    Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{LENGTH_MAX, SampleType, Series};

/// `librosa.util.fix_length`: longer samples are cut at their end, shorter ones are padded there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FixLength {
    /// Steps in time.
    pub length: u32,
    /// Value of the padding, rounded to float32.
    pub value: f64,
}

/// A finite float32.
const VALUES: Bounds = Bounds { least: -3e38, is_least_excluded: false, most: Some(3e38) };

/// The key `length`.
pub(super) const LENGTH: Key = Key::required(
    "length",
    KeyType::WholeIn { least: 1, most: LENGTH_MAX },
    Value::Whole(16_000),
    "steps in time",
);

/// The key `value`.
pub(super) const VALUE: Key = Key::optional(
    "value",
    KeyType::Number(VALUES),
    Value::Number(0.0),
    "the value of the padding of shorter inputs",
);

/// Sets the length of the sample.
pub(super) fn follow(length: u32, sample: &mut SampleType) -> Result<(), Fault> {
    let (series, layout) = (sample.expect_series(), sample.layout);
    let layout = layout.expect("sound, spectrograms and signals have a layout");
    sample.set_series(Series { length: Some(length), ..series }, layout);
    Ok(())
}

impl Data for FixLength {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "fix_length",
        about: "cuts or pads the end, to a length in time",
        phase: Phase::Series,
        targets: OnTargets::Refuses,
        takes: InputType::SERIES,
        gives: OutputType { size: Property::Key("length"), ..OutputType::SERIES },
        needs: Needs::All,
        random: &[],
        keys: &[LENGTH, VALUE],
    };

    fn read(values: &Values) -> Self {
        Self { length: values.whole("length"), value: values.number("value") }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Whole(self.length), Value::Number(self.value)]
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        follow(self.length, sample)
    }
}
