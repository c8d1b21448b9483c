//! The working folder of this process, and the rename that makes its content appear.

use super::leftover::{LeftoverFolder, lock, remove_tree, unlock};
use super::names::{FILES, MARK, RESUMABLE, place_beside};
use super::resolve::Destination;
use crate::Error;
use meetpoint_format::dataset::MANIFEST_NAME;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Maximum number of attempts to find an unused name.
const NAMES_MAX: u32 = 1000;

/// A locked folder to write in; removed when it is dropped before it is committed, unless it is
/// retained.
#[derive(Debug)]
pub(crate) struct Staging {
    path: PathBuf,
    /// The folder that is renamed to the destination: the working folder, or one inside it.
    content: PathBuf,
    folder: File,
    /// A spare descriptor, closed before the folder is removed, since the removal needs one.
    spare: Option<File>,
    is_committed: bool,
    /// Whether it remains after being dropped, so that another process can resume.
    is_retained: bool,
}

/// A descriptor reserved for the removal of a folder.
fn spare() -> std::io::Result<Option<File>> {
    File::open("/dev/null").map(Some)
}

impl Staging {
    /// Takes over the folder of a process that ended, to resume its dataset.
    pub(crate) fn resume(mut remains: LeftoverFolder) -> Result<Self, Error> {
        let path = remains.path().to_path_buf();
        let spare = spare().map_err(|source| Error::Write { path: path.clone(), source })?;
        let folder = remains.take();
        let content = path.clone();
        Ok(Self { content, path, folder, spare, is_committed: false, is_retained: false })
    }

    /// Sets whether the folder is retained when it is dropped before it is committed.
    pub(crate) fn keep(&mut self, is_retained: bool) {
        self.is_retained = is_retained;
    }

    /// Whether it is retained.
    pub(crate) fn is_retained(&self) -> bool {
        self.is_retained
    }

    /// Creates and locks the resumable folder of a dataset; an error if another process is writing
    /// in it.
    pub(crate) fn create_resumable(destination: &Destination) -> Result<Self, Error> {
        let path = place_beside(&destination.path, RESUMABLE);
        for _ in 0..NAMES_MAX {
            if let Some(mut staging) = Self::create_at(&path)? {
                staging.keep(true);
                return Ok(staging);
            }
            // It exists, or another process that cleans up locked it first.
            let failed = |source| Error::Write { path: path.clone(), source };
            if path.exists() && lock(&path).map_err(failed)?.is_none() {
                break;
            }
        }
        Err(Error::InUse { destination: destination.path.clone(), place: path })
    }

    /// Creates and locks a folder beside the destination, for a dataset.
    pub(crate) fn create(destination: &Destination) -> Result<Self, Error> {
        for number in 0..NAMES_MAX {
            let place = format!("{}-{number}", std::process::id());
            if let Some(staging) = Self::create_at(&place_beside(&destination.path, &place))? {
                return Ok(staging);
            }
        }
        let source = Errno::EXIST.into();
        Err(Error::Write { path: destination.path.clone(), source })
    }

    /// Creates and locks a folder; `None` if it already exists.
    fn create_at(path: &Path) -> Result<Option<Self>, Error> {
        let failed = |source| Error::Write { path: path.to_path_buf(), source };
        match std::fs::create_dir(path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(None),
            made => made.map_err(failed)?,
        }
        let opened = || Ok((lock(path)?, spare()?));
        match opened() {
            Ok((Some(folder), spare)) => {
                let (content, path) = (path.to_path_buf(), path.to_path_buf());
                Ok(Some(Self {
                    content,
                    path,
                    folder,
                    spare,
                    is_committed: false,
                    is_retained: false,
                }))
            }
            // Another pack, cleaning up, locked the folder first and removes it.
            Ok((None, _)) => Ok(None),
            Err(error) => {
                // The folder is empty; if it cannot be removed now, the next pack removes it.
                let _ = std::fs::remove_dir(path);
                Err(failed(error))
            }
        }
    }

    /// Like [`Self::create`], for files with arbitrary names.
    pub(crate) fn create_for_files(destination: &Destination) -> Result<Self, Error> {
        let mut staging = Self::create(destination)?;
        let content = staging.path.join(FILES);
        File::create_new(staging.path.join(MARK))
            .and_then(|_| std::fs::create_dir(&content))
            .map_err(|source| Error::Write { path: content.clone(), source })?;
        staging.content = content;
        Ok(staging)
    }

    /// The folder to write in.
    pub(crate) fn content(&self) -> &Path {
        &self.content
    }

    /// Writes the manifest: the last file, since a folder without it is not a dataset.
    pub(crate) fn write_manifest(&mut self, text: &[u8]) -> Result<(), Error> {
        let path = self.content.join(MANIFEST_NAME);
        let write = || {
            let mut file = File::create_new(&path)?;
            file.write_all(text)?;
            file.sync_all()
        };
        write().map_err(|source| Error::Write { path: path.clone(), source })
    }

    /// Renames the folder to the destination; returns whether it replaced something.
    ///
    /// The files in it have been synced by their writers.
    pub(crate) fn commit(mut self, destination: &Destination) -> Result<bool, Error> {
        let to = &destination.path;
        let failed = |source: std::io::Error| Error::Write { path: to.clone(), source };
        File::open(&self.content).and_then(|content| content.sync_all()).map_err(failed)?;
        self.folder.sync_all().map_err(failed)?;
        if destination.exists {
            exchange(&self.content, to).map_err(failed)?;
        } else {
            match renameat_with(CWD, &self.content, CWD, to, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => return Err(Error::Exists { path: to.clone() }),
                // The file system does not support the flag; a destination that appeared meanwhile
                // is replaced only if it is an empty folder.
                Err(Errno::INVAL | Errno::NOSYS) => {
                    std::fs::rename(&self.content, to).map_err(failed)?;
                }
                renamed => renamed.map_err(|errno| failed(errno.into()))?,
            }
            // If the files were in a folder inside, the outer one must still be removed.
            self.is_committed = self.content == self.path;
        }
        let parent = to.parent().expect("a destination has a name, so a parent");
        File::open(parent).and_then(|parent| parent.sync_all()).map_err(failed)?;
        // After an exchange the replaced data are in the working folder, and are removed with it.
        Ok(destination.exists)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.is_committed && !self.is_retained {
            // If it cannot be removed, it is unlocked, and the next pack removes it.
            drop(self.spare.take());
            let _ = remove_tree(&self.path);
        }
        unlock(&self.folder);
    }
}

/// Exchanges the folders `new` and `old`.
fn exchange(new: &Path, old: &Path) -> std::io::Result<()> {
    match renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE) {
        // The file system does not support the flag: the dataset is briefly absent, but both copies
        // are complete.
        Err(Errno::INVAL | Errno::NOSYS) => {
            let mut aside = new.as_os_str().to_owned();
            aside.push("-old");
            std::fs::rename(old, &aside)?;
            if let Err(error) = std::fs::rename(new, old) {
                std::fs::rename(&aside, old)?;
                return Err(error);
            }
            std::fs::rename(&aside, new)
        }
        exchanged => exchanged.map_err(Into::into),
    }
}
