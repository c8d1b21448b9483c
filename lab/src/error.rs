//! What experiments refuse or cannot do, each with its cause and remedy.

use meetpoint_diagnose::{Diagnose, Remedy};
use meetpoint_sim::scenario::{NotAQuantity, Swept};
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

/// An experiment that was refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file that cannot be read.
    #[error("failed to read {}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What to do.
        remedy: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// A scenario with a fault.
    #[error(transparent)]
    Scenario(Box<ScenarioFault>),
    /// A line of a trace that is not a time.
    #[error("{}:{line}: {source}", file.display())]
    TraceTime {
        /// The trace.
        file: PathBuf,
        /// From 1.
        line: usize,
        /// Why.
        source: NotAQuantity,
    },
    /// A trace without times.
    #[error("{} has no times", file.display())]
    EmptyTrace {
        /// The trace.
        file: PathBuf,
    },
    /// A simulation that was refused or failed.
    #[error("failed to simulate {what}: {source}")]
    Simulation {
        /// A strategy or a file.
        what: String,
        /// Why.
        source: Box<meetpoint_sim::Error>,
    },
    /// The same, of a scenario or a power model without a name.
    #[error(transparent)]
    Sim(#[from] meetpoint_sim::Error),
    /// Results that have no picture.
    #[error(transparent)]
    NotDrawn(#[from] NotDrawn),
    /// A file that is not the report of a run.
    #[error(
        "{} is not a report of `meetpoint run` or `demo` of this version: {source}",
        file.display()
    )]
    NotAReport {
        /// The file.
        file: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// A report without epochs.
    #[error("{} has no epoch, so there is nothing to replay", file.display())]
    NoEpochs {
        /// The file.
        file: PathBuf,
    },
}

impl Error {
    /// A simulation of `what` that failed.
    pub(crate) fn simulating(what: impl Into<String>) -> impl FnOnce(meetpoint_sim::Error) -> Self {
        |source| Self::Simulation { what: what.into(), source: Box::new(source) }
    }

    /// Whether the scheduler does not run such an epoch.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Sim(meetpoint_sim::Error::Scheduler(_)))
    }
}

impl Diagnose for Error {
    fn cause(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "file_not_read",
            Self::Scenario(fault) => fault.cause(),
            Self::TraceTime { .. } => "trace_time",
            Self::EmptyTrace { .. } => "empty_trace",
            Self::Simulation { source, .. } => source.cause(),
            Self::Sim(source) => source.cause(),
            Self::NotDrawn(source) => source.cause(),
            Self::NotAReport { .. } => "not_a_report",
            Self::NoEpochs { .. } => "no_epochs",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Unreadable { remedy, .. } => Some((*remedy).into()),
            Self::Scenario(fault) => fault.remedy(),
            Self::TraceTime { .. } | Self::EmptyTrace { .. } => {
                Some("write one time per line".into())
            }
            Self::Simulation { source, .. } => source.remedy(),
            Self::Sim(source) => source.remedy(),
            Self::NotDrawn(source) => source.remedy(),
            Self::NotAReport { .. } | Self::NoEpochs { .. } => {
                Some("name the report.json of a run".into())
            }
        }
    }
}

/// What is wrong with a scenario, in the file that it stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioFault {
    /// The file.
    pub file: PathBuf,
    /// Line and column, from 1, where there are any.
    pub place: Option<(usize, usize)>,
    /// The key.
    pub key: String,
    /// The parameters that a sweep has set, with their values as text.
    pub swept: Vec<(String, String)>,
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
        write!(f, " `{}` {}{}", self.key, self.problem, Swept(&self.swept))
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

/// Why results have no picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotDrawn {
    /// Every swept parameter is a name.
    #[error("a sweep without numbers cannot be drawn")]
    NoNumbers,
    /// More parameters than a picture has dimensions.
    #[error("a sweep of {parameters} parameters cannot be drawn")]
    TooManyParameters {
        /// Their number.
        parameters: usize,
    },
    /// More batches than a picture over time holds.
    #[error("an epoch of {batches} batches is too long to draw")]
    TooLong {
        /// Their number.
        batches: u32,
        /// How many it may have.
        batches_max: u32,
    },
}

impl Diagnose for NotDrawn {
    fn cause(&self) -> &'static str {
        "not_drawn"
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::NoNumbers => "sweep a number too".into(),
            Self::TooManyParameters { .. } => "sweep one or two".into(),
            Self::TooLong { batches_max, .. } => {
                format!("set batches to {batches_max} or less").into()
            }
        })
    }
}
