//! The strategy of a scenario with its options, and which batches devices are given.

use meetpoint_scheduler::{AnyStrategy, StrategyName};
use serde::Deserialize;

use super::Scenario;

/// Which batches devices are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChoiceName {
    /// The last of the epoch's order.
    #[default]
    Tail,
    /// Those that save the host most time for the devices', once both are known.
    Saving,
}

/// The strategy of a scenario that names none.
pub(super) fn unnamed() -> StrategyName {
    StrategyName::Wrr
}

impl Scenario {
    /// The strategy with its options.
    pub fn chosen(&self) -> AnyStrategy {
        self.options.strategy(self.strategy)
    }

    /// Chooses a strategy, with its options.
    pub fn choose(&mut self, strategy: impl Into<AnyStrategy>) {
        let strategy = strategy.into();
        self.strategy = strategy.name();
        self.options.set(strategy);
    }

    /// The same scenario under another strategy.
    #[must_use]
    pub fn under(&self, strategy: impl Into<AnyStrategy>) -> Self {
        let mut scenario = self.clone();
        scenario.choose(strategy);
        scenario
    }
}
