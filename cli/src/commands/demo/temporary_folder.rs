//! The demo's temporary folder: locked while in use, so that the next demo can remove the folders
//! of killed ones.

use crate::surface::fault::Fault;
use anyhow::Context;
use meetpoint_diagnose::{Remedy, shown};
use meetpoint_report::write::without_path;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::{Path, PathBuf};

const PREFIX: &str = "meetpoint-demo-";

/// A folder that is removed when this value is dropped.
#[derive(Debug)]
pub(in crate::commands) struct TemporaryFolder {
    folder: tempfile::TempDir,
    /// Holds the lock, which the kernel releases however this process ends.
    _lock: File,
}

impl TemporaryFolder {
    /// Creates a folder in `parent` and removes those of demos that were killed. Returns the
    /// removed folders as well.
    pub(in crate::commands) fn new(parent: &Path) -> anyhow::Result<(Self, Vec<PathBuf>)> {
        let failed = || {
            let message = format!("failed to create a temporary folder in {}", shown(parent));
            let remedy = Remedy::advice("set TMPDIR to a folder that can be written")
                .or("name one with --keep");
            Fault::new("temporary_folder", message, remedy)
        };
        let cleared = clear_abandoned(parent);
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(parent)
            .map_err(|error| without_path(&error))
            .with_context(failed)?;
        let lock = File::open(folder.path()).with_context(failed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).with_context(failed)?;
        Ok((Self { folder, _lock: lock }, cleared))
    }

    pub(in crate::commands) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders whose lock no process holds. Those of other users cannot be opened or
/// removed, and remain.
fn clear_abandoned(parent: &Path) -> Vec<PathBuf> {
    let mut cleared = Vec::new();
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            && is_older_than_a_start(&entry);
        let Some(lock) = is_ours.then(|| File::open(entry.path()).ok()).flatten() else {
            continue;
        };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
            && std::fs::remove_dir_all(entry.path()).is_ok()
        {
            cleared.push(entry.path());
        }
    }
    cleared
}

/// A demo that has just started has created its folder but may not have locked it yet.
fn is_older_than_a_start(entry: &std::fs::DirEntry) -> bool {
    let modified = entry.metadata().and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age.as_secs() >= 10))
}

#[cfg(test)]
mod tests {
    use super::TemporaryFolder;
    use std::time::{Duration, SystemTime};

    #[test]
    fn a_parent_that_takes_no_folder_is_an_error_with_a_remedy() {
        let error = TemporaryFolder::new(std::path::Path::new("/nowhere/at/all")).unwrap_err();
        let said = crate::surface::failure::describe(&error);
        assert!(said.contains("/nowhere/at/all") && said.contains("TMPDIR"), "{said}");
        assert!(!said.contains("meetpoint-demo-"), "{said}");
    }

    #[test]
    fn folders_of_killed_demos_are_removed_and_those_in_use_stay() {
        let parent = tempfile::tempdir().unwrap();
        let age = |path: &std::path::Path| {
            let past = SystemTime::now() - Duration::from_secs(60);
            std::fs::File::open(path).unwrap().set_modified(past).unwrap();
        };
        let (in_use, cleared) = TemporaryFolder::new(parent.path()).unwrap();
        assert!(cleared.is_empty());
        age(in_use.path());
        let left = parent.path().join("meetpoint-demo-left");
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("picture.jpg"), b"x").unwrap();
        age(&left);
        let others = parent.path().join("others");
        std::fs::create_dir(&others).unwrap();
        age(&others);
        let (_second, cleared) = TemporaryFolder::new(parent.path()).unwrap();
        assert_eq!(cleared, vec![left.clone()]);
        assert!(!left.exists() && others.exists() && in_use.path().exists());
    }
}
