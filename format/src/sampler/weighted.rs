//! `weighted`: samples in proportion to weights, with or without replacement.

use super::Data;
use super::column_type::ColumnType;
use super::columns::{SampleColumns, column_type};
use super::declaration::{Declaration, OptionSpec, OptionType, Value};
use super::error::{LengthLimit, SamplerError};
use super::rule::Rule;
use super::values::Values;
use super::weights::whole_weights;
use std::sync::Arc;

/// Samples in proportion to weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Weighted {
    /// The weights.
    pub weights: Weights,
    /// Whether a sample may occur more than once in an epoch.
    pub replacement: bool,
    /// Positions of an epoch. `None`: the number of samples, or, without replacement, the number of
    /// samples with a positive weight.
    pub length: Option<u64>,
}

/// Where the weights of a sampler come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Weights {
    /// One for each sample.
    Numbers(Arc<[f64]>),
    /// The column with this name.
    Column(String),
}

impl Data for Weighted {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "weighted",
        summary: "samples in proportion to weights, with or without replacement",
        options: &[
            OptionSpec {
                name: "weights",
                takes: OptionType::Weights,
                default: None,
                summary: "finite numbers of at least 0, one per sample, not all of them 0",
            },
            OptionSpec {
                name: "replacement",
                takes: OptionType::Flag,
                default: Some("true"),
                summary: "whether a sample may occur more than once in an epoch",
            },
            OptionSpec {
                name: "length",
                takes: OptionType::Whole { least: 1, most: 1 << 48 },
                default: Some("number of samples, or of positive weights without replacement"),
                summary: "positions of an epoch",
            },
        ],
    };

    fn read(values: &Values) -> Result<Self, SamplerError> {
        let column = || Weights::Column(values.text("weights").unwrap_or_default());
        Ok(Self {
            weights: values.numbers("weights").map_or_else(column, Weights::Numbers),
            replacement: values.flag("replacement").unwrap_or(true),
            length: values.whole("length"),
        })
    }

    fn options(&self) -> Vec<(&'static str, Value)> {
        let weights = match &self.weights {
            Weights::Numbers(numbers) => Value::Numbers(Arc::clone(numbers)),
            Weights::Column(column) => Value::Text(column.clone()),
        };
        let mut options =
            vec![("weights", weights), ("replacement", Value::Flag(self.replacement))];
        options.extend(self.length.map(|length| ("length", Value::Whole(length))));
        options
    }

    fn is_same_in_every_epoch(&self) -> bool {
        false
    }

    fn rule<C: SampleColumns>(&self, columns: &C) -> Result<Rule, C::Error> {
        let samples = columns.samples();
        let weights = match &self.weights {
            Weights::Numbers(numbers) if numbers.len() as u64 != samples => {
                let weights = numbers.len() as u64;
                return Err(SamplerError::WeightsLength { weights, samples }.into());
            }
            Weights::Numbers(numbers) => whole_weights(numbers)?,
            Weights::Column(column) => whole_weights(&of_column(columns, column)?)?,
        };
        if self.replacement {
            let length = self.length.unwrap_or(samples);
            return Ok(Rule::WithReplacement { weights, length });
        }
        let most = weights.iter().filter(|weight| **weight > 0).count() as u64;
        let length = self.length.unwrap_or(most);
        if length > most {
            let limit = LengthLimit::PositiveWeights;
            return Err(SamplerError::Length { length, most, limit }.into());
        }
        Ok(Rule::WithoutReplacement { weights, length })
    }

    fn memory_bytes(&self, samples: u64) -> u64 {
        let read = match &self.weights {
            Weights::Numbers(_) => 0,
            // The values as read, and without missing ones.
            Weights::Column(_) => 16 + 8,
        };
        // Integer weights; then cumulative weights with their guide table, or pairs of a sample and
        // its weight, those that are sorted, and the results of three epochs.
        let tables = if self.replacement { 8 + 16 } else { 8 + 16 + 24 + 3 * 8 };
        samples.saturating_mul(read + tables)
    }
}

/// The weights in a column, one for each sample.
fn of_column<C: SampleColumns>(columns: &C, column: &str) -> Result<Vec<f64>, C::Error> {
    let option = "weights";
    match column_type(columns, option, column)? {
        ColumnType::Whole | ColumnType::Number => {}
        found @ (ColumnType::Text | ColumnType::Flag | ColumnType::Other(_)) => {
            let (column, found) = (column.to_owned(), found.words().to_owned());
            let wanted = "numbers";
            return Err(SamplerError::ColumnType { option, column, found, wanted }.into());
        }
    }
    let mut numbers = Vec::new();
    for (sample, number) in (0..).zip(columns.numbers(column)?) {
        let missing = || SamplerError::NoValue { option, column: column.to_owned(), sample };
        numbers.push(number.ok_or_else(missing)?);
    }
    Ok(numbers)
}
