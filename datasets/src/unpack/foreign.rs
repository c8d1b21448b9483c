//! Whether a folder contains files that would not be written again, so that it must not be
//! replaced.

use crate::sink::{METADATA_NAME, SinkKind, key_of_file_name};
use meetpoint_prepare::Dataset;
use std::collections::BTreeSet;
use std::io::{Error, Result};
use std::path::Path;

/// An entry of the folder that is neither a file of the sink nor, in a folder of files, a file or
/// folder of the dataset's keys. The keys of a source are not known beforehand, so without a
/// dataset everything in a folder of files is foreign.
pub(super) fn entry_of(
    path: &Path,
    sink: SinkKind,
    dataset: Option<&Dataset>,
) -> Result<Option<String>> {
    if !path.symlink_metadata()?.is_dir() {
        return Ok(Some("no files, being one itself".to_owned()));
    }
    let keys = dataset.filter(|_| sink == SinkKind::Folder).map(keys_of).transpose()?;
    let keys = keys.unwrap_or_default();
    for entry in walkdir::WalkDir::new(path).min_depth(1).follow_links(false) {
        let entry = entry.map_err(Error::from)?;
        let relative = entry.path().strip_prefix(path).expect("the walk stays below its root");
        let kind = entry.file_type();
        let is_ours = relative.to_str().is_some_and(|name| match sink.is_own_file(name) {
            Some(is_own) => is_own && kind.is_file(),
            None => {
                let is_key = |key: &str| keys.contains(key);
                let is_file = is_key(name)
                    || key_of_file_name(name).is_some_and(is_key)
                    || !keys.is_empty() && name == METADATA_NAME;
                kind.is_file() && is_file || kind.is_dir() && has_folder(&keys, name)
            }
        });
        if !is_ours {
            return Ok(Some(relative.display().to_string()));
        }
    }
    Ok(None)
}

fn keys_of(dataset: &Dataset) -> Result<BTreeSet<String>> {
    let mut keys = BTreeSet::new();
    for batch in 0..dataset.record_batches() {
        keys.extend(dataset.keyed_rows(batch).map_err(Error::other)?.keys);
    }
    Ok(keys)
}

/// Whether a folder contains a key.
fn has_folder(keys: &BTreeSet<String>, folder: &str) -> bool {
    let prefix = format!("{folder}/");
    keys.range(prefix.clone()..).next().is_some_and(|key| key.starts_with(&prefix))
}
