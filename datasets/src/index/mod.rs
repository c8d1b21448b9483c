//! Side files that make samples easy to reach: the index of keys, and datasets in place.
//!
//! In reading order: [`index_keys`] (from key to sample).

mod keys;

pub use keys::{IndexProgress, KeysSummary, check_keys, index_keys};
