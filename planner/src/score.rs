//! PRESTO's weighted score (Isenko et al., SIGMOD 2022).
//!
//! Preprocessing seconds, storage and throughput are each scaled to 0..=1 over all strategies, the
//! first two so that the smallest value becomes 1, and added with the user's weights.

use crate::results::Measured;
use crate::vocabulary::Cache;
use meetpoint_diagnose::{Diagnose, Remedy};
use serde::Serialize;
use std::cmp::Ordering;

/// The costs and the throughput of a strategy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// Offline seconds.
    pub preprocessing: f64,
    /// Bytes, as defined by a [`StorageMeaning`].
    pub storage: f64,
    /// Samples per second.
    pub throughput: f64,
}

impl Costs {
    /// The costs of a measured strategy, with the throughput from its cache.
    pub fn of(measured: &Measured, meaning: StorageMeaning) -> Self {
        let storage = match meaning {
            StorageMeaning::Extra if measured.point().is_nothing_offline() => 0.0,
            StorageMeaning::Extra | StorageMeaning::Total => measured.stored_bytes,
        };
        let throughput = match measured.cache {
            Cache::Cold => measured.cold_per_second,
            Cache::Page | Cache::Application => measured.per_second,
        };
        Self { preprocessing: measured.offline_seconds, storage, throughput }
    }
}

/// The definition of storage for unchanged files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StorageMeaning {
    /// Bytes that are stored besides the files: 0 for the files themselves, as in PRESTO's code.
    Extra,
    /// Bytes that the strategy reads: for the files themselves, their own bytes, as in PRESTO's
    /// tables.
    Total,
}

/// Weights of the three parts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Weights {
    preprocessing: f64,
    storage: f64,
    throughput: f64,
}

/// Why weights are invalid.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum WeightsError {
    /// One is negative, infinite or not a number.
    #[error("the weight of {name} is {value}")]
    Value {
        /// The name.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// All are 0.
    #[error("all weights are 0, so that every score is 0")]
    AllZero,
}

impl Diagnose for WeightsError {
    fn cause(&self) -> &'static str {
        "weights"
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::Value { .. } => "give it a finite number of 0 or more".into(),
            Self::AllZero => "give at least one a value above 0".into(),
        })
    }
}

impl Weights {
    /// Throughput alone, which the paper calls a good default.
    pub const THROUGHPUT: Self = Self { preprocessing: 0.0, storage: 0.0, throughput: 1.0 };

    /// Weights of preprocessing seconds, storage and throughput.
    pub fn new(preprocessing: f64, storage: f64, throughput: f64) -> Result<Self, WeightsError> {
        let named =
            [("preprocessing", preprocessing), ("storage", storage), ("throughput", throughput)];
        for (name, value) in named {
            if !value.is_finite() || value < 0.0 {
                return Err(WeightsError::Value { name, value });
            }
        }
        if named.iter().all(|(_, value)| *value == 0.0) {
            return Err(WeightsError::AllZero);
        }
        Ok(Self { preprocessing, storage, throughput })
    }
}

/// A strategy with its score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScoredStrategy {
    /// Index of the strategy among those that were passed.
    pub index: usize,
    /// Its score, 0 to the sum of the weights.
    pub score: f64,
    /// Its rank, from 1; strategies with equal scores have equal ranks.
    pub rank: usize,
}

/// Scales a column to 0..=1. A constant column does not distinguish strategies and becomes 0.
fn normalized(column: impl Iterator<Item = f64> + Clone, is_least_best: bool) -> Vec<f64> {
    let (low, high) = column
        .clone()
        .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
    let scaled = column.map(|value| match high > low {
        true if is_least_best => (high - value) / (high - low),
        true => (value - low) / (high - low),
        false => 0.0,
    });
    scaled.collect()
}

/// The strategies with their scores, best first; equal scores in the order in which they were
/// passed.
pub fn score(costs: &[Costs], weights: Weights) -> Vec<ScoredStrategy> {
    let preprocessing = normalized(costs.iter().map(|it| it.preprocessing), true);
    let storage = normalized(costs.iter().map(|it| it.storage), true);
    let throughput = normalized(costs.iter().map(|it| it.throughput), false);
    let score = |index: usize| {
        weights.preprocessing * preprocessing[index]
            + weights.storage * storage[index]
            + weights.throughput * throughput[index]
    };
    let mut scored: Vec<ScoredStrategy> = (0..costs.len())
        .map(|index| ScoredStrategy { index, score: score(index), rank: 0 })
        .collect();
    scored.sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap_or(Ordering::Equal));
    for at in 0..scored.len() {
        let is_tie = at > 0 && scored[at].score == scored[at - 1].score;
        scored[at].rank = if is_tie { scored[at - 1].rank } else { at + 1 };
    }
    scored
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The image pipeline of the paper: unprocessed, concatenated, decoded, resized, centred.
    fn paper(unprocessed_storage: f64) -> Vec<Costs> {
        let preprocessing = [0.0, 11934.0, 12879.0, 14388.0, 14739.0];
        let storage = [unprocessed_storage, 147.0, 842.5, 347.3, 1389.0];
        let throughput = [107.0, 962.0, 746.0, 1789.0, 576.0];
        (0..5)
            .map(|at| Costs {
                preprocessing: preprocessing[at],
                storage: storage[at],
                throughput: throughput[at],
            })
            .collect()
    }

    #[test]
    fn the_scores_of_the_paper_are_met_to_four_decimals() {
        let golden = [
            ((0.0, 0.0, 1.0), 146.9, [0.0, 0.5083, 0.3799, 1.0, 0.2788], 3),
            ((1.0, 0.0, 1.0), 146.9, [1.0, 0.6986, 0.5061, 1.0238, 0.2788], 3),
            ((0.0, 1.0, 1.0), 0.0, [1.0, 1.4025, 0.7734, 1.75, 0.2788], 3),
            ((1.0, 1.0, 1.0), 0.0, [2.0, 1.5928, 0.8995, 1.7738, 0.2788], 0),
            ((0.0, 1.0, 1.0), 146.9, [1.0, 1.5082, 0.8199, 1.8387, 0.2788], 3),
            ((1.0, 1.0, 1.0), 146.9, [2.0, 1.6986, 0.9461, 1.8625, 0.2788], 0),
        ];
        for ((p, s, t), unprocessed, expected, winner) in golden {
            let scored = score(&paper(unprocessed), Weights::new(p, s, t).unwrap());
            assert_eq!((scored[0].index, scored[0].rank), (winner, 1), "{p} {s} {t}");
            for ScoredStrategy { index, score, .. } in &scored {
                let rounded = (score * 1e4).round() / 1e4;
                assert_eq!(rounded, expected[*index], "{p} {s} {t}: strategy {index}");
            }
            assert!(scored.is_sorted_by(|a, b| a.score >= b.score), "best first");
        }
    }

    #[test]
    fn equal_scores_share_a_rank_in_the_given_order() {
        let costs = |throughput| Costs { preprocessing: 1.0, storage: 2.0, throughput };
        let scored = score(&[1.0, 3.0, 3.0, 2.0].map(costs), Weights::THROUGHPUT);
        let order: Vec<_> = scored.iter().map(|it| (it.index, it.rank)).collect();
        assert_eq!(order, [(1, 1), (2, 1), (3, 3), (0, 4)]);
    }

    #[test]
    fn a_constant_column_adds_nothing() {
        let costs = |throughput| Costs { preprocessing: 5.0, storage: 2.0, throughput };
        let scored = score(&[1.0, 2.0].map(costs), Weights::new(3.0, 3.0, 1.0).unwrap());
        assert_eq!(scored.iter().map(|it| it.score).collect::<Vec<_>>(), [1.0, 0.0]);
        assert_eq!(score(&[costs(1.0)], Weights::THROUGHPUT)[0].score, 0.0);
        assert!(score(&[], Weights::THROUGHPUT).is_empty());
    }

    #[test]
    fn weights_that_make_no_score_are_refused() {
        let negative = Weights::new(0.0, -1.0, 1.0);
        assert_eq!(negative, Err(WeightsError::Value { name: "storage", value: -1.0 }));
        assert_eq!(Weights::new(0.0, 0.0, 0.0), Err(WeightsError::AllZero));
        assert!(Weights::new(f64::NAN, 0.0, 1.0).is_err());
        assert!(Weights::new(0.0, 0.0, f64::INFINITY).is_err());
    }
}
