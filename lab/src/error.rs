//! Errors of experiments, each with cause and remedy.

use meetpoint_diagnose::{Diagnose, Remedy, shown};
use meetpoint_sim::scenario::{NotAQuantity, SweptParameters};
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

/// Why an experiment was refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("failed to read {}: {source}", shown(file))]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The remedy.
        remedy: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// The scenario is invalid.
    #[error(transparent)]
    Scenario(Box<ScenarioFault>),
    /// A line of a trace is not a time.
    #[error("{}:{line}: {source}", shown(file))]
    TraceTime {
        /// The trace.
        file: PathBuf,
        /// From 1.
        line: usize,
        /// Why.
        source: NotAQuantity,
    },
    /// The trace has no times.
    #[error("{} has no times", shown(file))]
    EmptyTrace {
        /// The trace.
        file: PathBuf,
    },
    /// A simulation was refused or failed.
    #[error("failed to simulate {what}: {source}")]
    Simulation {
        /// The strategy or file that was simulated.
        what: String,
        /// Why.
        source: Box<meetpoint_sim::Error>,
    },
    /// The same, of a scenario or a power model without a name.
    #[error(transparent)]
    Sim(#[from] meetpoint_sim::Error),
    /// There is no chart for the results.
    #[error(transparent)]
    NotDrawn(#[from] NotDrawn),
    /// The file is not the report of a run.
    #[error(
        "{} is not a report of `meetpoint run` or `demo` of this version: {source}",
        shown(file)
    )]
    NotAReport {
        /// The file.
        file: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// A study was asked for the same value twice.
    #[error("the {what} {value} is given twice")]
    ValueTwice {
        /// What it is a value of.
        what: &'static str,
        /// The value.
        value: String,
    },
    /// The report has no epochs.
    #[error("{} has no epoch, so there is nothing to replay", shown(file))]
    NoEpochs {
        /// The file.
        file: PathBuf,
    },
}

impl Error {
    /// The error of a simulation of `what`.
    pub(crate) fn simulating(what: impl Into<String>) -> impl FnOnce(meetpoint_sim::Error) -> Self {
        |source| Self::Simulation { what: what.into(), source: Box::new(source) }
    }

    /// Whether the scheduler refused the epoch.
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
            Self::ValueTwice { .. } => "value_twice",
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
            Self::ValueTwice { .. } => Some("give each value once".into()),
            Self::NotAReport { .. } | Self::NoEpochs { .. } => {
                Some("name the report.json of a run".into())
            }
        }
    }
}

/// Why a scenario file is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioFault {
    /// The file.
    pub file: PathBuf,
    /// Line and column, from 1, if they are known.
    pub place: Option<(usize, usize)>,
    /// The key.
    pub key: String,
    /// The parameters that a sweep has set, with their values as text.
    pub swept: Vec<(String, String)>,
    /// What is wrong.
    pub problem: String,
    /// The expected value.
    pub remedy: String,
}

impl Display for ScenarioFault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", shown(&self.file))?;
        if let Some((line, column)) = self.place {
            write!(f, "{line}:{column}:")?;
        }
        write!(f, " `{}` {}{}", self.key, self.problem, SweptParameters(&self.swept))
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

/// Why there is no chart for the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotDrawn {
    /// No swept parameter is numeric.
    #[error("a sweep without numbers cannot be drawn")]
    NoNumbers,
    /// More parameters were swept than a chart has dimensions.
    #[error("a sweep of {parameters} parameters cannot be drawn")]
    TooManyParameters {
        /// Their number.
        parameters: usize,
    },
    /// The epoch has more batches than a chart over time can show.
    #[error("an epoch of {batches} batches is too long to draw")]
    TooLong {
        /// Their number.
        batches: u32,
        /// Maximum number of batches.
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
