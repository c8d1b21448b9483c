//! What every bench shares: options, rows of results, pictures to measure on.

pub mod dataset;
mod fio;
pub mod pictures;
pub mod storage;

pub use meetpoint_jpeg_benches::{Machine, Options, Report, Row, Target, median};
