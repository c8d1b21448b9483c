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
    /// A power file or preset that was refused.
    #[error(transparent)]
    Power(#[from] crate::power::PowerError),
}
