//! The classes of a folder: its sub-folders, which label the files in them.

use super::super::ContentKind;
use super::scan::Scan;
use crate::store::StorePath;
use crate::{Error, natural_order};
use std::collections::BTreeSet;

/// Gives each file its class, or none in a flat folder.
pub(super) fn label(
    found: &mut Scan,
    folders: BTreeSet<String>,
    from: &StorePath,
) -> Result<(), Error> {
    if found.files.is_empty() && !found.unreadable.is_empty() {
        let files = std::mem::take(&mut found.unreadable);
        return Err(Error::Unreadable { checked: files.len() as u64, files });
    }
    if found.files.is_empty() {
        let others = found.others.len() as u64;
        return Err(match found.kind {
            ContentKind::Image => Error::NoImages { path: from.to_path_buf(), others },
            kind => Error::NoFilesOfKind { path: from.to_path_buf(), kind, others },
        });
    }
    let at_top = found.files.iter().find(|file| !file.key.contains('/'));
    let below = found.files.iter().find(|file| file.key.contains('/'));
    match (at_top, below) {
        (Some(file), Some(folder)) => {
            return Err(Error::MixedLayout {
                path: from.to_path_buf(),
                file: file.key.clone(),
                folder: folder.key.clone(),
            });
        }
        // If the images are at the top level, sub-folders without images are not classes.
        (Some(_), None) => return Ok(()),
        (None, _) => {}
    }
    let mut labels: Vec<String> = folders.into_iter().collect();
    labels.sort_by(|left, right| natural_order(left, right));
    let mut is_used = vec![false; labels.len()];
    for file in &mut found.files {
        let class = file.key.split('/').next().expect("split yields at least one piece");
        let index = labels
            .binary_search_by(|label| natural_order(label, class))
            .expect("a file below the top lies in a folder that was listed");
        is_used[index] = true;
        file.label = Some(i32::try_from(index).expect("fewer than 2^31 folders"));
    }
    // A class whose images are all left out retains its index, like one whose images cannot be
    // decoded.
    for file in &found.unreadable {
        let class = file.path.split('/').next().expect("split yields at least one piece");
        if let Ok(index) = labels.binary_search_by(|label| natural_order(label, class)) {
            is_used[index] = true;
        }
    }
    if let Some(index) = is_used.iter().position(|used| !used) {
        return Err(Error::EmptyClass { path: from.to_path_buf(), class: labels[index].clone() });
    }
    found.labels = labels;
    Ok(())
}
