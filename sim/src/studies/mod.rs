//! Experiments with every strategy, each with a table as its result.
//!
//! [`robustness`]: the effect of a wrong profile, a device that slows down, jitter and several
//! ranks.

mod robustness;

pub use robustness::{Condition, Row, Table, conditions, robustness};
