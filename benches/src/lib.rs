//! What every bench shares: options, rows of results, the machine they were measured on.

mod machine;
mod options;
pub mod pictures;
mod rows;
pub mod storage;

pub use machine::Machine;
pub use options::Options;
pub use rows::{Report, Row, Target, median};
