//! `mte-feedback`: the two phases of `mte`, with the switch determined by measurements.
//!
//! The host's part ends when every part's unfinished batches are expected to be done by the time
//! all others are consumed: R·t_s − progress ≤ (F+R−1)·t_g, with R batches unfinished and F
//! finished at the devices. From then on, all batches that the host has not claimed are left to the
//! devices. The shares at the switch replay the epoch.

use crate::board::Board;
use crate::closed_forms::{self, Inputs, NotApplicable, Prediction};
use crate::ranks::Proposal;
use crate::terms::Terms;

use super::guarantees::Order;
use super::ordered::{
    Caps, Division, OrderProgress, Ordered, Pattern, SharePolicy, Shares, Sharing,
};
use super::strategy::{DeviceUse, EpochPlanner, RecordKind, Strategy, StrategyOption};
use crate::strategy_name::StrategyName;

/// With many parts, the switch is checked less often: one host claim is skipped per this number of
/// parts.
const PARTS_PER_CLAIM: usize = 16;

/// As [`super::Mte`], but measurements determine the switch to the devices' part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MteFeedback;

impl Strategy for MteFeedback {
    const NAME: StrategyName = StrategyName::MteFeedback;
    const SUMMARY: &'static str = "as `mte`, but the host's part ends as soon as the devices are \
         about to finish theirs";
    const DEVICES: DeviceUse = DeviceUse::Required;
    const RECORD: RecordKind = RecordKind::Shares;
    const OPTIONS: &'static [StrategyOption<Self>] = &[];

    fn order(&self) -> Order {
        Order::Replayable
    }

    fn closed_form(&self, inputs: &Inputs) -> Result<Prediction, NotApplicable> {
        closed_forms::two_phases(inputs)
    }
}

impl EpochPlanner for MteFeedback {
    type Plan = Ordered<Sharing<Switch>>;

    fn plan(&self, terms: &Terms) -> Self::Plan {
        Sharing::plan(terms, Pattern::Open, Switch { look_in: 0, would_switch: false })
    }
}

/// The state of the switch that ends the host's part.
#[derive(Debug, Clone)]
pub(crate) struct Switch {
    /// Host claims until the switch is checked again.
    look_in: u32,
    /// Whether this rank would end the host's part, if all ranks must decide that together.
    would_switch: bool,
}

impl SharePolicy for Switch {
    fn division(&self) -> Option<(Division, Caps)> {
        None
    }

    fn pattern(&self, _: &OrderProgress, _: &Board, _: &Shares, _: u32) -> Pattern {
        Pattern::Split
    }

    fn replayed(&self, _: &mut OrderProgress, _: &Board, _: &mut Shares, _: &[u64]) -> Pattern {
        Pattern::Split
    }

    #[inline]
    fn switches(&mut self, board: &Board) -> bool {
        if self.look_in > 0 {
            self.look_in -= 1;
            return false;
        }
        let parts = board.ledger.parts.len();
        self.look_in = u32::try_from(parts / PARTS_PER_CLAIM).expect("counted by a u16");
        self.would_switch = would_switch(board);
        self.would_switch && board.terms.ranks == 1
    }

    fn would_switch(&self) -> bool {
        self.would_switch
    }

    fn agreed_total(&self, combined: &Proposal, most: u32) -> Option<u32> {
        combined.switch.then_some(most)
    }
}

fn would_switch(board: &Board) -> bool {
    let ledger = &board.ledger;
    let ready_ns = board.ready_ns();
    let unfinished = u64::from(ledger.untouched() + ledger.device_claimed());
    let finished = u64::from(ledger.device_finished());
    if unfinished == 0 || ready_ns == 0 {
        return false;
    }
    // Batches that the host has prepared are consumed first, with at least one step each.
    let steps = finished + unfinished - 1 + u64::from(ledger.host_open());
    let drained_ns = steps.saturating_mul(ready_ns);
    let shared = ledger.parts.shared();
    (0..ledger.parts.len()).all(|at| {
        let part_ns = board.part_ns(at);
        let (claimed, progress_ns) = if shared {
            let spent = board.devices.iter().map(|d| d.progress_ns(board.now, d.batch_ns()));
            // Devices that share a part finish their current batches concurrently.
            let count = board.devices.len() as u64;
            (ledger.device_claimed(), spent.sum::<u64>() / (count * count))
        } else {
            let device = &board.devices[at];
            (device.claimed.len(), device.progress_ns(board.now, part_ns))
        };
        let left = u64::from(ledger.parts.part(at).untouched() + claimed);
        if left == 0 {
            return true;
        }
        let work_ns = left.saturating_mul(part_ns).saturating_sub(progress_ns);
        part_ns > 0 && board.usable(at) && work_ns <= drained_ns
    })
}
