//! Options with a closed set of values, whose names the library declares.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use meetpoint_datasets::options::Choice;

/// Parses a value by its name, and lists all of them in the help.
pub(crate) fn choice<T>() -> impl TypedValueParser<Value = T>
where
    T: Choice + Send + Sync,
{
    let values = T::ALL.iter().map(|value| match value.meaning() {
        Some(meaning) => PossibleValue::new(value.name()).help(meaning),
        None => PossibleValue::new(value.name()),
    });
    let named = |name: String| T::named(&name).expect("only names of values are accepted");
    PossibleValuesParser::new(values).map(named)
}
