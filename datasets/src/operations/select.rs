//! Selects samples of a dataset by label, key or index.

use super::copy::{CopySummary, DatasetWrite};
use super::copy_options::{CopyOptions, Progress};
use super::gather::{Input, InputSample};
use crate::Error;
use crate::error::OperationError;
use glob::{MatchOptions, Pattern};
use meetpoint_diagnose::{Command, Remedy};
use meetpoint_prepare::Dataset;
use std::ops::Range;
use std::path::Path;

/// `*` matches within a folder, `**` across folders; case-sensitive.
const MATCH: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// The samples to select: those that match every non-empty list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// Names of labels; a sample must have one of them.
    pub labels: Vec<String>,
    /// Patterns; the key must match one of them.
    pub keys: Vec<String>,
    /// Range of sample indices; an end of `u64::MAX` selects up to the last sample.
    pub range: Option<Range<u64>>,
    /// Select the samples that do not match instead.
    pub invert: bool,
}

/// Writes the matching samples of `from` to `to`, in their order. Takes one bit of memory per
/// sample.
pub fn select(
    from: &Path,
    to: &Path,
    selection: &Selection,
    options: &CopyOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<CopySummary, Error> {
    let inputs = [Input::plain(Dataset::open(from)?)];
    let dataset = &inputs[0].dataset;
    let fitting = Fitting::of(dataset, selection)?;
    if fitting.samples == 0 {
        let what = "the selection".to_owned();
        let remedy = Remedy::run(Command::Cat);
        return Err(OperationError::Empty { what, remedy }.into());
    }
    let mut picks =
        fitting.samples().map(|sample| Ok::<_, Error>(InputSample { input: 0, sample }));
    let write = DatasetWrite {
        name: "select",
        options: said(selection),
        inputs: &inputs,
        samples: fitting.samples,
        labels: dataset.manifest().labels.clone(),
    };
    write.copy(to, &mut picks, options, progress)
}

fn said(selection: &Selection) -> Vec<(&'static str, String)> {
    let mut said = Vec::new();
    said.extend(selection.labels.iter().map(|label| ("label", label.clone())));
    said.extend(selection.keys.iter().map(|key| ("key", key.clone())));
    if let Some(range) = &selection.range {
        said.push(("range", format!("{}..{}", range.start, range.end)));
    }
    if selection.invert {
        said.push(("invert", "true".to_owned()));
    }
    said
}

/// The samples that match, as one bit each.
pub(super) struct Fitting {
    bits: Vec<u64>,
    /// The number of samples.
    pub(super) samples: u64,
}

impl Fitting {
    /// Reads the labels, and the keys if there are patterns.
    pub(super) fn of(dataset: &Dataset, selection: &Selection) -> Result<Self, Error> {
        let labels = label_indices(dataset, &selection.labels)?;
        let patterns = patterns(&selection.keys)?;
        let range = range(dataset, selection)?;
        let words = dataset.len().div_ceil(64);
        let mut bits = vec![0; usize::try_from(words).expect("samples fit into memory as bits")];
        let mut samples = 0;
        for batch in 0..dataset.record_batches() {
            let of_batch = dataset.samples_of(batch);
            let keys = match patterns.is_empty() {
                true => Vec::new(),
                false => dataset.keyed_rows(batch)?.keys,
            };
            for (row, sample) in of_batch.enumerate() {
                let fits = range.contains(&sample)
                    && (labels.is_empty()
                        || dataset.locate(sample)?.label.is_some_and(|l| labels.contains(&l)))
                    && (patterns.is_empty()
                        || patterns.iter().any(|p| p.matches_with(&keys[row], MATCH)));
                if fits != selection.invert {
                    bits[(sample / 64) as usize] |= 1 << (sample % 64);
                    samples += 1;
                }
            }
        }
        Ok(Self { bits, samples })
    }

    /// The matching samples, in order.
    pub(super) fn samples(&self) -> impl Iterator<Item = u64> + Send + '_ {
        let with_bits = (0_u64..).zip(&self.bits).filter(|(_, bits)| **bits != 0);
        with_bits.flat_map(|(word, bits)| {
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 64 + bit)
        })
    }
}

/// The samples to examine; a sample that does not exist is an error, since it is probably a
/// mistake.
fn range(dataset: &Dataset, selection: &Selection) -> Result<Range<u64>, OperationError> {
    let samples = dataset.len();
    let Some(Range { start, end }) = selection.range.clone() else { return Ok(0..samples) };
    let is_open = end == u64::MAX;
    if start >= samples || start >= end || end > samples && !is_open {
        let asked = if is_open { format!("{start}..") } else { format!("{start}..{end}") };
        return Err(OperationError::Range { path: dataset.path().to_path_buf(), asked, samples });
    }
    Ok(start..end.min(samples))
}

fn label_indices(dataset: &Dataset, names: &[String]) -> Result<Vec<i32>, OperationError> {
    let labels = &dataset.manifest().labels;
    let index = |name: &String| {
        let found = labels.iter().zip(0..).find(|(label, _)| *label == name);
        found.map(|(_, index)| index).ok_or_else(|| OperationError::NoLabel {
            path: dataset.path().to_path_buf(),
            label: name.clone(),
        })
    };
    names.iter().map(index).collect()
}

fn patterns(keys: &[String]) -> Result<Vec<Pattern>, OperationError> {
    let parse = |pattern: &String| {
        Pattern::new(pattern).map_err(|error| OperationError::Pattern {
            pattern: pattern.clone(),
            problem: error.to_string(),
        })
    };
    keys.iter().map(parse).collect()
}
