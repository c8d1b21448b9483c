//! Indexes: the index of keys, and datasets with content in place.
//!
//! In reading order: [`index()`] (a source becomes a dataset without a copy of its content),
//! `in_place` (the locations of its samples), [`index_keys`] (from key to sample),
//! [`check_contents`] (whether files are unchanged).

mod contents;
mod in_place;
mod keys;

use crate::Error;
use crate::pack::{PackOptions, PackProgress, PackSummary, pack};
use std::path::Path;

pub use contents::check_contents;
pub(crate) use in_place::InPlace;
pub use keys::{IndexProgress, KeysSummary, check_keys, index_keys};

/// Indexes the source `from` in place: the dataset `to` has keys, labels, checksums, entry points
/// and further columns, and for each sample the file of its content.
///
/// It is like [`pack()`] except for the content, and takes the same options. Images are not
/// changed, so of [`PackOptions::jpeg`] only the spacing of entry points applies. A sample whose
/// bytes the source does not contain unchanged is an error that names it.
pub fn index(
    from: &Path,
    to: &Path,
    options: &PackOptions,
    progress: &mut dyn FnMut(PackProgress),
) -> Result<PackSummary, Error> {
    pack(from, to, &PackOptions { in_place: true, ..options.clone() }, progress)
}
