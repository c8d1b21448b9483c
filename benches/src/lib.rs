//! Shared by all benches: options, rows of results, pictures to measure.

pub mod dataset;
mod fio;
pub mod pictures;
pub mod storage;

pub use meetpoint_jpeg_benches::{Machine, Options, Report, Row, Target, median};
