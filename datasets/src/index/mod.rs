//! Side files that make samples easy to reach: the index of keys, and datasets in place.
//!
//! In reading order: [`index()`] (a source becomes a dataset without a copy of its content),
//! `in_place` (where its samples lie), [`index_keys`] (from key to sample), [`check_contents`]
//! (whether files are what they were).

mod contents;
mod in_place;
mod keys;

use crate::Error;
use crate::pack::{PackOptions, PackProgress, PackSummary, pack};
use std::path::Path;

pub use contents::check_contents;
pub(crate) use in_place::InPlace;
pub use keys::{IndexProgress, KeysSummary, check_keys, index_keys};

/// Indexes the source `from` where it lies: the dataset `to` holds keys, labels, checksums, entry
/// points and further columns, and says of each sample in which file its content is.
///
/// It is [`pack()`] but for the content, and takes the same options; images stay as they are, so
/// of [`PackOptions::jpeg`] only the spacing of entry points counts. A sample whose bytes lie
/// nowhere as they are is an error that names it.
pub fn index(
    from: &Path,
    to: &Path,
    options: &PackOptions,
    progress: &mut dyn FnMut(PackProgress),
) -> Result<PackSummary, Error> {
    pack(from, to, &PackOptions { in_place: true, ..options.clone() }, progress)
}
