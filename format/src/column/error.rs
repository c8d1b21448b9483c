//! Why columns cannot be selected, with the remedy.

use super::limits::COLUMNS_MAX;
use meetpoint_diagnose::{Diagnose, Remedy};

/// Columns that no batch can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnError {
    /// An empty list.
    #[error("`columns` names no column")]
    Empty {
        /// Columns of the dataset.
        available: Vec<String>,
    },
    /// More columns than the header of a slot describes.
    #[error("`columns` names {count} columns, the limit is {COLUMNS_MAX}")]
    TooMany {
        /// Named.
        count: usize,
    },
    /// A column that the dataset does not have.
    #[error("the dataset has no column {name:?}")]
    Unknown {
        /// As named.
        name: String,
        /// The column whose name is most similar, if one is similar enough.
        nearest: Option<String>,
        /// Columns of the dataset.
        available: Vec<String>,
    },
    /// A column that is named twice.
    #[error("`columns` names {name:?} twice")]
    Twice {
        /// As named the second time.
        name: String,
    },
    /// A column of the dataset that has the name of one that batches have of themselves.
    #[error(
        "column {name:?} is ambiguous: it names the sample numbers of a batch, and a column of the \
         dataset"
    )]
    Ambiguous {
        /// As named.
        name: String,
    },
    /// A column whose type has no form in a batch.
    #[error(
        "column {name:?} has type {found}, which has no form in a batch ({why}); batches hold \
         numbers and bools, strings, binary, and lists and fixed-size lists of numbers (one \
         variable-length axis, the outermost)"
    )]
    Type {
        /// Its name.
        name: String,
        /// Its type in the dataset.
        found: String,
        /// What does not fit.
        why: &'static str,
    },
}

impl ColumnError {
    /// The column that it is about; `None`: the list as a whole.
    pub fn column(&self) -> Option<&str> {
        match self {
            Self::Empty { .. } | Self::TooMany { .. } => None,
            Self::Unknown { name, .. }
            | Self::Twice { name }
            | Self::Ambiguous { name }
            | Self::Type { name, .. } => Some(name),
        }
    }
}

impl Diagnose for ColumnError {
    fn cause(&self) -> &'static str {
        match self {
            Self::Empty { .. } => "no_columns",
            Self::TooMany { .. } => "too_many_columns",
            Self::Unknown { .. } => "unknown_column",
            Self::Twice { .. } => "column_twice",
            Self::Ambiguous { .. } => "column_ambiguous",
            Self::Type { .. } => "column_type",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::Empty { available } => {
                format!("name at least one of {}", available.join(", ")).into()
            }
            Self::TooMany { .. } => format!("name at most {COLUMNS_MAX}").into(),
            Self::Unknown { nearest, available, .. } => {
                let nearest = nearest.as_ref();
                let meant = nearest.map(|it| format!("did you mean {it:?}? ")).unwrap_or_default();
                format!("{meant}choose columns of {}", available.join(", ")).into()
            }
            Self::Twice { .. } => "name each column once".into(),
            Self::Ambiguous { .. } => {
                "rename the column of the dataset in its source, and pack again".into()
            }
            Self::Type { .. } => {
                Remedy::advice("leave the column out").or("convert it and pack again")
            }
        })
    }
}
