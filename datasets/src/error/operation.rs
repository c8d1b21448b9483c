//! Why an operation on datasets is refused.

use crate::message::Message;
use crate::share::Share;
use meetpoint_diagnose::{Change, Command, Diagnose, Remedy, Setting, Surface, shown};
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
        remedy: Remedy,
    },
    /// More samples than the dataset has.
    TooMany {
        /// The requested value.
        asked: u64,
        /// The actual value.
        available: u64,
    },
    /// Samples that do not exist.
    Range {
        /// Dataset.
        path: PathBuf,
        /// The requested range: `100..200`.
        asked: String,
        /// Number of samples in the dataset.
        samples: u64,
    },
    /// A fraction above 1.
    Fraction {
        /// The requested value.
        asked: Share,
    },
    /// Invalid parts of a split.
    Shares {
        /// What is wrong.
        problem: String,
    },
    /// A column that does not exist.
    NoColumn {
        /// Dataset.
        path: PathBuf,
        /// The requested value.
        column: String,
        /// The available columns.
        available: String,
    },
    /// A column whose values cannot name datasets.
    Column {
        /// The column.
        column: String,
        /// The problem, with its remedy.
        problem: Message,
    },
    /// Datasets with different columns.
    Columns {
        /// A dataset.
        left: PathBuf,
        /// Another.
        right: PathBuf,
        /// The column that differs, and how.
        difference: String,
    },
    /// Datasets whose pictures are stored in forms that one dataset cannot combine.
    Forms {
        /// A dataset.
        left: PathBuf,
        /// Another.
        right: PathBuf,
        /// What differs.
        difference: String,
    },
    /// A key that would occur twice.
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
        /// The requested value.
        label: String,
    },
    /// An option that needs labels, although no sample has one.
    NoLabels {
        /// Dataset.
        path: PathBuf,
        /// The option that needs labels.
        option: Setting,
    },
    /// No sample can be recovered.
    Hopeless {
        /// Dataset.
        path: PathBuf,
        /// The reason, with its remedy.
        problem: Message,
    },
}

impl OperationError {
    /// The message.
    pub fn message(&self) -> Message {
        let text = match self {
            Self::DuplicateKey { key, first, first_sample, second, second_sample } => format!(
                "key {key:?} is in {} (sample {first_sample}) and in {} (sample {second_sample})",
                shown(first),
                shown(second)
            ),
            Self::NoLabels { path, option } => {
                return Message::from(format!("no sample of {} has a label, so ", shown(path)))
                    .name(*option)
                    + " has no effect";
            }
            Self::Empty { what, .. } => format!("{what} has no samples"),
            Self::TooMany { asked, available } => format!("{asked} samples of {available}"),
            Self::Range { path, asked, samples } => {
                format!("no samples {asked} in {}: it has {samples}", shown(path))
            }
            Self::Fraction { asked } => format!("a fraction of {asked}, which is more than 1"),
            Self::Shares { problem } => problem.clone(),
            Self::NoColumn { path, column, .. } => {
                format!("no column `{column}` in {}", shown(path))
            }
            Self::Column { column, problem } => {
                return Message::from(format!("column `{column}` ")) + problem.clone();
            }
            Self::Columns { left, right, difference } | Self::Forms { left, right, difference } => {
                format!("{} and {} cannot be merged: {difference}", shown(left), shown(right))
            }
            Self::Prefixes { given, datasets } => {
                format!("{given} prefixes for {datasets} datasets")
            }
            Self::Pattern { pattern, problem } => format!("pattern {pattern:?}: {problem}"),
            Self::NoLabel { path, label } => format!("no label {label:?} in {}", shown(path)),
            Self::Hopeless { path, problem } => {
                return Message::from(format!("{} cannot be repaired: ", shown(path)))
                    + problem.clone();
            }
        };
        text.into()
    }
}

impl Diagnose for OperationError {
    fn cause(&self) -> &'static str {
        match self {
            Self::Empty { .. } => "empty_result",
            Self::TooMany { .. } => "too_many_samples",
            Self::Range { .. } => "range_out_of_dataset",
            Self::Fraction { .. } => "fraction",
            Self::Shares { .. } => "shares",
            Self::NoColumn { .. } => "no_column",
            Self::Column { .. } => "column_not_usable",
            Self::Columns { .. } => "columns_differ",
            Self::Forms { .. } => "forms_differ",
            Self::DuplicateKey { .. } => "duplicate_key",
            Self::Prefixes { .. } => "prefixes",
            Self::Pattern { .. } => "pattern",
            Self::NoLabel { .. } => "no_label",
            Self::NoLabels { .. } => "no_labels",
            Self::Hopeless { .. } => "not_repairable",
        }
    }

    fn message(&self, surface: Surface) -> String {
        self.message().in_words(surface)
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::DuplicateKey { .. } => {
                Remedy::by("give each dataset a prefix", Setting::Prefix, Change::Other)
            }
            Self::NoLabels { option, .. } => Remedy::set(*option, Change::Off).or_by(
                "pack the dataset again with labels, from class folders or",
                Setting::Label,
                Change::Other,
            ),
            Self::Empty { remedy, .. } => remedy.clone(),
            Self::TooMany { available, .. } => format!("ask for at most {available}").into(),
            Self::Range { samples, .. } => format!("write a range within 0..{samples}").into(),
            Self::Fraction { .. } => "write a fraction of at most 1".into(),
            Self::Shares { .. } => "write PATH=SHARE, for example train.set=0.8 val.set=0.2".into(),
            Self::NoColumn { available, .. } => format!("choose one of {available}").into(),
            Self::Column { problem, .. } | Self::Hopeless { problem, .. } => {
                return problem.advice().cloned();
            }
            Self::Columns { .. } => "make the columns the same first".into(),
            Self::Forms { .. } => "pack one of them again as the other".into(),
            Self::Prefixes { datasets, .. } => {
                format!("give {datasets}, one for each dataset in their order").into()
            }
            Self::Pattern { .. } => {
                "write * for any text without /, ** for any folders, ? for one character".into()
            }
            Self::NoLabel { .. } => Remedy::run(Command::Inspect),
        })
    }
}

/// As on the command line.
impl fmt::Display for OperationError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.message().in_words(Surface::CommandLine))
    }
}

impl std::error::Error for OperationError {}
