//! Samples of a dataset, drawn at random without replacement.

use super::copy::{CopySummary, DatasetWrite};
use super::copy_options::{CopyOptions, Progress};
use super::draw::{Strata, apportion};
use super::gather::{Input, InputSample};
use crate::Error;
use crate::error::OperationError;
use crate::share::Share;
use meetpoint_diagnose::Setting;
use meetpoint_prepare::Dataset;
use std::path::Path;

/// The number of samples to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// This number of samples.
    Samples(u64),
    /// This fraction, at most [`Share::ONE`], to the nearest sample.
    Fraction(Share),
}

/// Draws samples of `from` and writes them to `to`, in the order they have in `from`.
///
/// With `per_class` the amount applies to each label, and to the samples without a label; a label
/// with fewer samples yields all of them. Equal fractions of the classes add up to that fraction of
/// all.
pub fn sample(
    from: &Path,
    to: &Path,
    amount: Amount,
    per_class: bool,
    seed: u64,
    options: &CopyOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<CopySummary, Error> {
    let dataset = Dataset::open(from)?;
    let strata = match per_class {
        true => Strata::by_label(&dataset, Setting::PerClass)?,
        false => Strata::whole(&dataset),
    };
    let sizes = sizes(&strata.counts, amount, per_class)?;
    let samples: u64 = sizes.iter().sum();
    if samples == 0 {
        let what = "the sample that was asked for".to_owned();
        return Err(OperationError::Empty { what, remedy: "ask for more".into() }.into());
    }
    let inputs = [Input::plain(dataset)];
    let dataset = &inputs[0].dataset;
    let mut picks = strata.places(dataset, seed).filter_map(|place| match place {
        Ok(place) if place.place >= sizes[place.stratum] => None,
        Ok(place) => Some(Ok(InputSample { input: 0, sample: place.sample })),
        Err(error) => Some(Err(error)),
    });
    let said = match amount {
        Amount::Samples(count) => ("n", count.to_string()),
        Amount::Fraction(share) => ("fraction", share.to_string()),
    };
    let write = DatasetWrite {
        name: "sample",
        options: vec![said, ("per-class", per_class.to_string()), ("seed", seed.to_string())],
        inputs: &inputs,
        samples,
        labels: dataset.manifest().labels.clone(),
    };
    write.copy(to, &mut picks, options, progress)
}

/// Number of samples to draw from each stratum.
fn sizes(counts: &[u64], amount: Amount, per_class: bool) -> Result<Vec<u64>, OperationError> {
    let available = counts.iter().sum();
    match amount {
        Amount::Samples(asked) if !per_class && asked > available => {
            Err(OperationError::TooMany { asked, available })
        }
        Amount::Samples(asked) => Ok(counts.iter().map(|count| asked.min(*count)).collect()),
        Amount::Fraction(share) if share > Share::ONE => {
            Err(OperationError::Fraction { asked: share })
        }
        Amount::Fraction(share) => match share.rest() {
            None => Ok(counts.to_vec()),
            Some(rest) => {
                let parts = apportion(counts, &[share, rest]);
                Ok(parts.into_iter().map(|sizes| sizes[0]).collect())
            }
        },
    }
}
