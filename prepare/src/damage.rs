//! Samples that cannot be read or decoded, and how they are handled.
//!
//! The replacement of a damaged sample depends only on the dataset, seed, epoch, sample and the set
//! of damaged samples, never on which end prepares the batch or when.

use crate::{Dataset, Error};
use meetpoint_diagnose::{Diagnose, Remedy};
use meetpoint_format::dataset::SampleLocation;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// How one damaged sample is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The epoch ends with its error.
    Raise,
    /// It is skipped: the batch is one sample shorter.
    Skip,
    /// It is replaced by another sample, selected by [`meetpoint_format::replacement`]; the random
    /// parameters of the recipe remain those of the damaged sample. The batch remains full.
    Replace,
}

impl Action {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Raise, Self::Skip, Self::Replace];

    /// Its name, as users write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Raise => "raise",
            Self::Skip => "skip",
            Self::Replace => "replace",
        }
    }

    /// The action with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == name)
    }
}

/// Decides how a damaged sample is handled. Called by the thread that prepares its batch, each time
/// the sample occurs.
#[derive(Clone)]
pub struct DamagePolicy(Arc<dyn Fn(&Damage) -> Action + Send + Sync>);

impl DamagePolicy {
    /// A policy that calls a function.
    pub fn new(decide: impl Fn(&Damage) -> Action + Send + Sync + 'static) -> Self {
        Self(Arc::new(decide))
    }
}

impl fmt::Debug for DamagePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DamagePolicy")
    }
}

/// How damaged samples are handled.
#[derive(Debug, Clone)]
pub enum OnError {
    /// The same action for each.
    Always(Action),
    /// A decision for each.
    Ask(DamagePolicy),
}

impl Default for OnError {
    fn default() -> Self {
        Self::Always(Action::Raise)
    }
}

impl OnError {
    /// The action for a sample.
    pub(crate) fn decide(&self, damage: &Damage) -> Action {
        match self {
            Self::Always(action) => *action,
            Self::Ask(DamagePolicy(decide)) => decide(damage),
        }
    }

    /// Whether every damaged sample is an error.
    pub fn always_raises(&self) -> bool {
        matches!(self, Self::Always(Action::Raise))
    }
}

/// A sample that cannot be read or decoded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// The epoch in which it occurred.
    pub epoch: u32,
    /// Its index in the dataset.
    pub sample: u64,
    /// Its key; if it is unknown, the reason in parentheses.
    pub key: String,
    /// File that contains its content.
    pub file: String,
    /// First byte of its content there.
    pub offset: u64,
    /// Stable name of the error.
    pub cause: String,
    /// What is wrong with it.
    pub what: String,
    /// The remedy.
    pub remedy: Option<Remedy>,
}

impl Damage {
    /// The facts of an error that is damage.
    pub(crate) fn of(
        dataset: &Dataset,
        epoch: u32,
        (sample, location): (u64, &SampleLocation),
        error: &Error,
    ) -> Self {
        let (file, _, key) = dataset.location_in_words(sample, location);
        let (cause, what, remedy) = (error.cause().to_owned(), error.what(), error.remedy());
        Self { epoch, sample, key, file, offset: location.offset, cause, what, remedy }
    }
}

/// A damaged sample of a batch that was prepared nevertheless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// Its position in the batch, from 0.
    pub position: u32,
    /// What is wrong with it.
    pub damage: Damage,
    /// The sample that replaces it; `None`: it was skipped, and later samples moved up.
    pub replaced_by: Option<u64>,
}

/// The samples of the prepared batch, in order; `wanted` are the samples of its positions.
pub fn samples_held(wanted: impl Iterator<Item = u64>, replacements: &[Replacement]) -> Vec<u64> {
    let at = |position: usize| replacements.iter().find(|it| it.position as usize == position);
    let held = wanted.enumerate().filter_map(|(position, sample)| match at(position) {
        Some(replacement) => replacement.replaced_by,
        None => Some(sample),
    });
    held.collect()
}
