//! `wrr-frozen`: the turns of `wrr`, computed in advance from known or measured times; the
//! accelerator waits for the planned source.

use crate::board::Board;
use crate::closed_forms::{self, Inputs, NotApplicable, Prediction};
use crate::error::{Error, at_least_one};
use crate::ranks::Proposal;
use crate::terms::Terms;

use super::guarantees::Order;
use super::ordered::{
    Caps, Division, Frozen, OrderProgress, Ordered, Pattern, SharePolicy, Shares, Sharing,
};
use super::strategy::{DeviceUse, EpochPlanner, RecordKind, Strategy, StrategyOption};
use crate::strategy_name::StrategyName;

/// Maximum number of batches by which devices may run ahead.
const SLACK_MAX: u32 = 4;

/// … and the maximum as a fraction of their share: one part in this number.
const SLACK_OF_SHARE: u32 = 8;

/// Round robin with an interleaving of sources that is computed in advance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WrrFrozen;

impl Strategy for WrrFrozen {
    const NAME: StrategyName = StrategyName::WrrFrozen;
    const SUMMARY: &'static str = "as `wrr`, but host and devices alternate in a fixed pattern, \
         computed from the times of the first batches";
    const DEVICES: DeviceUse = DeviceUse::Required;
    const RECORD: RecordKind = RecordKind::Turns;
    const OPTIONS: &'static [StrategyOption<Self>] = &[];

    fn order(&self) -> Order {
        Order::Replayable
    }

    fn closed_form(&self, inputs: &Inputs) -> Result<Prediction, NotApplicable> {
        closed_forms::round_robin(inputs)
    }

    fn check(&self, terms: &Terms) -> Result<(), Error> {
        match terms.times_known() || terms.replay.is_some() {
            true => Ok(()),
            false => at_least_one("profile_batches", terms.profile_batches),
        }
    }
}

impl EpochPlanner for WrrFrozen {
    type Plan = Ordered<Sharing<Self>>;

    fn plan(&self, terms: &Terms) -> Self::Plan {
        Sharing::plan(terms, Pattern::Open, *self)
    }
}

impl SharePolicy for WrrFrozen {
    fn division(&self) -> Option<(Division, Caps)> {
        Some((Division::Optimal, Caps::Held))
    }

    /// If workers prepare at the same time, a step on a device batch costs the host nothing.
    fn ready_ns(&self, board: &Board) -> u64 {
        let ready_ns = board.ready_ns();
        let hidden = board.terms.background() && ready_ns < board.host_ns();
        if hidden { 0 } else { ready_ns }
    }

    fn pattern(
        &self,
        progress: &OrderProgress,
        board: &Board,
        shares: &Shares,
        first: u32,
    ) -> Pattern {
        let total: u32 = progress.layout.shares.iter().sum();
        let slots = board.terms.spool_slots();
        Pattern::Frozen(Frozen {
            first,
            host_ns: board.host_ns().max(1),
            ready_ns: self.ready_ns(board),
            device_ns: shares.together_ns(),
            slack: SLACK_MAX.min(slots / 2).min(total / SLACK_OF_SHARE),
        })
    }

    fn agreed_pattern(&self, pattern: Pattern, combined: &Proposal, total: u32) -> Pattern {
        let Pattern::Frozen(frozen) = pattern else { return pattern };
        let [host_ns, ready_ns, device_ns] = combined.times_ns;
        let slack = SLACK_MAX.min(total / SLACK_OF_SHARE);
        Pattern::Frozen(Frozen { host_ns, ready_ns, device_ns, slack, ..frozen })
    }

    fn replayed(&self, _: &mut OrderProgress, _: &Board, _: &mut Shares, turns: &[u64]) -> Pattern {
        let small = |at: usize| u32::try_from(turns[at]).expect("checked with the configuration");
        Pattern::Frozen(Frozen {
            first: small(0),
            host_ns: turns[1],
            ready_ns: turns[2],
            device_ns: turns[3],
            slack: small(4),
        })
    }

    fn turns(&self, pattern: Pattern) -> Option<Vec<u64>> {
        let Pattern::Frozen(frozen) = pattern else { return None };
        let Frozen { first, host_ns, ready_ns, device_ns, slack } = frozen;
        Some(vec![first.into(), host_ns, ready_ns, device_ns, slack.into()])
    }
}
