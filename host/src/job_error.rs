//! An error in a job file: its location, the problem and the remedy.

use meetpoint_diagnose::{Diagnose, Remedy, shown};
use std::path::PathBuf;

/// A job file that cannot be run. Line and column count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}{}: {problem}", shown(file),
    .place.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default()
)]
pub struct JobError {
    /// The job file, or the recipe file that it names.
    pub file: PathBuf,
    /// Line and column of the offending key or value; `None` for the file as a whole.
    pub place: Option<(usize, usize)>,
    /// Stable name of the problem.
    pub cause: &'static str,
    /// The problem, with the key.
    pub problem: String,
    /// The remedy.
    pub remedy: Remedy,
}

/// The cause of an error of a job file without an underlying error.
pub(crate) const CAUSE: &str = "job";

impl Diagnose for JobError {
    fn cause(&self) -> &'static str {
        self.cause
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(self.remedy.clone())
    }
}
