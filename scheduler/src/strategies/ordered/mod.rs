//! Plans whose order of consumption follows from a few integers.
//!
//! In reading order: `order` (positions, patterns, cursors), `order_progress` (an order, and
//! the progress in it), `rule` (what a strategy adds, and the plan), `shares` (computing the share
//! of each part), `sharing` (rules that determine the shares within the epoch), `agreed` (shares of
//! windows that ranks agree on).

mod agreed;
mod order;
mod order_progress;
mod rule;
mod shares;
mod sharing;

pub(super) use agreed::{AgreedWindows, GRANT_UNMEASURED};
pub(super) use order::{Frozen, Pattern};
pub(super) use order_progress::OrderProgress;
pub(super) use rule::{Ordered, Rule};
pub(super) use sharing::{Caps, Division, SharePolicy, Shares, Sharing};
