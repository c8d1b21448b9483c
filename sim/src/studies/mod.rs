//! Questions that are asked of every strategy, each answered by a table.
//!
//! [`closed_form_rows`]: the checked table of the formulas, regenerated; [`robustness`]: what a
//! wrong profile, a slowing device, jitter and several ranks do.

mod closed_form;
mod robustness;

pub use closed_form::{ClosedFormRow, closed_form_rows};
pub use robustness::{Condition, Row, Table, conditions, robustness};
