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
    /// A power file that does not parse.
    #[error("power file {origin} does not parse: {reason}")]
    PowerFile {
        /// Where it came from.
        origin: String,
        /// Place and reason.
        reason: String,
    },
    /// Watts that no machine has.
    #[error("power file {origin}: {key} is {watts}, must be a number of watts, 0 or more")]
    Watts {
        /// Where it came from.
        origin: String,
        /// The key, as `host_core.idle_w`.
        key: String,
        /// As given.
        watts: f64,
    },
    /// A component that would use less when it works.
    #[error("power file {origin}: {component}.active_w is below its idle_w")]
    ActiveBelowIdle {
        /// Where it came from.
        origin: String,
        /// The component.
        component: &'static str,
    },
    /// Watts without a source.
    #[error("power file {origin}: {component} has no source; say where its watts come from")]
    NoSource {
        /// Where it came from.
        origin: String,
        /// The component.
        component: &'static str,
    },
    /// A name in `unverified` that is no value of the component.
    #[error("power file {origin}: {component}.unverified names {name}, which it does not have")]
    UnknownUnverified {
        /// Where it came from.
        origin: String,
        /// The component.
        component: &'static str,
        /// As given.
        name: String,
    },
}
