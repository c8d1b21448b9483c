//! The strategies: which end prepares each batch, and in which order batches are consumed.
//!
//! Each strategy has one file, which declares its name, guarantees, options, closed form and
//! record, and plans its epochs. A new strategy needs that file, its `mod` line and its line in the
//! list below; options, help texts, reports and, in `strategy_name`, names derive from the list.
//!
//! In reading order: `guarantees`, `option` and `options` (declarations), `strategy` (the trait of
//! declarations), `plan` (the interface between epoch and strategy), `ordered` (plans whose order
//! follows from a few integers), the strategies, `selection`, `any` and `registry` (all of them
//! together).

#[macro_use]
mod registry;

/// Passes every strategy to another macro: type, file and name. Those under `decide` plan epochs
/// themselves; each of those under `select` selects one of the others for an epoch.
macro_rules! for_each_strategy {
    ($then:ident) => {
        $then! {
            decide {
                HostOnly host_only "host-only",
                DeviceOnly device_only "device-only",
                Mte mte "mte",
                MteFeedback mte_feedback "mte-feedback",
                Wrr wrr "wrr",
                WrrFrozen wrr_frozen "wrr-frozen",
                Windowed windowed "windowed",
            }
            select {
                Auto auto "auto",
            }
        }
    };
}

mod any;
mod auto;
mod device_only;
mod guarantees;
mod host_only;
mod mte;
mod mte_feedback;
mod option;
mod options;
mod ordered;
pub(crate) mod plan;
mod selection;
mod strategy;
mod windowed;
mod wrr;
mod wrr_frozen;

pub use crate::strategy_name::{StrategyName, UnknownStrategy};
pub use auto::Goal;
pub use guarantees::{Level, Order};
pub use mte::{Split, Tail};
pub use option::{AcceptedValues, OptionSpec, Share, Value, WholeRange, WrongOption};
pub use options::StrategyOptions;
pub use selection::{Reason, Selection};
pub use strategy::{DeviceUse, RecordKind, Strategy, StrategyOption};

use crate::board::Board;
use crate::ranks::Proposal;
use crate::terms::Terms;
use crate::types::{BatchIndex, DeviceId};
use plan::{Consumption, Grant, Next, Plan, StallAction};
use strategy::{Declared, EpochPlanner, StrategySelector};

for_each_strategy!(define_strategies);
