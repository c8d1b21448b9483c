//! How the samples of an epoch follow from their positions: what samplers amount to on a dataset.

use super::buckets::Buckets;
use std::sync::Arc;

/// How the samples of an epoch follow from their positions. Lengths count positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// Every sample once.
    Every {
        /// In a different order in each epoch; otherwise in that of the dataset.
        shuffle: bool,
    },
    /// Listed samples, each as often as the list contains it.
    Listed {
        /// Sample numbers.
        list: Arc<[u64]>,
        /// In a different order in each epoch; otherwise in that of the list.
        shuffle: bool,
    },
    /// Independent draws, in proportion to weights.
    WithReplacement {
        /// Of each sample; their sum is below 2^63.
        weights: Arc<[u64]>,
        /// Positions of an epoch.
        length: u64,
    },
    /// Successive draws in proportion to the weights of the samples that are left.
    WithoutReplacement {
        /// Of each sample; their sum is below 2^63.
        weights: Arc<[u64]>,
        /// Positions of an epoch, at most the number of positive weights.
        length: u64,
    },
    /// The beginning of a permutation, each sample several times in succession.
    Repeated {
        /// How many times.
        repeats: u64,
        /// Positions of an epoch, at most samples · repeats.
        length: u64,
    },
    /// Every sample once, in batches of samples of one bucket each.
    Bucketed {
        /// The samples of each bucket.
        buckets: Buckets,
        /// In a different order in each epoch.
        shuffle: bool,
    },
    /// Several datasets, evenly interleaved.
    Mixture {
        /// Of each dataset, in their order.
        datasets: Arc<[DatasetShare]>,
        /// In an order of its own in each epoch; otherwise in that of the dataset.
        shuffle: bool,
    },
}

/// A dataset's part of a mixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatasetShare {
    /// Samples that it has.
    pub samples: u64,
    /// Its positions of an epoch. Where there are more than samples, it begins again.
    pub length: u64,
}

impl DatasetShare {
    /// How often a sample of it occurs at most.
    pub(super) fn passes(&self) -> u64 {
        if self.samples == 0 { 0 } else { self.length.div_ceil(self.samples) }
    }
}
