//! Whether a folder holds something that a dataset does not, so that it must not be replaced.

use meetpoint_prepare::Dataset;
use std::collections::BTreeSet;
use std::io::{Error, Result};
use std::path::Path;

/// Something in the folder that is neither a file nor a folder of the dataset's keys.
pub(super) fn entry_of(path: &Path, dataset: &Dataset) -> Result<Option<String>> {
    if !path.symlink_metadata()?.is_dir() {
        return Ok(Some("no files, being one itself".to_owned()));
    }
    let keys = keys_of(dataset)?;
    for entry in walkdir::WalkDir::new(path).min_depth(1).follow_links(false) {
        let entry = entry.map_err(Error::from)?;
        let relative = entry.path().strip_prefix(path).expect("the walk stays below its root");
        let kind = entry.file_type();
        let is_ours = relative.to_str().is_some_and(|name| {
            kind.is_file() && keys.contains(name) || kind.is_dir() && has_folder(&keys, name)
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

/// Whether a key lies in a folder.
fn has_folder(keys: &BTreeSet<String>, folder: &str) -> bool {
    let prefix = format!("{folder}/");
    keys.range(prefix.clone()..).next().is_some_and(|key| key.starts_with(&prefix))
}
