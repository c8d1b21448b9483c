//! The samples of a dataset that are measured: the first positions of a seeded permutation, so that
//! a larger selection contains the smaller one.

use crate::Error;
use meetpoint_format::order::Order;
use meetpoint_prepare::Dataset;
use std::sync::Arc;

/// Minimum number of samples that are measured.
pub const SAMPLES_MIN: u64 = 2;

/// The samples of a dataset that are measured.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    pub(super) dataset: Arc<Dataset>,
    /// Their indices.
    pub(super) samples: Vec<u64>,
    /// Stored bytes of each.
    pub(super) source_bytes: Vec<u64>,
}

impl Choice {
    /// Chooses a given number of samples.
    pub(super) fn new(dataset: &Arc<Dataset>, count: u64, seed: u64) -> Result<Self, Error> {
        let order = Order::shuffled(dataset.len(), seed, 0);
        let samples: Vec<u64> = (0..count).map(|position| order.sample_at(position)).collect();
        let bytes = |&sample: &u64| Ok(dataset.locate(sample)?.bytes);
        let source_bytes = samples.iter().map(bytes).collect::<Result<_, Error>>()?;
        Ok(Self { dataset: Arc::clone(dataset), samples, source_bytes })
    }

    pub(super) fn len(&self) -> usize {
        self.samples.len()
    }

    /// The file of a chosen sample.
    pub(super) fn file(&self, index: usize) -> Result<Vec<u8>, Error> {
        Ok(self.dataset.read_file(self.samples[index])?)
    }

    /// The key of a chosen sample, for an error.
    pub(super) fn key(&self, index: usize) -> String {
        let sample = self.samples[index];
        self.dataset.key(sample).unwrap_or_else(|_| format!("at index {sample}"))
    }
}
