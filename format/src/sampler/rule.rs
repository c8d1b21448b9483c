//! How a sampler maps the positions of an epoch to samples of a dataset.

use super::buckets::Buckets;
use std::sync::Arc;

/// How the positions of an epoch are mapped to samples. Lengths count positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// Every sample once.
    Every {
        /// In a different order in each epoch; otherwise in that of the dataset.
        shuffle: bool,
    },
    /// Listed samples, each as often as the list contains it.
    Listed {
        /// Sample indices.
        list: Arc<[u64]>,
        /// In a different order in each epoch; otherwise in that of the list.
        shuffle: bool,
    },
    /// Independent draws, in proportion to weights.
    WithReplacement {
        /// Weight of each sample; their sum is below 2^63.
        weights: Arc<[u64]>,
        /// Positions of an epoch.
        length: u64,
    },
    /// Successive draws in proportion to the weights of the remaining samples.
    WithoutReplacement {
        /// Weight of each sample; their sum is below 2^63.
        weights: Arc<[u64]>,
        /// Positions of an epoch, at most the number of positive weights.
        length: u64,
    },
    /// The beginning of a permutation, each sample several times in succession.
    Repeated {
        /// Number of times.
        repeats: u64,
        /// Positions of an epoch, at most samples · repeats.
        length: u64,
    },
    /// Every sample once, in batches of samples that share a bucket.
    Bucketed {
        /// The samples of each bucket.
        buckets: Buckets,
        /// In a different order in each epoch.
        shuffle: bool,
    },
    /// Several datasets, evenly interleaved.
    Mixture {
        /// The share of each dataset, in order.
        datasets: Arc<[DatasetShare]>,
        /// In a different order in each epoch; otherwise in that of the dataset.
        shuffle: bool,
    },
}

/// A dataset's part of a mixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatasetShare {
    /// Number of its samples.
    pub samples: u64,
    /// Its positions in an epoch. If there are more than samples, it is repeated.
    pub length: u64,
}

impl DatasetShare {
    /// Maximum number of times that one of its samples occurs.
    pub(super) fn passes(&self) -> u64 {
        if self.samples == 0 { 0 } else { self.length.div_ceil(self.samples) }
    }
}
