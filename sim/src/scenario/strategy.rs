//! The strategy of a scenario with its options, and which batches devices prepare.

use meetpoint_scheduler::{AnyStrategy, StrategyName};
use serde::Deserialize;

use super::Scenario;

/// Which batches devices prepare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChoiceName {
    /// The last ones in the epoch's order.
    #[default]
    Tail,
    /// Those that save the host most time per device time, once both are known.
    Saving,
}

/// The default strategy.
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
