//! Experiments, each with a table as its result.
//!
//! [`hosts`]: agents for trainings over up to 1,000 hosts. [`robustness`]: the effect of a wrong
//! profile, a device that slows down, jitter and several ranks.

pub mod hosts;
mod robustness;

pub use robustness::{Condition, Row, Table, conditions, robustness};
