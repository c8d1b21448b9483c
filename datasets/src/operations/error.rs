//! What an operation on datasets refuses.

use super::draw::Share;
use std::path::PathBuf;

/// Something that was asked of an operation and cannot be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// A result without samples.
    #[error("{what} has no samples; {remedy}")]
    Empty {
        /// Which result.
        what: String,
        /// What to do.
        remedy: &'static str,
    },
    /// More samples than there are.
    #[error("{asked} samples of {available}; ask for fewer")]
    TooMany {
        /// Asked for.
        asked: u64,
        /// There are.
        available: u64,
    },
    /// Samples that are not there.
    #[error(
        "no samples {asked} in {}: it has {samples}; write a range within 0..{samples}",
        path.display()
    )]
    Range {
        /// Dataset.
        path: PathBuf,
        /// Asked for: `100..200`.
        asked: String,
        /// Samples that there are.
        samples: u64,
    },
    /// More than everything.
    #[error("a fraction of {asked}; a fraction is at most 1")]
    Fraction {
        /// Asked for.
        asked: Share,
    },
    /// Parts of a split that cannot be.
    #[error("{problem}; write PATH=SHARE, for example train.set=0.8 val.set=0.2")]
    Shares {
        /// What is wrong.
        problem: String,
    },
    /// A column that is not there.
    #[error("no column `{column}` in {}; there are {available}", path.display())]
    NoColumn {
        /// Dataset.
        path: PathBuf,
        /// Asked for.
        column: String,
        /// Those that can be asked for.
        available: String,
    },
    /// A column whose values cannot name datasets.
    #[error("column `{column}` {problem}")]
    Column {
        /// Which.
        column: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// Datasets with other columns.
    #[error(
        "{} and {} do not fit: {difference}; make the columns the same first",
        left.display(), right.display()
    )]
    Columns {
        /// A dataset.
        left: PathBuf,
        /// Another.
        right: PathBuf,
        /// The column that differs, and how.
        difference: String,
    },
    /// Datasets whose pictures are stored in ways that one dataset cannot have.
    #[error(
        "{} and {} do not fit: {difference}; pack one of them again as the other",
        left.display(), right.display()
    )]
    Forms {
        /// A dataset.
        left: PathBuf,
        /// Another.
        right: PathBuf,
        /// What differs.
        difference: String,
    },
    /// A key that would come twice.
    #[error(
        "key {key:?} is in {} (sample {}) and in {} (sample {}); give each dataset a --prefix",
        first.display(), first_sample, second.display(), second_sample
    )]
    DuplicateKey {
        /// The key.
        key: String,
        /// A dataset that has it.
        first: PathBuf,
        /// Sample in it.
        first_sample: u64,
        /// Another, or the same.
        second: PathBuf,
        /// Sample in it.
        second_sample: u64,
    },
    /// A key that a prefix makes too long or empty.
    #[error("{} prefixes for {} datasets; give one for each, in their order", given, datasets)]
    Prefixes {
        /// Prefixes.
        given: usize,
        /// Datasets.
        datasets: usize,
    },
    /// A pattern that does not parse.
    #[error(
        "pattern {pattern:?}: {problem}; * is any text without /, ** any folders, ? one character"
    )]
    Pattern {
        /// As it was given.
        pattern: String,
        /// What is wrong.
        problem: String,
    },
    /// A label that the dataset does not have.
    #[error("no label {label:?} in {}; `meetpoint inspect` lists them", path.display())]
    NoLabel {
        /// Dataset.
        path: PathBuf,
        /// Asked for.
        label: String,
    },
    /// Labels are asked about, and no sample has one.
    #[error(
        "no sample of {} has a label, so {option} means nothing for it; leave it out, or pack the \
         dataset again with labels (class folders, --label)",
        path.display()
    )]
    NoLabels {
        /// Dataset.
        path: PathBuf,
        /// What asks: `--stratify`.
        option: &'static str,
    },
    /// Nothing can be rebuilt.
    #[error("{} cannot be repaired: {problem}", path.display())]
    Hopeless {
        /// Dataset.
        path: PathBuf,
        /// Why.
        problem: String,
    },
}
