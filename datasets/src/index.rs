//! Indexes: datasets with content in place, and the index of keys.
//!
//! In reading order: [`index()`] (a source becomes a dataset without a copy of its content),
//! [`check_contents`] (whether files are unchanged), [`index_keys`] and [`check_keys`] (from key to
//! sample).

use crate::Error;
use crate::pack::{PackOptions, PackProgress, PackSummary, pack};
use std::path::Path;

pub use crate::key_index::{IndexProgress, KeysSummary, check_keys, index_keys};
pub use crate::verify::contents::check_contents;

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
