//! `fill`: the key of operations that fill pixels outside of the picture with a colour.

use crate::recipe::Fill;
use crate::recipe::declaration::{Key, KeyType};
use crate::recipe::error::Fault;
use crate::recipe::sample_type::SampleType;
use crate::recipe::value::{Value, Values};
use std::borrow::Cow;

const NAME: &str = "fill";

/// The declaration of the key, black by default.
pub(super) const fn key() -> Key {
    key_with(&[0])
}

/// The declaration of the key, grey by default.
pub(super) const fn key_of_grey() -> Key {
    key_with(&[128])
}

const fn key_with(default: &'static [u32]) -> Key {
    let kind = KeyType::Wholes { counts: &[1, 3, 4], least: 0, most: 255 };
    let about = "the colour outside the picture, for all channels or for each";
    Key::optional(NAME, kind, Value::Wholes(Cow::Borrowed(default)), about)
}

/// The colour.
pub(super) fn read(values: &Values) -> Fill {
    let byte = |number: u32| u8::try_from(number).expect("the range of the key was checked");
    match *values.wholes(NAME) {
        [value] => Fill::Every(byte(value)),
        [red, green, blue] => Fill::Rgb([red, green, blue].map(byte)),
        [red, green, blue, alpha] => Fill::Rgba([red, green, blue, alpha].map(byte)),
        ref other => panic!("`{NAME}` declares {} numbers", other.len()),
    }
}

/// The value of the key.
pub(super) fn value(fill: Fill) -> Value {
    let numbers = match fill {
        Fill::Every(value) => vec![u32::from(value)],
        Fill::Rgb(colour) => colour.map(u32::from).to_vec(),
        Fill::Rgba(colour) => colour.map(u32::from).to_vec(),
    };
    Value::Wholes(numbers.into())
}

/// Refuses a colour whose number of channels differs from the picture's.
pub(super) fn follow(fill: Fill, sample: &SampleType) -> Result<(), Fault> {
    let count = match fill {
        Fill::Every(_) => return Ok(()),
        Fill::Rgb(_) => 3,
        Fill::Rgba(_) => 4,
    };
    let channels = sample.channels;
    if count == channels {
        return Ok(());
    }
    let plural = if channels == 1 { "" } else { "s" };
    let problem = format!("holds {count} numbers, but the picture has {channels} channel{plural}");
    let remedy = if channels == 1 { "one number" } else { "one number, or one per channel" };
    Err(Fault::of_value(NAME, problem, remedy))
}
