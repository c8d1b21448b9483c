//! The stamps of all files of a source, which show which file changed: 16 bytes for each file,
//! sorted.

use super::plan::PlannedSource;
use crate::Error;
use crate::error::ShardError;
use crate::source::{self, SourceOptions, SourceStamp};
use crate::store::StorePath;
use std::path::{Path, PathBuf};

/// Maximum size of the file of stamps, in bytes.
const STAMPS_BYTES_MAX: u64 = 1 << 34;

/// The sorted stamps of the files of a source, and the stamp of the whole source.
pub(crate) fn list_stamps(
    from: &StorePath,
    options: &SourceOptions,
) -> Result<(Vec<u128>, SourceStamp), Error> {
    let mut stamps = Vec::new();
    let stamp = source::stamp_listing(from, options, &mut |_, stamp| stamps.push(stamp))?;
    stamps.sort_unstable();
    Ok((stamps, stamp))
}

/// The stamps as stored in a file.
pub(super) fn to_bytes(stamps: &[u128]) -> Vec<u8> {
    stamps.iter().flat_map(|stamp| stamp.to_le_bytes()).collect()
}

/// Fails if the source does not exist, or if a file of it has changed. `stamps` is the file with
/// the stamps of the plan.
pub(super) fn check(source: &PlannedSource, stamps: &Path) -> Result<(), Error> {
    let place = source::find(&source.path, &source.options.remote)?;
    if let Some(source) = source::missing(&place, &source.options)? {
        return Err(ShardError::SourceMissing { source }.into());
    }
    let mut now: Vec<(u128, PathBuf)> = Vec::new();
    let stamp = source::stamp_listing(&place, &source.options, &mut |path, stamp| {
        now.push((stamp, path.to_path_buf()));
    })?;
    if stamp.to_string() == source.stamp {
        return Ok(());
    }
    // Without the stamps, the error does not name a file.
    let read = meetpoint_storage::files::read_regular(stamps, STAMPS_BYTES_MAX);
    let is_known = read.is_ok();
    let before = read.unwrap_or_default();
    let before: Vec<u128> =
        before.as_chunks::<16>().0.iter().map(|bytes| u128::from_le_bytes(*bytes)).collect();
    let is_new = |(stamp, _): &&(u128, PathBuf)| is_known && before.binary_search(stamp).is_err();
    let file = now.iter().filter(is_new).map(|(_, path)| path.clone()).min();
    let files = (before.len() as u64, now.len() as u64);
    Err(ShardError::SourceChanged { source: source.path.clone(), file, files }.into())
}
