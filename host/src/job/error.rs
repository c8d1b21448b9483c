//! What is wrong with a job file, where, and what would be right.

use std::path::PathBuf;

/// A job file that cannot be run. Line and column count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}{}: {problem} ({remedy})", file.display(),
    .place.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default()
)]
pub struct JobError {
    /// The job file, or the recipe file that it names.
    pub file: PathBuf,
    /// Line and column of the offending key or value; `None` for the file as a whole.
    pub place: Option<(usize, usize)>,
    /// What is wrong, naming the key.
    pub problem: String,
    /// What would be right.
    pub remedy: String,
}
