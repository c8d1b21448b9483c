//! Faults of scenarios and of the files that they name.

use meetpoint_diagnose::{Diagnose, Remedy};
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

/// What is wrong with a scenario, in the file that it stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScenarioFault {
    /// The file.
    pub file: PathBuf,
    /// Line and column, from 1, where there are any.
    pub place: Option<(usize, usize)>,
    /// The key.
    pub key: String,
    /// The keys that a sweep has set, and to what.
    pub swept: Option<String>,
    /// What is wrong.
    pub problem: String,
    /// What it takes.
    pub remedy: String,
}

impl Display for ScenarioFault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some((line, column)) = self.place {
            write!(f, "{line}:{column}:")?;
        }
        write!(f, " `{}` {}", self.key, self.problem)?;
        match &self.swept {
            Some(swept) => write!(f, " (with {swept})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ScenarioFault {}

impl Diagnose for ScenarioFault {
    fn cause(&self) -> &'static str {
        "scenario"
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(format!("`{}` takes {}", self.key, self.remedy).into())
    }
}

/// A file that cannot be read.
#[derive(Debug)]
pub(crate) struct Unreadable {
    /// Which.
    pub file: PathBuf,
    /// What to do.
    pub remedy: &'static str,
    /// Why.
    pub source: std::io::Error,
}

impl Display for Unreadable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "failed to read {}: {}", self.file.display(), self.source)
    }
}

impl std::error::Error for Unreadable {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl Diagnose for Unreadable {
    fn cause(&self) -> &'static str {
        "file_not_read"
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(self.remedy.into())
    }
}
