//! `shuffled`: every sample once, in a different order in each epoch.

use super::Data;
use super::columns::SampleColumns;
use super::declaration::{Declaration, Value};
use super::error::SamplerError;
use super::rule::Rule;
use super::values::Values;

/// Every sample once, in the order of a permutation keyed by seed and epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shuffled;

impl Data for Shuffled {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "shuffled",
        summary: "every sample once, in a different order in each epoch",
        options: &[],
    };

    fn read(_: &Values) -> Result<Self, SamplerError> {
        Ok(Self)
    }

    fn options(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    fn is_same_in_every_epoch(&self) -> bool {
        false
    }

    fn rule<C: SampleColumns>(&self, _: &C) -> Result<Rule, C::Error> {
        Ok(Rule::Every { shuffle: true })
    }

    fn memory_bytes(&self, _: u64) -> u64 {
        0
    }
}
