//! The declaration of a sampler: its name, description, and options with their values.

use std::fmt;
use std::sync::Arc;

/// The declaration of a sampler, which does not depend on its options.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// The name in job files, `--sampler` and states.
    pub name: &'static str,
    /// Its description, in one line.
    pub summary: &'static str,
    /// Its options, in the order of the documentation.
    pub options: &'static [OptionSpec],
}

/// One option of a sampler.
#[derive(Debug, Clone, PartialEq)]
pub struct OptionSpec {
    /// The key in job files, and the argument in Python.
    pub name: &'static str,
    /// Which values it takes.
    pub takes: OptionType,
    /// The default in words; `None`: the option is required.
    pub default: Option<&'static str>,
    /// Its description, in one line.
    pub summary: &'static str,
}

/// The values that an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionType {
    /// A whole number in a range, both ends included.
    Whole {
        /// Least value.
        least: u64,
        /// Greatest value.
        most: u64,
    },
    /// True or false.
    Flag,
    /// The name of a column.
    Column,
    /// An expression over columns.
    Expression,
    /// A list of sample numbers.
    Indices,
    /// A list with a weight for each sample, or the name of a column with them.
    Weights,
    /// A list with a weight for each dataset.
    DatasetWeights,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// The value of an option.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A whole number.
    Whole(u64),
    /// True or false.
    Flag(bool),
    /// The name of a column, an expression, or a word.
    Text(String),
    /// Sample numbers.
    Wholes(Arc<[u64]>),
    /// Weights.
    Numbers(Arc<[f64]>),
}

impl OptionType {
    /// Whether the option accepts this value. Weights and sample indices are checked later, against
    /// the dataset.
    pub fn accepts(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Whole { least, most }, Value::Whole(number)) => (least..=most).contains(number),
            (Self::Column | Self::Expression, Value::Text(text)) => !text.is_empty(),
            (Self::Weights, Value::Text(text)) => !text.is_empty(),
            (Self::Word(words), Value::Text(text)) => words.contains(&text.as_str()),
            (Self::Flag, Value::Flag(_))
            | (Self::Indices, Value::Wholes(_))
            | (Self::Weights | Self::DatasetWeights, Value::Numbers(_)) => true,
            (
                Self::Whole { .. }
                | Self::Flag
                | Self::Column
                | Self::Expression
                | Self::Indices
                | Self::Weights
                | Self::DatasetWeights
                | Self::Word(_),
                Value::Whole(_)
                | Value::Flag(_)
                | Value::Text(_)
                | Value::Wholes(_)
                | Value::Numbers(_),
            ) => false,
        }
    }
}

impl fmt::Display for OptionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole { least, most: u64::MAX } => write!(f, "a whole number, at least {least}"),
            Self::Whole { least, most } => write!(f, "a whole number from {least} to {most}"),
            Self::Flag => f.write_str("true or false"),
            Self::Column => f.write_str("the name of a column"),
            Self::Expression => f.write_str("an expression over columns, such as \"label < 10\""),
            Self::Indices => f.write_str("a list of sample numbers, counted from 0"),
            Self::Weights => {
                f.write_str("a list with a weight for each sample, or the name of a column")
            }
            Self::DatasetWeights => f.write_str("a list with a weight for each dataset"),
            Self::Word(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
                write!(f, "one of {}", words.join(", "))
            }
        }
    }
}

impl fmt::Display for Value {
    /// Shows lists by their length only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(number) => write!(f, "{number}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Wholes(list) => write!(f, "[{} sample numbers]", list.len()),
            Self::Numbers(list) => write!(f, "[{} numbers]", list.len()),
        }
    }
}
