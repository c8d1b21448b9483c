//! `device-only`: the devices prepare everything, in ascending order.

use crate::board::Board;
use crate::closed_forms::{Inputs, NotApplicable, Prediction, Regime, known};
use crate::terms::Terms;
use crate::types::{BatchIndex, DeviceId};

use super::guarantees::Order;
use super::ordered::{OrderProgress, Ordered, Pattern, Rule};
use super::plan::Grant;
use super::strategy::{DeviceUse, EpochPlanner, RecordKind, Strategy, StrategyOption};
use crate::strategy_name::StrategyName;

/// The devices prepare everything, in ascending order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceOnly;

impl Strategy for DeviceOnly {
    const NAME: StrategyName = StrategyName::DeviceOnly;
    const SUMMARY: &'static str = "the devices prepare everything";
    const DEVICES: DeviceUse = DeviceUse::Required;
    const RECORD: RecordKind = RecordKind::None;
    const OPTIONS: &'static [StrategyOption<Self>] = &[];

    fn order(&self) -> Order {
        Order::Baseline
    }

    /// T = N·max(t_s, t_g).
    fn closed_form(&self, inputs: &Inputs) -> Result<Prediction, NotApplicable> {
        let t_s = known(inputs.profile.device_ns, "t_s")?;
        let t_g = known(inputs.profile.ready_ns, "t_g")?;
        let n = f64::from(inputs.batches);
        Ok(Prediction {
            total_ns: n * t_s.max(t_g),
            device_batches: n,
            regime: if t_g > t_s { Regime::Accelerator } else { Regime::DeviceAlone },
            formula: "T = N·max(t_s, t_g)",
        })
    }
}

impl EpochPlanner for DeviceOnly {
    type Plan = Ordered<Self>;

    fn plan(&self, terms: &Terms) -> Ordered<Self> {
        Ordered::new(terms, Pattern::Ascending, *self)
    }
}

impl Rule for DeviceOnly {
    fn start(&mut self, progress: &mut OrderProgress, board: &mut Board) {
        progress.share_everything(board);
        progress.begin_fixed(board, Pattern::Ascending);
    }

    #[inline]
    fn grant(&self, _: &OrderProgress, board: &Board, device: DeviceId) -> Grant {
        let parts = &board.ledger.parts;
        Grant::from_front(parts.part(parts.of(device)).lowest_run())
    }

    #[inline]
    fn grants_ended(&self, _: &OrderProgress, board: &Board, device: DeviceId) -> bool {
        let parts = &board.ledger.parts;
        parts.part(parts.of(device)).untouched() == 0
    }

    fn takes_preloaded(&self, _: &OrderProgress, _: &Board, _: BatchIndex) -> bool {
        true
    }
}
