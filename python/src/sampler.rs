//! The sampler of a loader, from the package.

use crate::errors;
use crate::exceptions::ProblemText;
use meetpoint_format::sampler::{Sampler, Value};
use pyo3::prelude::*;

/// The name of a sampler and its options.
pub(crate) type SamplerArguments = (String, Vec<(String, Setting)>);

/// The value of an option.
#[derive(Debug, FromPyObject)]
pub(crate) enum Setting {
    Flag(bool),
    Whole(u64),
    Text(String),
    /// `"u8"` or `"f8"`, and elements of 8 bytes each, little-endian.
    List((String, Vec<u8>)),
}

/// The sampler, or a `SettingError`.
pub(crate) fn read(py: Python<'_>, (name, options): SamplerArguments) -> PyResult<Sampler> {
    let options = options.into_iter().map(|(option, given)| (option, value(given))).collect();
    Sampler::read(&name, options).map_err(|error| {
        errors::plain(py, "SettingError", ProblemText::new(format!("sampler: {error}"), &error))
    })
}

fn value(given: Setting) -> Value {
    match given {
        Setting::Flag(flag) => Value::Flag(flag),
        Setting::Whole(number) => Value::Whole(number),
        Setting::Text(text) => Value::Text(text),
        Setting::List((kind, bytes)) => {
            let elements = bytes.chunks_exact(8).map(|it| it.try_into().expect("8 bytes"));
            match kind == "f8" {
                true => Value::Numbers(elements.map(f64::from_le_bytes).collect()),
                false => Value::Wholes(elements.map(u64::from_le_bytes).collect()),
            }
        }
    }
}
