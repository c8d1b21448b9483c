//! The working folders that other processes left beside a destination, or are still writing.

use super::names::{
    JOURNAL_NAME, MARK, RESUMABLE, foreign_entry, is_partial_of, is_place_for_files, place_beside,
};
use crate::named_lock::lock_named;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// The working folder of a process that has ended, locked until this is dropped.
#[derive(Debug)]
pub(crate) struct LeftoverFolder {
    path: PathBuf,
    /// `None` once it is resumed.
    folder: Option<File>,
}

impl LeftoverFolder {
    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The locked folder, which stays locked when this is dropped.
    pub(super) fn take(&mut self) -> File {
        self.folder.take().expect("leftovers are resumed once")
    }

    /// Removes it.
    pub(super) fn remove(&self) -> std::io::Result<()> {
        remove_tree(&self.path)
    }
}

impl Drop for LeftoverFolder {
    fn drop(&mut self) {
        self.folder.iter().for_each(unlock);
    }
}

/// The working folders beside a destination.
#[derive(Debug, Default)]
pub(crate) struct SiblingPaths {
    /// Those of processes that have ended; locked.
    pub(crate) remains: Vec<LeftoverFolder>,
    /// Those of processes that are still writing.
    pub(crate) in_use: Vec<PathBuf>,
    /// Those that contain a file that Meetpoint did not write, and the name of that file.
    pub(crate) foreign: Vec<(PathBuf, String)>,
}

/// The working folders beside a destination, in the order of their names.
pub(super) fn find_places(destination: &Path) -> std::io::Result<SiblingPaths> {
    let parent = destination.parent().expect("a destination has a name, so a parent");
    let name = destination.file_name().expect("a destination has a name");
    let mut found = SiblingPaths::default();
    for entry in std::fs::read_dir(parent)? {
        let entry = entry?;
        let path = entry.path();
        if !is_partial_of(&entry.file_name(), name) || !entry.file_type()?.is_dir() {
            continue;
        }
        let Some(folder) = lock(&path)? else {
            if path.exists() {
                found.in_use.push(path);
            }
            continue;
        };
        // Only folders with content that Meetpoint writes are resumed or removed, whatever their
        // name.
        match foreign_entry(&path, Some(JOURNAL_NAME))? {
            foreign if foreign.is_none() || is_place_for_files(&path)? => {
                found.remains.push(LeftoverFolder { path, folder: Some(folder) });
            }
            None => {}
            Some(foreign) => {
                let is_ours = path == place_beside(destination, RESUMABLE)
                    || [JOURNAL_NAME, MARK].iter().any(|name| path.join(name).is_file());
                if is_ours {
                    found.foreign.push((path, foreign));
                }
            }
        }
    }
    found.remains.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(found)
}

/// Bytes of the files in the resumable folder of a destination; 0 if there is none.
pub(crate) fn retained_bytes(destination: &Path) -> std::io::Result<u64> {
    let place = place_beside(&std::path::absolute(destination)?, RESUMABLE);
    let entries = match std::fs::read_dir(place) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut bytes = 0;
    for entry in entries {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}

/// Opens and locks a folder; `None` if another process has locked it or it no longer exists.
pub(super) fn lock(path: &Path) -> std::io::Result<Option<File>> {
    let folder = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    lock_named(folder, path)
}

/// Unlocks a folder explicitly: a child process that is being started briefly has a copy of the
/// descriptor, which would keep the folder locked.
pub(super) fn unlock(folder: &File) {
    // If this fails, closing the descriptor unlocks the folder.
    let _ = flock(folder, FlockOperation::Unlock);
}

/// Removes a folder and its contents; opens one folder at a time at any depth, so that a single
/// free file descriptor is enough.
pub(super) fn remove_tree(folder: &Path) -> std::io::Result<()> {
    for entry in WalkDir::new(folder).max_open(1).contents_first(true) {
        let entry = entry?;
        if entry.file_type().is_dir() {
            std::fs::remove_dir(entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
