//! `mixture`: several datasets in proportion to weights, evenly interleaved.

use super::Data;
use super::columns::SampleColumns;
use super::declaration::{Declaration, OptionSpec, OptionType, Value};
use super::error::{LengthLimit, SamplerError};
use super::rule::{DatasetShare, Rule};
use super::shares::divide;
use super::values::Values;
use super::weights::whole_weights;
use crate::interleave::INTERLEAVED_MAX;
use std::sync::Arc;

/// Maximum number of datasets of a mixture, and of folders that are served as one dataset.
pub const DATASETS_MAX: usize = 4096;

const STOPS: &[&str] = &["first_exhausted", "all_exhausted", "size"];

/// Several datasets in proportion to weights. Every range of an epoch has them in that proportion,
/// up to rounding.
#[derive(Debug, Clone, PartialEq)]
pub struct Mixture {
    /// One weight for each dataset.
    pub weights: Arc<[f64]>,
    /// When an epoch ends.
    pub stop: Stop,
    /// Whether each epoch has a different order of a dataset's samples; otherwise the order is that
    /// of the dataset.
    pub shuffle: bool,
}

/// When an epoch of a mixture ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// When every sample of one dataset has occurred; no sample occurs twice.
    FirstExhausted,
    /// When every sample of every dataset has occurred; the others begin again.
    AllExhausted,
    /// After the given number of positions.
    Size(u64),
}

impl Stop {
    /// The name in job files and in Python.
    pub fn name(self) -> &'static str {
        match self {
            Self::FirstExhausted => STOPS[0],
            Self::AllExhausted => STOPS[1],
            Self::Size(_) => STOPS[2],
        }
    }
}

impl Data for Mixture {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "mixture",
        summary: "several datasets in proportion to weights, evenly interleaved",
        options: &[
            OptionSpec {
                name: "weights",
                takes: OptionType::DatasetWeights,
                default: None,
                summary: "finite numbers of at least 0, one per dataset, not all of them 0",
            },
            OptionSpec {
                name: "stop",
                takes: OptionType::Word(STOPS),
                default: Some("first_exhausted"),
                summary: "when an epoch ends: at the end of the first dataset, when every sample \
                          of every dataset has occurred, or after `length` positions",
            },
            OptionSpec {
                name: "length",
                takes: OptionType::Whole { least: 1, most: INTERLEAVED_MAX },
                default: Some("determined by `stop`; required if that is \"size\""),
                summary: "positions of an epoch",
            },
            OptionSpec {
                name: "shuffle",
                takes: OptionType::Flag,
                default: Some("true"),
                summary: "whether each epoch has the samples of a dataset in a different order",
            },
        ],
    };

    fn read(values: &Values) -> Result<Self, SamplerError> {
        let given = values.text("stop");
        let length = values.whole("length");
        let stop = match (given.as_deref(), length) {
            (Some("size"), Some(length)) => Stop::Size(length),
            (Some("size"), None) => {
                return Err(SamplerError::Missing { sampler: "mixture", option: "length" });
            }
            (Some("all_exhausted"), None) => Stop::AllExhausted,
            (_, None) => Stop::FirstExhausted,
            (given, Some(_)) => {
                let stop = STOPS.iter().find(|stop| Some(**stop) == given).unwrap_or(&STOPS[0]);
                return Err(SamplerError::LengthAndStop { stop });
            }
        };
        let weights = values.numbers("weights").unwrap_or_default();
        Ok(Self { weights, stop, shuffle: values.flag("shuffle").unwrap_or(true) })
    }

    fn options(&self) -> Vec<(&'static str, Value)> {
        let mut options = vec![
            ("weights", Value::Numbers(Arc::clone(&self.weights))),
            ("stop", Value::Text(self.stop.name().to_owned())),
        ];
        if let Stop::Size(length) = self.stop {
            options.push(("length", Value::Whole(length)));
        }
        options.push(("shuffle", Value::Flag(self.shuffle)));
        options
    }

    fn is_same_in_every_epoch(&self) -> bool {
        !self.shuffle
    }

    fn rule<C: SampleColumns>(&self, columns: &C) -> Result<Rule, C::Error> {
        let samples = columns.datasets();
        let (weights, datasets) = (self.weights.len(), samples.len());
        if weights != datasets {
            return Err(SamplerError::DatasetWeights { weights, datasets }.into());
        }
        let weights = whole_weights(&self.weights).map_err(|error| match error {
            SamplerError::Weight { sample, value } => {
                let dataset = usize::try_from(sample).expect("below the datasets");
                SamplerError::DatasetWeight { dataset, value }
            }
            other => other,
        })?;
        let is_empty = |at: &usize| weights[*at] > 0 && samples[*at] == 0;
        if let Some(dataset) = (0..datasets).find(is_empty) {
            return Err(SamplerError::NothingToMix { dataset }.into());
        }
        let lengths = lengths(&weights, &samples, self.stop);
        let total = lengths.iter().fold(0_u64, |sum, length| sum.saturating_add(*length));
        if total > INTERLEAVED_MAX {
            let (most, limit) = (INTERLEAVED_MAX, LengthLimit::Mixture);
            return Err(SamplerError::Length { length: total, most, limit }.into());
        }
        let shares = samples.into_iter().zip(lengths);
        let shares = shares.map(|(samples, length)| DatasetShare { samples, length });
        Ok(Rule::Mixture { datasets: shares.collect(), shuffle: self.shuffle })
    }

    fn memory_bytes(&self, _: u64) -> u64 {
        // The shares, their interleave, and the orders of three epochs.
        512 * self.weights.len() as u64
    }
}

/// Number of positions of each dataset. A dataset that ends the epoch has as many as samples, and
/// the others are in proportion to it, rounded to the nearest whole number.
fn lengths(weights: &[u64], samples: &[u64], stop: Stop) -> Vec<u64> {
    let mixed = || (0..weights.len()).filter(|at| weights[*at] > 0);
    // Compares samples / weight of two datasets.
    let by_epochs = |a: &usize, b: &usize| {
        let product = |samples_of: usize, weight_of: usize| {
            u128::from(samples[samples_of]) * u128::from(weights[weight_of])
        };
        product(*a, *b).cmp(&product(*b, *a))
    };
    let (ending, most) = match stop {
        Stop::Size(length) => {
            let masses: Vec<u128> = weights.iter().copied().map(u128::from).collect();
            return divide(length, &masses, &vec![u64::MAX; masses.len()]);
        }
        Stop::FirstExhausted => (mixed().min_by(by_epochs), true),
        Stop::AllExhausted => (mixed().max_by(by_epochs), false),
    };
    let ending = ending.expect("a weight is above 0");
    let scaled = |at: usize| {
        let (weight, of_ending) = (u128::from(weights[at]), u128::from(weights[ending]));
        let nearest = (2 * u128::from(samples[ending]) * weight + of_ending) / (2 * of_ending);
        let nearest = u64::try_from(nearest).unwrap_or(u64::MAX);
        match (weights[at], most) {
            (0, _) => 0,
            (_, true) => nearest.min(samples[at]),
            (_, false) => nearest.max(samples[at]),
        }
    };
    (0..weights.len()).map(scaled).collect()
}

#[cfg(test)]
mod tests {
    use super::{Stop, lengths};
    use crate::sampler::weights::whole_weights;

    fn of(weights: &[f64], samples: &[u64], stop: Stop) -> Vec<u64> {
        lengths(&whole_weights(weights).unwrap(), samples, stop)
    }

    #[test]
    fn the_dataset_that_ends_the_epoch_has_each_sample_once() {
        assert_eq!(of(&[0.7, 0.3], &[700, 300], Stop::FirstExhausted), [700, 300]);
        assert_eq!(of(&[0.7, 0.3], &[700, 300], Stop::AllExhausted), [700, 300]);
        assert_eq!(of(&[0.5, 0.5], &[1000, 10], Stop::FirstExhausted), [10, 10]);
        assert_eq!(of(&[0.5, 0.5], &[1000, 10], Stop::AllExhausted), [1000, 1000]);
        assert_eq!(of(&[3.0, 1.0, 0.0], &[9, 5, 7], Stop::FirstExhausted), [9, 3, 0]);
        assert_eq!(of(&[3.0, 1.0, 0.0], &[9, 5, 7], Stop::AllExhausted), [15, 5, 0]);
        assert_eq!(of(&[0.0, 2.0], &[0, 5], Stop::AllExhausted), [0, 5]);
    }

    #[test]
    fn a_size_is_divided_by_the_greatest_remainders() {
        assert_eq!(of(&[1.0, 1.0, 1.0], &[5, 5, 5], Stop::Size(100)), [34, 33, 33]);
        assert_eq!(of(&[0.9, 0.1], &[5, 5], Stop::Size(1000)), [900, 100]);
        assert_eq!(of(&[0.9, 0.1], &[5, 5], Stop::Size(1)), [1, 0]);
    }
}
