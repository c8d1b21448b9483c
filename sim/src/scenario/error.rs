//! What is wrong with a scenario, where, and what would be right.

use meetpoint_diagnose::{Diagnose, Remedy};

/// A scenario that cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}`{key}` {problem}",
    .place.map(|(line, column)| format!("{line}:{column}: ")).unwrap_or_default()
)]
pub struct ScenarioError {
    /// Line and column, from 1, where they are known.
    pub place: Option<(usize, usize)>,
    /// The key, as `host.workers` or `devices.2.preparation`.
    pub key: String,
    /// What is wrong.
    pub problem: String,
    /// What would be right.
    pub remedy: String,
}

impl Diagnose for ScenarioError {
    fn cause(&self) -> &'static str {
        "scenario"
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(format!("`{}` takes {}", self.key, self.remedy).into())
    }
}

impl ScenarioError {
    pub(crate) fn new(
        key: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { place: None, key: key.into(), problem: problem.into(), remedy: remedy.into() }
    }
}
