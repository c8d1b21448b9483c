//! How the samples of an epoch follow from their positions: what samplers amount to on a dataset.

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
}
