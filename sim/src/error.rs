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
    /// Events occur, but no step ends: a part of the scenario is far slower than the others, or the
    /// scheduler or the simulator has a defect.
    #[error(
        "epoch {epoch} takes too many events for the step after step {step}: {events} events, at \
         {:.0} s of simulated time", *at_ns as f64 / 1e9
    )]
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
            Self::NoProgress { .. } => "no_progress",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Scheduler(_) => None,
            Self::Power(source) => source.remedy(),
            Self::Scenario(source) => source.remedy(),
            Self::NoProgress { .. } => Some(
                Remedy::advice(
                    "check for a time, a number of requests or a bandwidth that makes a batch take \
                     far longer than the other times (`preparation`, `stores.requests`, \
                     `stores.requests_per_second`, `stores.bandwidth`, `link_bandwidth`)",
                )
                .or("report it with the scenario if there is none"),
            ),
        }
    }
}
