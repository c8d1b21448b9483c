//! `sequential`: every sample once, in the order of the dataset.

use super::Data;
use super::columns::SampleColumns;
use super::declaration::{Declaration, Value};
use super::error::SamplerError;
use super::rule::Rule;
use super::values::Values;

/// Every sample once, in the order of the dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sequential;

impl Data for Sequential {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "sequential",
        summary: "every sample once, in the order of the dataset",
        options: &[],
    };

    fn read(_: &Values) -> Result<Self, SamplerError> {
        Ok(Self)
    }

    fn options(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    fn is_same_in_every_epoch(&self) -> bool {
        true
    }

    fn rule<C: SampleColumns>(&self, _: &C) -> Result<Rule, C::Error> {
        Ok(Rule::Every { shuffle: false })
    }

    fn memory_bytes(&self, _: u64) -> u64 {
        0
    }
}
