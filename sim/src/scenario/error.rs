//! Errors of scenarios, with position and remedy.

use std::fmt::{self, Display, Formatter};

use meetpoint_diagnose::{Diagnose, Remedy};

/// Why a scenario cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}`{key}` {problem}{}",
    .place.map(|(line, column)| format!("{line}:{column}: ")).unwrap_or_default(),
    SweptParameters(.swept)
)]
pub struct ScenarioError {
    /// Line and column, from 1, if they are known.
    pub place: Option<(usize, usize)>,
    /// The key, such as `host.workers` or `devices.2.preparation`.
    pub key: String,
    /// The parameters that a sweep has set, with their values as text.
    pub swept: Vec<(String, String)>,
    /// What is wrong.
    pub problem: String,
    /// The expected value.
    pub remedy: String,
}

/// The parameters that a sweep has set, as the end of a message; empty if there are none.
#[derive(Debug, Clone, Copy)]
pub struct SweptParameters<'a>(pub &'a [(String, String)]);

impl Display for SweptParameters<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            write!(f, "{}{name} = {value}", if index == 0 { " (with " } else { ", " })?;
        }
        f.write_str(if self.0.is_empty() { "" } else { ")" })
    }
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
        let (problem, remedy) = (problem.into(), remedy.into());
        Self { place: None, key: key.into(), swept: Vec::new(), problem, remedy }
    }
}
