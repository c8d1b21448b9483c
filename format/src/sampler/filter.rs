//! `filter`: the samples for which an expression over columns is true.

use super::Data;
use super::columns::SampleColumns;
use super::declaration::{Declaration, OptionSpec, OptionType, Value};
use super::error::SamplerError;
use super::expression::Expression;
use super::rule::Rule;
use super::values::Values;

/// The samples for which an expression over columns is true, each once.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    /// The expression.
    pub expression: Expression,
    /// Whether each epoch has a different order; otherwise the order is that of the dataset.
    pub shuffle: bool,
}

impl Data for Filter {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "filter",
        summary: "the samples for which an expression over columns is true",
        options: &[
            OptionSpec {
                name: "where",
                takes: OptionType::Expression,
                default: None,
                summary: "expression over columns",
            },
            OptionSpec {
                name: "shuffle",
                takes: OptionType::Flag,
                default: Some("true"),
                summary: "whether each epoch has a different order",
            },
        ],
    };

    fn read(values: &Values) -> Result<Self, SamplerError> {
        let expression = Expression::parse(&values.text("where").unwrap_or_default())?;
        Ok(Self { expression, shuffle: values.flag("shuffle").unwrap_or(true) })
    }

    fn options(&self) -> Vec<(&'static str, Value)> {
        let expression = Value::Text(self.expression.text().to_owned());
        vec![("where", expression), ("shuffle", Value::Flag(self.shuffle))]
    }

    fn is_same_in_every_epoch(&self) -> bool {
        !self.shuffle
    }

    fn rule<C: SampleColumns>(&self, columns: &C) -> Result<Rule, C::Error> {
        self.expression.check(&columns.columns())?;
        let list = columns.select(&self.expression)?;
        if list.is_empty() {
            let (text, samples) = (self.expression.text().to_owned(), columns.samples());
            return Err(SamplerError::NothingSelected { text, samples }.into());
        }
        Ok(Rule::Listed { list: list.into(), shuffle: self.shuffle })
    }

    fn memory_bytes(&self, samples: u64) -> u64 {
        // Every sample at worst: as found, as a list, and as the devices' shares.
        samples.saturating_mul(8 + 8 + 8)
    }
}
