//! Why a sampler cannot be used: a typed cause, with the option that it concerns and the remedy.

use super::{DECLARATIONS, declaration_of};
use meetpoint_diagnose::{Diagnose, Remedy, nearest};
use std::fmt;

/// A sampler whose options are invalid or do not match the dataset.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SamplerError {
    /// No sampler has this name.
    UnknownName {
        /// The given value.
        name: String,
    },
    /// The number of weights differs from the number of datasets.
    DatasetWeights {
        /// Weights given.
        weights: usize,
        /// Datasets of the loader.
        datasets: usize,
    },
    /// The weight of a dataset is negative, infinite or not a number.
    DatasetWeight {
        /// Index of the dataset.
        dataset: usize,
        /// Its value.
        value: f64,
    },
    /// A dataset with a positive weight that has no samples.
    NothingToMix {
        /// Index of the dataset.
        dataset: usize,
    },
    /// A length, although another stopping rule determines the end of an epoch.
    LengthAndStop {
        /// The stopping rule.
        stop: &'static str,
    },
    /// The sampler has no such option.
    UnknownOption {
        /// Name of the sampler.
        sampler: &'static str,
        /// The given value.
        option: String,
    },
    /// A required option is missing.
    Missing {
        /// Name of the sampler.
        sampler: &'static str,
        /// The option.
        option: &'static str,
    },
    /// A value that the option does not accept.
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
        /// Index of the sample.
        sample: u64,
        /// Its value.
        value: f64,
    },
    /// Every weight is 0.
    NoWeight,
    /// The number of weights differs from the number of samples.
    WeightsLength {
        /// Weights given.
        weights: u64,
        /// Samples of the dataset.
        samples: u64,
    },
    /// An epoch that is longer than the sampler allows.
    Length {
        /// The given value.
        length: u64,
        /// The longest.
        most: u64,
        /// The reason for the limit.
        limit: LengthLimit,
    },
    /// A sample index that is out of range.
    Index {
        /// Position in the list, counted from 0.
        position: u64,
        /// The number.
        index: u64,
        /// Samples of the dataset.
        samples: u64,
    },
    /// An empty list of samples.
    NoIndices,
    /// An expression that does not parse, or compares incompatible types.
    Expression {
        /// The expression.
        text: String,
        /// The character, counted from 1.
        at: usize,
        /// What is wrong there.
        problem: String,
        /// The remedy.
        remedy: String,
    },
    /// A filter whose result overflows for a sample.
    Overflow {
        /// The expression.
        text: String,
        /// The character, counted from 1.
        at: usize,
        /// The problem of the calculation.
        problem: String,
    },
    /// The dataset has no such column.
    UnknownColumn {
        /// The option that names it.
        option: &'static str,
        /// The given value.
        column: String,
        /// Position of the character in the expression, counted from 1, if the name is part of one.
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
        /// The required type.
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
    /// A width or height that no picture has.
    Side {
        /// The option that names the column.
        option: &'static str,
        /// Name of the column.
        column: String,
        /// The sample.
        sample: u64,
        /// Its value.
        value: i64,
    },
    /// A filter that no sample passes.
    NothingSelected {
        /// The expression.
        text: String,
        /// Samples of the dataset.
        samples: u64,
    },
}

/// The limit of the length of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LengthLimit {
    /// Without replacement, each sample of positive weight occurs at most once.
    PositiveWeights,
    /// Each sample occurs at most `repeats` times.
    Repeats,
    /// A mixture has at most as many positions as can be interleaved.
    Mixture,
}

impl SamplerError {
    /// The error for an unknown name.
    pub fn unknown(name: &str) -> Self {
        Self::UnknownName { name: name.to_owned() }
    }

    /// The option that the error concerns; `None`: the name of the sampler.
    pub fn option(&self) -> Option<&str> {
        match self {
            Self::UnknownName { .. } => None,
            Self::UnknownOption { option, .. } => Some(option),
            Self::Missing { option, .. }
            | Self::Value { option, .. }
            | Self::UnknownColumn { option, .. }
            | Self::ColumnType { option, .. }
            | Self::Side { option, .. }
            | Self::NoValue { option, .. } => Some(option),
            Self::Weight { .. }
            | Self::NoWeight
            | Self::WeightsLength { .. }
            | Self::DatasetWeights { .. }
            | Self::DatasetWeight { .. }
            | Self::NothingToMix { .. } => Some("weights"),
            Self::Length { .. } | Self::LengthAndStop { .. } => Some("length"),
            Self::Index { .. } | Self::NoIndices => Some("indices"),
            Self::Expression { .. } | Self::Overflow { .. } | Self::NothingSelected { .. } => {
                Some("where")
            }
        }
    }

    /// The remedy.
    pub fn instruction(&self) -> Remedy {
        let text = match self {
            Self::UnknownName { name } => {
                let known: Vec<&str> = DECLARATIONS.iter().map(|it| it.name).collect();
                one_of("sampler", name, &known)
            }
            Self::DatasetWeights { datasets, .. } => {
                format!("give {datasets}, one per dataset, in the order of the datasets")
            }
            Self::NothingToMix { .. } => "set its weight to 0, or leave the dataset out".to_owned(),
            Self::LengthAndStop { .. } => {
                "leave `length` out, or set `stop` to \"size\"".to_owned()
            }
            Self::UnknownOption { sampler, option } => {
                let options = declaration_of(sampler).map_or(&[][..], |it| it.options);
                match options {
                    [] => format!("leave it out: {sampler:?} has no options"),
                    _ => {
                        let known: Vec<&str> = options.iter().map(|it| it.name).collect();
                        one_of("option", option, &known)
                    }
                }
            }
            Self::Missing { sampler, option } | Self::Value { sampler, option, .. } => {
                let options = declaration_of(sampler).map_or(&[][..], |it| it.options);
                let takes = options.iter().find(|spec| spec.name == *option).map(|it| it.takes);
                let takes = takes.map_or_else(|| "another value".to_owned(), |it| it.to_string());
                format!("set `{option}` to {takes}")
            }
            Self::Weight { .. } | Self::DatasetWeight { .. } => {
                "set it to a finite number of at least 0".to_owned()
            }
            Self::NoWeight => "set at least one weight to a number above 0".to_owned(),
            Self::WeightsLength { samples, .. } => format!("give {samples}, one per sample"),
            Self::Length { most, .. } => {
                format!("set `length` to a whole number from 1 to {most}")
            }
            Self::Index { samples: 0, .. } => "name a dataset that has samples".to_owned(),
            Self::Index { samples, .. } => {
                format!("use sample numbers from 0 to {}", samples - 1)
            }
            Self::NoIndices => "name at least one sample".to_owned(),
            Self::Expression { remedy, .. } => remedy.clone(),
            Self::Overflow { .. } => {
                "change the expression so that every sample has a result of 64 bits".to_owned()
            }
            Self::UnknownColumn { column, known, .. } => {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                one_of("column", column, &known)
            }
            Self::ColumnType { wanted, .. } => format!("name a column of {wanted}"),
            Self::NoValue { .. } => {
                "give every sample a value, or exclude such samples from the dataset".to_owned()
            }
            Self::Side { .. } => {
                "correct the value and pack again, or leave out `width` and `height` to read the \
                 sizes from the files"
                    .to_owned()
            }
            Self::NothingSelected { .. } => "widen the expression".to_owned(),
        };
        text.into()
    }
}

/// The known words to choose from, with the most similar one first if the given word looks like a
/// typo.
fn one_of(what: &str, given: &str, known: &[&str]) -> String {
    let all = format!("choose one {what} of {}", known.join(", "));
    match nearest(given, known) {
        Some(meant) => format!("did you mean {meant:?}? {all}"),
        None => all,
    }
}

/// What is wrong, with the value.
impl fmt::Display for SamplerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName { name } => write!(f, "there is no sampler {name:?}"),
            Self::DatasetWeights { weights, datasets } => {
                write!(f, "the number of weights is {weights}, and that of datasets {datasets}")
            }
            Self::DatasetWeight { dataset, value } => {
                write!(f, "the weight of dataset {dataset} is {value}")
            }
            Self::NothingToMix { dataset } => {
                write!(f, "dataset {dataset} has a weight above 0 and no samples")
            }
            Self::LengthAndStop { stop } => {
                write!(f, "`length` is set, and `stop` is {stop:?}, which sets the length")
            }
            Self::UnknownOption { sampler, option } => {
                write!(f, "sampler {sampler:?} has no option `{option}`")
            }
            Self::Missing { sampler, option } => {
                write!(f, "sampler {sampler:?} needs the option `{option}`")
            }
            Self::Value { sampler, option, given } => {
                write!(f, "option `{option}` of sampler {sampler:?} is {given}")
            }
            Self::Weight { sample, value } => {
                write!(f, "the weight of sample {sample} is {value}")
            }
            Self::NoWeight => write!(f, "every weight is 0"),
            Self::WeightsLength { weights, samples } => {
                write!(f, "there are {weights} weights for {samples} samples")
            }
            Self::Length { length, limit, .. } => {
                let limit = match limit {
                    LengthLimit::PositiveWeights => {
                        "without replacement a sample of positive weight occurs at most once"
                    }
                    LengthLimit::Repeats => "a sample occurs at most `repeats` times",
                    LengthLimit::Mixture => "a mixture has at most 2^47 positions",
                };
                write!(f, "`length` is {length}, and {limit}")
            }
            Self::Index { position, index, samples } => write!(
                f,
                "`indices` has sample {index} at position {position}, but the dataset has \
                 {samples} samples, counted from 0"
            ),
            Self::NoIndices => write!(f, "`indices` is empty"),
            Self::Expression { text, at, problem, .. } | Self::Overflow { text, at, problem } => {
                write!(f, "{text:?}, character {at}: {problem}")
            }
            Self::UnknownColumn { column, at: None, .. } => {
                write!(f, "there is no column {column:?}")
            }
            Self::UnknownColumn { column, at: Some(at), .. } => {
                write!(f, "character {at} of the expression: there is no column {column:?}")
            }
            Self::ColumnType { column, found, .. } => {
                write!(f, "column {column:?} holds {found}")
            }
            Self::NoValue { column, sample, .. } => {
                write!(f, "column {column:?} has no value for sample {sample}")
            }
            Self::Side { column, sample, value, .. } => {
                write!(f, "column {column:?} is {value} for sample {sample}, not a side in pixels")
            }
            Self::NothingSelected { text, samples } => {
                write!(f, "none of the {samples} samples passes {text:?}")
            }
        }
    }
}

impl Diagnose for SamplerError {
    fn cause(&self) -> &'static str {
        match self {
            Self::UnknownName { .. } => "unknown_sampler",
            Self::DatasetWeights { .. }
            | Self::DatasetWeight { .. }
            | Self::NothingToMix { .. } => "dataset_weights",
            Self::LengthAndStop { .. } => "length_and_stop",
            Self::UnknownOption { .. } => "unknown_sampler_option",
            Self::Missing { .. } => "sampler_option_missing",
            Self::Value { .. } => "sampler_option",
            Self::Weight { .. } | Self::NoWeight | Self::WeightsLength { .. } => "sampler_weights",
            Self::Length { .. } => "sampler_length",
            Self::Index { .. } | Self::NoIndices => "sampler_indices",
            Self::Expression { .. } => "filter_expression",
            Self::Overflow { .. } => "filter_overflow",
            Self::UnknownColumn { .. } => "unknown_column",
            Self::ColumnType { .. } => "column_type",
            Self::NoValue { .. } => "column_value_missing",
            Self::Side { .. } => "column_value_range",
            Self::NothingSelected { .. } => "nothing_selected",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(self.instruction())
    }
}

impl std::error::Error for SamplerError {}
