//! Operations on datasets: shuffle, split, merge, sample, select; show, count, compare, repair.
//!
//! None of them needs memory for a whole dataset; `docs/operations.md` lists the memory
//! of each. An open dataset takes 32 bytes for each sample whose record batch was read.
//!
//! In reading order: [`Share`] (shares of a whole), `draw` (random choices), `gather` (rows in any
//! order), `copy` (rows into a dataset), then each operation: [`shuffle`], [`split`], [`merge`],
//! [`sample`], [`select`], [`rows`], [`stats`], [`diff`], [`repair`]; [`OperationError`].

mod column;
mod copy;
mod copy_options;
mod diff;
mod draw;
mod gather;
mod merge;
mod repair;
mod rows;
mod sample;
mod select;
mod shuffle;
mod split;
mod stats;

pub use crate::error::OperationError;
pub use crate::share::Share;
pub use column::VALUES_MAX;
pub use copy::CopySummary;
pub use copy_options::{CopyOptions, Progress};
pub use diff::{Changed, DiffOptions, Difference, Keys, MovedSample, diff};
pub use gather::carried;
pub use merge::{MergeOrder, merge};
pub use repair::{LabelsFrom, Lost, ManifestState, RepairSummary, RepairTo, repair};
pub use rows::{ELEMENTS_MAX, ShownRow, row_values, rows};
pub use sample::{Amount, sample};
pub use select::{Selection, select};
pub use shuffle::shuffle;
pub use split::{SplitBy, split};
pub use stats::{ColumnCount, Distribution, Duplicates, NAMED_MAX, Statistics, stats};
