//! The one place where a scenario is handed to the simulator.

use meetpoint_sim::scenario::Scenario;
use meetpoint_sim::{Keep, Outcome};

/// Runs a scenario.
pub(crate) fn run(scenario: &Scenario, seed: u64) -> anyhow::Result<Outcome> {
    run_keeping(scenario, seed, Keep::default())
}

/// Runs a scenario and keeps more of it.
pub(crate) fn run_keeping(scenario: &Scenario, seed: u64, keep: Keep) -> anyhow::Result<Outcome> {
    Ok(meetpoint_sim::run_keeping(scenario, seed, keep)?)
}
