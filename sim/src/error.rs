//! What cannot be simulated or modelled.

/// A simulation or a power file that was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The scheduler refused the configuration.
    #[error("the scheduler refused the configuration")]
    Scheduler(#[from] meetpoint_scheduler::Error),
    /// A scenario that cannot be simulated.
    #[error(transparent)]
    Scenario(#[from] crate::scenario::ScenarioError),
    /// Nothing goes on any more: events come, and no step ends. A defect of the scheduler or of the
    /// simulator.
    #[error("epoch {epoch} does not go on after step {step}: {events} events without another")]
    NoProgress {
        /// Which, from 0.
        epoch: u32,
        /// Steps that ended.
        step: u32,
        /// Events since.
        events: u64,
        /// Virtual time.
        at_ns: u64,
    },
    /// A power file or preset that was refused.
    #[error(transparent)]
    Power(#[from] crate::power::PowerError),
}
