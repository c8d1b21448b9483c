//! A working folder next to the destination, and the rename that makes the result appear.
//!
//! The working folder is `NAME.partial-PID-N`; its descriptor is locked while its process lives. An
//! unlocked one was left by a killed process, and the next process removes or resumes it. A
//! resumable one is called `NAME.partial-0-0` in every process, so that two processes cannot both
//! begin. A dataset is written directly into it. Files with arbitrary names are written into a
//! folder inside it, next to a marker file, so that leftovers are recognised whatever the files are
//! called.

use crate::Error;
use crate::named_lock::lock_named;
use crate::source::refuse_destination;
use crate::writer::JOURNAL_NAME;
use meetpoint_diagnose::shown;
use meetpoint_format::dataset::MANIFEST_NAME;
use meetpoint_format::key_index::KEY_INDEX_NAME;
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// Infix between the dataset's name and the process in the name of a working folder.
const PARTIAL: &str = ".partial-";
/// Maximum number of attempts to find an unused name.
const NAMES_MAX: u32 = 1000;
/// Replaces process and number in the name of a resumable folder.
const RESUMABLE: &str = "0-0";

/// Name of the marker file in a working folder for files with arbitrary names.
const MARK: &str = "unpacking";
/// Name of the folder beside the marker file.
const FILES: &str = "files";

/// What may be replaced at a destination.
pub(crate) enum Replace<'a> {
    /// A dataset, if `force` is set.
    Dataset {
        /// Whether the user allowed replacing it.
        force: bool,
    },
    /// An empty folder; if `force` is set, also one without foreign files.
    Files {
        /// Whether the user allowed replacing it.
        force: bool,
        /// Returns a file in the folder that must not be removed.
        foreign: &'a dyn Fn(&Path) -> std::io::Result<Option<String>>,
    },
}

/// The destination of the result.
#[derive(Debug)]
pub(crate) struct Destination {
    /// Absolute, links resolved.
    path: PathBuf,
    /// Whether the destination exists and is to be replaced.
    exists: bool,
    /// Leftover working folders that were removed.
    pub(crate) cleaned: Vec<PathBuf>,
    /// Notes about other folders found beside the destination, as sentences.
    pub(crate) notes: Vec<String>,
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

impl Destination {
    /// Checks that `to` can be created or replaced.
    ///
    /// None of the inputs `sources` may be inside `to`, or contain it.
    pub(crate) fn resolve(
        sources: &[PathBuf],
        to: &Path,
        replace: &Replace<'_>,
    ) -> Result<Self, Error> {
        refuse_destination(to)?;
        let failed = |source| Error::Write { path: to.to_path_buf(), source };
        let exists = to.symlink_metadata().is_ok();
        let path = if exists {
            to.canonicalize().map_err(failed)?
        } else {
            let name = to.file_name().ok_or(Errno::INVAL.into()).map_err(failed)?;
            let parent = to.parent().filter(|parent| *parent != Path::new(""));
            parent.unwrap_or(Path::new(".")).canonicalize().map_err(failed)?.join(name)
        };
        for from in sources {
            let read = |source| Error::Source { path: from.clone(), source };
            let from = from.canonicalize().map_err(read)?;
            if path.starts_with(&from) || from.starts_with(&path) {
                return Err(Error::Overlap { from, to: path });
            }
        }
        if exists {
            may_be_replaced(&path, replace)?;
        }
        Ok(Self { path, exists, cleaned: Vec::new(), notes: Vec::new() })
    }

    /// The path of the result; absolute, links resolved.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The working folders beside the destination.
    pub(crate) fn places(&self) -> Result<SiblingPaths, Error> {
        let failed = |source| Error::Write { path: self.path.clone(), source };
        find_places(&self.path).map_err(failed)
    }

    /// Removes the working folders of processes that have ended, and records their names and those
    /// that remain.
    pub(crate) fn clean(&mut self) -> Result<(), Error> {
        let places = self.places()?;
        let stays = |(path, entry): &(PathBuf, String)| {
            format!(
                "{} is not removed: it contains {entry}, which Meetpoint did not write",
                shown(path)
            )
        };
        self.notes.extend(places.foreign.iter().map(stays));
        for remains in places.remains {
            let failed = |source| Error::Write { path: remains.path.clone(), source };
            remove_tree(&remains.path).map_err(failed)?;
            self.cleaned.push(remains.path.clone());
        }
        self.cleaned.sort();
        Ok(())
    }
}

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
}

/// Returns an error if the path exists and must not be replaced.
fn may_be_replaced(path: &Path, replace: &Replace<'_>) -> Result<(), Error> {
    let failed = |source| Error::Write { path: path.to_path_buf(), source };
    let to = path.to_path_buf();
    match replace {
        Replace::Dataset { force: false } => Err(Error::Exists { path: to }),
        Replace::Dataset { force: true } => match foreign_entry(path, None).map_err(failed)? {
            None => Ok(()),
            Some(entry) => Err(Error::NotReplaced { path: to, entry }),
        },
        Replace::Files { .. } if is_empty_folder(path).map_err(failed)? => Ok(()),
        Replace::Files { force: false, .. } => Err(Error::Exists { path: to }),
        Replace::Files { force: true, foreign } => match foreign(path).map_err(failed)? {
            None => Ok(()),
            Some(entry) => Err(Error::Foreign { path: to, entry }),
        },
    }
}

fn is_empty_folder(path: &Path) -> std::io::Result<bool> {
    Ok(path.is_dir() && std::fs::read_dir(path)?.next().is_none())
}

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

/// Removes a folder and its contents; opens one folder at a time at any depth, so that a single
/// free file descriptor is enough.
fn remove_tree(folder: &Path) -> std::io::Result<()> {
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

impl Staging {
    /// Takes over the folder of a process that ended, to resume its dataset.
    pub(crate) fn resume(mut remains: LeftoverFolder) -> Result<Self, Error> {
        let path = remains.path.clone();
        let spare = spare().map_err(|source| Error::Write { path: path.clone(), source })?;
        let folder = remains.folder.take().expect("remains are resumed once");
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

impl Drop for LeftoverFolder {
    fn drop(&mut self) {
        self.folder.iter().for_each(unlock);
    }
}

/// Unlocks a folder explicitly: a child process that is being started briefly has a copy of the
/// descriptor, which would keep the folder locked.
fn unlock(folder: &File) {
    // If this fails, closing the descriptor unlocks the folder.
    let _ = flock(folder, FlockOperation::Unlock);
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

/// Opens and locks a folder; `None` if another process has locked it or it no longer exists.
fn lock(path: &Path) -> std::io::Result<Option<File>> {
    let folder = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    lock_named(folder, path)
}

/// The path of a working folder beside a destination.
fn place_beside(destination: &Path, place: &str) -> PathBuf {
    let mut name = OsString::from(destination.as_os_str());
    name.push(PARTIAL);
    name.push(place);
    PathBuf::from(name)
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

/// The working folders beside a destination, in the order of their names.
fn find_places(destination: &Path) -> std::io::Result<SiblingPaths> {
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

/// Whether a name is `NAME.partial-PID-N`.
fn is_partial_of(candidate: &OsStr, name: &OsStr) -> bool {
    let rest = candidate.as_encoded_bytes().strip_prefix(name.as_encoded_bytes());
    let numbers = rest.and_then(|rest| rest.strip_prefix(PARTIAL.as_bytes()));
    numbers.is_some_and(|numbers| {
        let mut pieces = numbers.split(|byte| *byte == b'-');
        let mut is_number =
            || pieces.next().is_some_and(|p| !p.is_empty() && p.iter().all(u8::is_ascii_digit));
        is_number() && is_number() && pieces.next().is_none()
    })
}

/// An entry of the folder that does not belong to a dataset, other than a file named `also`; `None`
/// if the folder may be removed as a dataset.
fn foreign_entry(path: &Path, also: Option<&str>) -> std::io::Result<Option<String>> {
    if !path.symlink_metadata()?.is_dir() {
        return Ok(Some("no files, being one itself".to_owned()));
    }
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_ours = entry.file_type()?.is_file()
            && name.to_str().is_some_and(|name| is_name_of_ours(name) || also == Some(name));
        if !is_ours {
            return Ok(Some(shown(Path::new(&name)).to_string()));
        }
    }
    Ok(None)
}

/// Name of an index of keys while it is written into a dataset; `of` identifies the process.
pub(crate) fn partial_keys(of: &str) -> String {
    format!(".{KEY_INDEX_NAME}{PARTIAL}{of}")
}

/// Whether a file of a dataset has such a name.
fn is_name_of_ours(name: &str) -> bool {
    let is_keys = name == KEY_INDEX_NAME || name.starts_with(&partial_keys(""));
    name == MANIFEST_NAME || is_keys || is_part_name(name)
}

/// Whether a folder contains the marker file, and nothing else but the folder of files.
fn is_place_for_files(path: &Path) -> std::io::Result<bool> {
    let mut has_mark = false;
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if entry.file_name() == MARK && kind.is_file() {
            has_mark = true;
        } else if entry.file_name() != FILES || !kind.is_dir() {
            return Ok(false);
        }
    }
    Ok(has_mark)
}

fn is_part_name(name: &str) -> bool {
    let number = name.strip_prefix("part-").and_then(|rest| rest.strip_suffix(".arrow"));
    number.is_some_and(|digits| digits.len() >= 5 && digits.bytes().all(|b| b.is_ascii_digit()))
}
