//! `class_balanced`: draws every class of a column equally often.

use super::Data;
use super::column_type::ColumnType;
use super::columns::{SampleColumns, column_type};
use super::declaration::{Declaration, OptionSpec, OptionType, Value};
use super::error::SamplerError;
use super::rule::Rule;
use super::values::Values;
use super::weights::whole_weights;
use std::collections::HashMap;

/// Independent draws in which all classes of a column are equally likely, and all samples of a
/// class as well: [`super::Weighted`] with the weight 1 / (samples of the class).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassBalanced {
    /// Column of whole numbers, a class for each sample.
    pub column: String,
    /// Positions of an epoch. `None`: the number of samples.
    pub length: Option<u64>,
}

impl Data for ClassBalanced {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "class_balanced",
        summary: "every class of a column equally often, with replacement",
        options: &[
            OptionSpec {
                name: "column",
                takes: OptionType::Column,
                default: Some("\"label\""),
                summary: "column of whole numbers, a class for each sample",
            },
            OptionSpec {
                name: "length",
                takes: OptionType::Whole { least: 1, most: 1 << 48 },
                default: Some("number of samples"),
                summary: "positions of an epoch",
            },
        ],
    };

    fn read(values: &Values) -> Result<Self, SamplerError> {
        let column = values.text("column").unwrap_or_else(|| "label".to_owned());
        Ok(Self { column, length: values.whole("length") })
    }

    fn options(&self) -> Vec<(&'static str, Value)> {
        let mut options = vec![("column", Value::Text(self.column.clone()))];
        options.extend(self.length.map(|length| ("length", Value::Whole(length))));
        options
    }

    fn is_same_in_every_epoch(&self) -> bool {
        false
    }

    fn rule<C: SampleColumns>(&self, columns: &C) -> Result<Rule, C::Error> {
        let option = "column";
        match column_type(columns, option, &self.column)? {
            ColumnType::Whole => {}
            found @ (ColumnType::Number
            | ColumnType::Text
            | ColumnType::Flag
            | ColumnType::Other(_)) => {
                let (column, found) = (self.column.clone(), found.words().to_owned());
                let wanted = "whole numbers";
                return Err(SamplerError::ColumnType { option, column, found, wanted }.into());
            }
        }
        let classes = columns.whole_numbers(&self.column)?;
        let mut counts: HashMap<i64, u64> = HashMap::new();
        for (sample, class) in (0..).zip(&classes) {
            let missing = || SamplerError::NoValue { option, column: self.column.clone(), sample };
            *counts.entry(class.ok_or_else(missing)?).or_default() += 1;
        }
        let weight = |class: &i64| 1.0 / counts[class] as f64;
        let weights: Vec<f64> = classes.iter().flatten().map(weight).collect();
        let length = self.length.unwrap_or(columns.samples());
        Ok(Rule::WithReplacement { weights: whole_weights(&weights)?, length })
    }

    fn memory_bytes(&self, samples: u64) -> u64 {
        // The classes as read; their counts, in a growing map with an entry per sample at worst;
        // weights and integer weights. Cumulative weights need less.
        samples.saturating_mul(16 + 64 + 8 + 8)
    }
}
