//! `host-only`: the host prepares everything. The baseline.

use crate::board::Board;
use crate::closed_forms::{Inputs, NotApplicable, Prediction, Regime, known};
use crate::terms::Terms;

use super::guarantees::Order;
use super::ordered::{OrderProgress, Ordered, Pattern, Rule};
use super::strategy::{DeviceUse, EpochPlanner, RecordKind, Strategy, StrategyOption};
use crate::strategy_name::StrategyName;

/// The host prepares everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostOnly;

impl Strategy for HostOnly {
    const NAME: StrategyName = StrategyName::HostOnly;
    const SUMMARY: &'static str = "the host prepares everything";
    const DEVICES: DeviceUse = DeviceUse::Never;
    const RECORD: RecordKind = RecordKind::None;
    const OPTIONS: &'static [StrategyOption<Self>] = &[];

    fn order(&self) -> Order {
        Order::Baseline
    }

    /// T = N·t_c.
    fn closed_form(&self, inputs: &Inputs) -> Result<Prediction, NotApplicable> {
        let t_c = known(inputs.profile.host_ns, "t_c")?;
        Ok(Prediction {
            total_ns: f64::from(inputs.batches) * t_c,
            device_batches: 0.0,
            regime: Regime::HostAlone,
            formula: "T = N·t_c",
        })
    }
}

impl EpochPlanner for HostOnly {
    type Plan = Ordered<Self>;

    fn plan(&self, terms: &Terms) -> Ordered<Self> {
        Ordered::new(terms, Pattern::Ascending, *self)
    }
}

impl Rule for HostOnly {
    const USES_DEVICES: bool = false;

    fn start(&mut self, progress: &mut OrderProgress, board: &mut Board) {
        progress.begin_fixed(board, Pattern::Ascending);
    }
}
