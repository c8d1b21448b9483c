//! Why columns cannot be selected. Every variant names the column and the remedy.

use super::limits::COLUMNS_MAX;

/// Columns that no batch can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnError {
    /// An empty list.
    #[error("`columns` names no column; name at least one of {}", available.join(", "))]
    Empty {
        /// Columns of the dataset.
        available: Vec<String>,
    },
    /// More columns than the header of a slot describes.
    #[error("`columns` names {count} columns, the limit is {COLUMNS_MAX}; name fewer")]
    TooMany {
        /// Named.
        count: usize,
    },
    /// A column that the dataset does not have.
    #[error(
        "the dataset has no column {name:?}{}; it has {}",
        nearest.as_ref().map_or_else(String::new, |it| format!(" (did you mean {it:?}?)")),
        available.join(", ")
    )]
    Unknown {
        /// As named.
        name: String,
        /// The column whose name is most similar, if one is similar enough.
        nearest: Option<String>,
        /// Columns of the dataset.
        available: Vec<String>,
    },
    /// A column that is named twice.
    #[error("`columns` names {name:?} twice; name each column once")]
    Twice {
        /// As named the second time.
        name: String,
    },
    /// A column whose type has no form in a batch.
    #[error(
        "column {name:?} has type {found}, which has no form in a batch ({why}); batches hold \
         numbers and bools, strings, binary, and lists and fixed-size lists of numbers (one \
         variable-length axis, the outermost): leave the column out, or convert it and pack again"
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
