//! Questions that are asked of every strategy, each answered by a table.
//!
//! [`robustness`]: what a wrong profile, a slowing device, jitter and several ranks do.

mod robustness;

pub use robustness::{Condition, Row, Table, conditions, robustness};
