//! Errors of simulations and models.

use meetpoint_diagnose::{Diagnose, Remedy};

/// Why a simulation or a power file was refused, or a simulation failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The scheduler refused the configuration.
    #[error("the scheduler refused the configuration: {0}")]
    Scheduler(#[from] meetpoint_scheduler::Error),
    /// The power file or preset was refused.
    #[error(transparent)]
    Power(#[from] crate::power::PowerError),
    /// The scenario cannot be simulated.
    #[error(transparent)]
    Scenario(#[from] crate::scenario::ScenarioError),
    /// No progress: events occur, but no step ends. This is a defect of the scheduler or of the
    /// simulator.
    #[error("epoch {epoch} makes no progress after step {step}: {events} events without another")]
    NoProgress {
        /// The epoch, from 0.
        epoch: u32,
        /// Completed steps.
        step: u32,
        /// Events since then.
        events: u64,
        /// Virtual time.
        at_ns: u64,
    },
}

impl Diagnose for Error {
    fn cause(&self) -> &'static str {
        match self {
            Self::Scheduler(_) => "epoch_not_planned",
            Self::Power(source) => source.cause(),
            Self::Scenario(source) => source.cause(),
            Self::NoProgress { .. } => "defect",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Scheduler(_) => None,
            Self::Power(source) => source.remedy(),
            Self::Scenario(source) => source.remedy(),
            Self::NoProgress { .. } => Some("report it with the scenario".into()),
        }
    }
}
