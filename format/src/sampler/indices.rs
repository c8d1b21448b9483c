//! `indices`: the samples of a list, each as often as it is listed.

use super::Data;
use super::columns::SampleColumns;
use super::declaration::{Declaration, OptionSpec, OptionType, Value};
use super::error::SamplerError;
use super::rule::Rule;
use super::values::Values;
use std::sync::Arc;

/// The samples of a list, each as often as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indices {
    /// Sample numbers, counted from 0.
    pub indices: Arc<[u64]>,
    /// Whether each epoch has a different order; otherwise the order is that of the list.
    pub shuffle: bool,
}

impl Data for Indices {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "indices",
        summary: "the samples in a list, each as often as the list contains it",
        options: &[
            OptionSpec {
                name: "indices",
                takes: OptionType::Indices,
                default: None,
                summary: "sample numbers, counted from 0",
            },
            OptionSpec {
                name: "shuffle",
                takes: OptionType::Flag,
                default: Some("false"),
                summary: "whether each epoch has a different order",
            },
        ],
    };

    fn read(values: &Values) -> Result<Self, SamplerError> {
        let indices = values.wholes("indices").unwrap_or_default();
        if indices.is_empty() {
            return Err(SamplerError::NoIndices);
        }
        Ok(Self { indices, shuffle: values.flag("shuffle").unwrap_or(false) })
    }

    fn options(&self) -> Vec<(&'static str, Value)> {
        let indices = Value::Wholes(Arc::clone(&self.indices));
        vec![("indices", indices), ("shuffle", Value::Flag(self.shuffle))]
    }

    fn is_same_in_every_epoch(&self) -> bool {
        !self.shuffle
    }

    fn rule<C: SampleColumns>(&self, columns: &C) -> Result<Rule, C::Error> {
        let samples = columns.samples();
        let mut listed = (0..).zip(self.indices.iter().copied());
        if let Some((position, index)) = listed.find(|(_, index)| *index >= samples) {
            return Err(SamplerError::Index { position, index, samples }.into());
        }
        Ok(Rule::Listed { list: Arc::clone(&self.indices), shuffle: self.shuffle })
    }

    fn memory_bytes(&self, samples: u64) -> u64 {
        // A bit for each sample, to find repeats; the devices' shares, while they grow and as
        // lists.
        (self.indices.len() as u64).saturating_mul(8 + 8).saturating_add(samples.div_ceil(8))
    }
}
