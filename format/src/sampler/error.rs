//! Why a sampler cannot be used: a typed cause, with the option that it concerns and the remedy.

use super::{DECLARATIONS, declaration_of};
use meetpoint_diagnose::nearest;
use std::fmt;

/// A sampler whose options are wrong, or do not fit the dataset.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SamplerError {
    /// No sampler has this name.
    UnknownName {
        /// As given.
        name: String,
    },
    /// Several datasets in one loader.
    Mixture,
    /// The sampler has no such option.
    UnknownOption {
        /// Name of the sampler.
        sampler: &'static str,
        /// As given.
        option: String,
    },
    /// A required option is missing.
    Missing {
        /// Name of the sampler.
        sampler: &'static str,
        /// The option.
        option: &'static str,
    },
    /// A value outside of what the option takes.
    Value {
        /// Name of the sampler.
        sampler: &'static str,
        /// The option.
        option: &'static str,
        /// The value in words.
        given: String,
    },
    /// A weight that is negative, infinite or not a number.
    Weight {
        /// Which, counted from 0.
        sample: u64,
        /// Its value.
        value: f64,
    },
    /// Every weight is 0.
    NoWeight,
    /// Not one weight per sample.
    WeightsLength {
        /// Weights given.
        weights: u64,
        /// Samples of the dataset.
        samples: u64,
    },
    /// An epoch that is longer than the sampler can make it.
    Length {
        /// As given.
        length: u64,
        /// The longest.
        most: u64,
        /// What limits it.
        limit: LengthLimit,
    },
    /// A sample number beyond the dataset.
    Index {
        /// Where in the list, counted from 0.
        position: u64,
        /// The number.
        index: u64,
        /// Samples of the dataset.
        samples: u64,
    },
    /// A list of no sample.
    NoIndices,
    /// An expression that does not parse, or compares what cannot be compared.
    Expression {
        /// The expression.
        text: String,
        /// The character, counted from 1.
        at: usize,
        /// What is wrong there.
        problem: String,
        /// What would be right.
        remedy: String,
    },
    /// The dataset has no such column.
    UnknownColumn {
        /// The option that names it.
        option: &'static str,
        /// As given.
        column: String,
        /// The character of the expression, counted from 1, where it is part of one.
        at: Option<usize>,
        /// The columns that can be named.
        known: Vec<String>,
    },
    /// A column whose values cannot be used for this.
    ColumnType {
        /// The option that names it.
        option: &'static str,
        /// Name of the column.
        column: String,
        /// Its type in words.
        found: String,
        /// What is needed.
        wanted: &'static str,
    },
    /// A sample without a value in the column.
    NoValue {
        /// The option that names the column.
        option: &'static str,
        /// Name of the column.
        column: String,
        /// The sample.
        sample: u64,
    },
    /// A filter that no sample passes.
    NothingSelected {
        /// The expression.
        text: String,
        /// Samples of the dataset.
        samples: u64,
    },
}

/// What limits the length of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LengthLimit {
    /// Without replacement, each sample of positive weight occurs at most once.
    PositiveWeights,
    /// Each sample occurs at most `repeats` times.
    Repeats,
}

impl SamplerError {
    /// For a name that no sampler has.
    pub fn unknown(name: &str) -> Self {
        match name {
            "mixture" => Self::Mixture,
            name => Self::UnknownName { name: name.to_owned() },
        }
    }

    /// The option that it concerns; `None`: the name of the sampler.
    pub fn option(&self) -> Option<&str> {
        match self {
            Self::UnknownName { .. } | Self::Mixture => None,
            Self::UnknownOption { option, .. } => Some(option),
            Self::Missing { option, .. }
            | Self::Value { option, .. }
            | Self::UnknownColumn { option, .. }
            | Self::ColumnType { option, .. }
            | Self::NoValue { option, .. } => Some(option),
            Self::Weight { .. } | Self::NoWeight | Self::WeightsLength { .. } => Some("weights"),
            Self::Length { .. } => Some("length"),
            Self::Index { .. } | Self::NoIndices => Some("indices"),
            Self::Expression { .. } | Self::NothingSelected { .. } => Some("where"),
        }
    }

    /// What is wrong, with the value.
    pub fn problem(&self) -> String {
        match self {
            Self::UnknownName { name } => format!("there is no sampler {name:?}"),
            Self::Mixture => {
                "a \"mixture\" of several datasets in one loader is not supported yet".to_owned()
            }
            Self::UnknownOption { sampler, option } => {
                format!("sampler {sampler:?} has no option `{option}`")
            }
            Self::Missing { sampler, option } => {
                format!("sampler {sampler:?} needs the option `{option}`")
            }
            Self::Value { sampler, option, given } => {
                format!("option `{option}` of sampler {sampler:?} is {given}")
            }
            Self::Weight { sample, value } => format!("the weight of sample {sample} is {value}"),
            Self::NoWeight => "every weight is 0".to_owned(),
            Self::WeightsLength { weights, samples } => {
                format!("there are {weights} weights for {samples} samples")
            }
            Self::Length { length, limit, .. } => {
                let limit = match limit {
                    LengthLimit::PositiveWeights => {
                        "without replacement a sample of positive weight occurs at most once"
                    }
                    LengthLimit::Repeats => "a sample occurs at most `repeats` times",
                };
                format!("`length` is {length}, and {limit}")
            }
            Self::Index { position, index, .. } => {
                format!("entry {position} of `indices` is sample {index}")
            }
            Self::NoIndices => "`indices` is empty".to_owned(),
            Self::Expression { text, at, problem, .. } => {
                format!("{text:?}, character {at}: {problem}")
            }
            Self::UnknownColumn { column, at: None, .. } => {
                format!("there is no column {column:?}")
            }
            Self::UnknownColumn { column, at: Some(at), .. } => {
                format!("character {at} of the expression: there is no column {column:?}")
            }
            Self::ColumnType { column, found, .. } => format!("column {column:?} holds {found}"),
            Self::NoValue { column, sample, .. } => {
                format!("column {column:?} has no value for sample {sample}")
            }
            Self::NothingSelected { text, samples } => {
                format!("none of the {samples} samples passes {text:?}")
            }
        }
    }

    /// What would be right.
    pub fn remedy(&self) -> String {
        match self {
            Self::UnknownName { name } => {
                let known: Vec<&str> = DECLARATIONS.iter().map(|it| it.name).collect();
                one_of("known samplers are", name, &known)
            }
            Self::Mixture => "merge them into one with `meetpoint dataset merge`".to_owned(),
            Self::UnknownOption { sampler, option } => {
                let options = declaration_of(sampler).map_or(&[][..], |it| it.options);
                match options {
                    [] => "it has no options".to_owned(),
                    _ => {
                        let known: Vec<&str> = options.iter().map(|it| it.name).collect();
                        one_of("its options are", option, &known)
                    }
                }
            }
            Self::Missing { sampler, option } | Self::Value { sampler, option, .. } => {
                let options = declaration_of(sampler).map_or(&[][..], |it| it.options);
                let spec = options.iter().find(|spec| spec.name == *option);
                spec.map_or_else(String::new, |spec| format!("it takes {}", spec.takes))
            }
            Self::Weight { .. } => "weights are finite and at least 0".to_owned(),
            Self::NoWeight => "give a weight above 0 to at least one sample".to_owned(),
            Self::WeightsLength { samples, .. } => format!("give {samples}, one per sample"),
            Self::Length { most, .. } => format!("it takes a whole number from 1 to {most}"),
            Self::Index { samples, .. } => format!("samples are 0..{samples}"),
            Self::NoIndices => "name at least one sample".to_owned(),
            Self::Expression { remedy, .. } => remedy.clone(),
            Self::UnknownColumn { column, known, .. } => {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                one_of("columns are", column, &known)
            }
            Self::ColumnType { wanted, .. } => format!("name a column of {wanted}"),
            Self::NoValue { .. } => {
                "give every sample a value, or exclude such samples from the dataset".to_owned()
            }
            Self::NothingSelected { .. } => "widen the expression".to_owned(),
        }
    }
}

/// The known words, and the nearest of them where the given one looks like a slip.
fn one_of(what: &str, given: &str, known: &[&str]) -> String {
    let all = format!("{what} {}", known.join(", "));
    match nearest(given, known) {
        Some(meant) => format!("did you mean {meant:?}? {all}"),
        None => all,
    }
}

impl fmt::Display for SamplerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.problem(), self.remedy())
    }
}

impl std::error::Error for SamplerError {}
