//! Why an operation on datasets is refused.

use super::share::Share;
use crate::message::Message;
use crate::words::{Setting, Words};
use std::fmt;
use std::path::PathBuf;

/// A request that an operation on datasets refuses.
#[derive(Debug)]
#[non_exhaustive]
pub enum OperationError {
    /// A result without samples.
    Empty {
        /// Which result.
        what: String,
        /// What to do.
        remedy: &'static str,
    },
    /// More samples than there are.
    TooMany {
        /// Asked for.
        asked: u64,
        /// There are.
        available: u64,
    },
    /// Samples that are not there.
    Range {
        /// Dataset.
        path: PathBuf,
        /// Asked for: `100..200`.
        asked: String,
        /// Samples that there are.
        samples: u64,
    },
    /// More than everything.
    Fraction {
        /// Asked for.
        asked: Share,
    },
    /// Parts of a split that cannot be.
    Shares {
        /// What is wrong.
        problem: String,
    },
    /// A column that is not there.
    NoColumn {
        /// Dataset.
        path: PathBuf,
        /// Asked for.
        column: String,
        /// Those that can be asked for.
        available: String,
    },
    /// A column whose values cannot name datasets.
    Column {
        /// Which.
        column: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// Datasets with other columns.
    Columns {
        /// A dataset.
        left: PathBuf,
        /// Another.
        right: PathBuf,
        /// The column that differs, and how.
        difference: String,
    },
    /// Datasets whose pictures are stored in ways that one dataset cannot have.
    Forms {
        /// A dataset.
        left: PathBuf,
        /// Another.
        right: PathBuf,
        /// What differs.
        difference: String,
    },
    /// A key that would come twice.
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
    Prefixes {
        /// Prefixes.
        given: usize,
        /// Datasets.
        datasets: usize,
    },
    /// A pattern that does not parse.
    Pattern {
        /// As it was given.
        pattern: String,
        /// What is wrong.
        problem: String,
    },
    /// A label that the dataset does not have.
    NoLabel {
        /// Dataset.
        path: PathBuf,
        /// Asked for.
        label: String,
    },
    /// Labels are asked about, and no sample has one.
    NoLabels {
        /// Dataset.
        path: PathBuf,
        /// The option that needs labels.
        option: Setting,
    },
    /// Nothing can be rebuilt.
    Hopeless {
        /// Dataset.
        path: PathBuf,
        /// Why.
        problem: String,
    },
}

impl OperationError {
    /// What is refused, and what to do.
    pub fn message(&self) -> Message {
        let text = match self {
            Self::DuplicateKey { key, first, first_sample, second, second_sample } => {
                return Message::from(format!(
                    "key {key:?} is in {} (sample {first_sample}) and in {} (sample \
                     {second_sample}); give each dataset a prefix with ",
                    first.display(),
                    second.display()
                )) + Setting::Prefix;
            }
            Self::NoLabels { path, option } => {
                return Message::from(format!("no sample of {} has a label, so ", path.display()))
                    .name(*option)
                    + " has no effect; leave it out, or pack the dataset again with labels (class \
                       folders, "
                    + Setting::Label
                    + ")";
            }
            Self::Empty { what, remedy } => format!("{what} has no samples; {remedy}"),
            Self::TooMany { asked, available } => {
                format!("{asked} samples of {available}; ask for fewer")
            }
            Self::Range { path, asked, samples } => format!(
                "no samples {asked} in {}: it has {samples}; write a range within 0..{samples}",
                path.display()
            ),
            Self::Fraction { asked } => format!("a fraction of {asked}; a fraction is at most 1"),
            Self::Shares { problem } => {
                format!("{problem}; write PATH=SHARE, for example train.set=0.8 val.set=0.2")
            }
            Self::NoColumn { path, column, available } => {
                format!("no column `{column}` in {}; there are {available}", path.display())
            }
            Self::Column { column, problem } => format!("column `{column}` {problem}"),
            Self::Columns { left, right, difference } => format!(
                "{} and {} do not fit: {difference}; make the columns the same first",
                left.display(),
                right.display()
            ),
            Self::Forms { left, right, difference } => format!(
                "{} and {} do not fit: {difference}; pack one of them again as the other",
                left.display(),
                right.display()
            ),
            Self::Prefixes { given, datasets } => format!(
                "{given} prefixes for {datasets} datasets; give one for each, in their order"
            ),
            Self::Pattern { pattern, problem } => format!(
                "pattern {pattern:?}: {problem}; * is any text without /, ** any folders, ? one \
                 character"
            ),
            Self::NoLabel { path, label } => {
                format!("no label {label:?} in {}; `meetpoint inspect` lists them", path.display())
            }
            Self::Hopeless { path, problem } => {
                format!("{} cannot be repaired: {problem}", path.display())
            }
        };
        text.into()
    }
}

/// As on the command line.
impl fmt::Display for OperationError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.message().in_words(Words::CommandLine))
    }
}

impl std::error::Error for OperationError {}
