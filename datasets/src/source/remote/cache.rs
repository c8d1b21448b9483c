//! The folder that objects are held in, which goes when its process goes.
//!
//! It is `remote-PID-N` in the cache folder, beside a file `remote-PID-N.lock` that is locked for
//! as long as the process lives. What nobody has locked is what a killed process left, and the
//! next one removes it.

use super::RemoteError;
use rustix::fs::{FlockOperation, Timespec, Timestamps, flock};
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// How folders are called.
const PREFIX: &str = "remote-";
/// How locks are called.
const LOCK: &str = ".lock";
/// Attempts at a name that is free.
const NAMES_MAX: u32 = 1000;

/// A folder of one process.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    lock_path: PathBuf,
    /// Locked for as long as it is open.
    _lock: File,
}

impl Folder {
    /// Makes one in the cache folder, and removes what killed processes left there.
    pub(super) fn create(cache: Option<&Path>) -> Result<Self, RemoteError> {
        let cache = match cache {
            Some(cache) => cache.to_path_buf(),
            None => default_cache(|name| std::env::var_os(name).map(PathBuf::from)),
        };
        let failed = |error: io::Error| RemoteError::Cache {
            path: cache.clone(),
            problem: error.to_string(),
        };
        std::fs::create_dir_all(&cache).map_err(failed)?;
        let cache = cache.canonicalize().map_err(failed)?;
        clean(&cache);
        for number in 0..NAMES_MAX {
            let name = format!("{PREFIX}{}-{number}", std::process::id());
            let (path, lock_path) = (cache.join(&name), cache.join(format!("{name}{LOCK}")));
            let Some(lock) = lock(&lock_path).map_err(failed)? else { continue };
            std::fs::create_dir(&path).map_err(failed)?;
            for inner in ["files", "incoming"] {
                std::fs::create_dir(path.join(inner)).map_err(failed)?;
            }
            return Ok(Self { path, lock_path, _lock: lock });
        }
        Err(failed(io::Error::other("too many folders of this process")))
    }

    /// Where files lie under the names that a source knows.
    pub(super) fn files(&self) -> PathBuf {
        self.path.join("files")
    }

    /// Where a file lies until it is whole.
    pub(super) fn incoming(&self) -> PathBuf {
        self.path.join("incoming")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next process.
        let _ = std::fs::remove_dir_all(&self.path);
        let _ = std::fs::remove_file(&self.lock_path);
    }
}

/// The cache folder of the user.
fn default_cache(variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("meetpoint")
}

/// Takes a lock by name; `None` where somebody has it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let file = File::create(path)?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(None);
    }
    // Between the two, it may have been taken for what a killed process left.
    let is_there = std::fs::metadata(path).is_ok_and(|there| {
        file.metadata().is_ok_and(|ours| ours.ino() == there.ino() && ours.dev() == there.dev())
    });
    Ok(is_there.then_some(file))
}

/// Removes folders that nobody has locked.
fn clean(cache: &Path) {
    for entry in std::fs::read_dir(cache).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(folder) = name
            .to_str()
            .and_then(|name| name.strip_suffix(LOCK))
            .filter(|name| name.starts_with(PREFIX))
        else {
            continue;
        };
        let Ok(file) = File::open(entry.path()) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // Another process may be at the same; what stays is for the next.
            let _ = std::fs::remove_dir_all(cache.join(folder));
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Makes a file that stands for an object: its length and time without its bytes. It cannot be
/// opened (but by the administrator), so that nothing takes it for the object.
pub(super) fn placeholder(
    incoming: &Path,
    to: &Path,
    bytes: u64,
    modified: (i64, u32),
) -> io::Result<()> {
    let file = File::create(incoming)?;
    file.set_len(bytes)?;
    file.set_permissions(Permissions::from_mode(0o000))?;
    put(&file, incoming, to, modified)
}

/// Gives a file its time and its name.
pub(super) fn put(file: &File, from: &Path, to: &Path, modified: (i64, u32)) -> io::Result<()> {
    let time = Timespec { tv_sec: modified.0, tv_nsec: i64::from(modified.1) };
    rustix::fs::futimens(file, &Timestamps { last_access: time, last_modification: time })?;
    std::fs::rename(from, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_its_owner_and_remains_go_with_the_next() {
        let cache = tempfile::tempdir().unwrap();
        let left = cache.path().join("remote-1-0");
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("a"), "x").unwrap();
        std::fs::write(cache.path().join("remote-1-0.lock"), "").unwrap();
        std::fs::write(cache.path().join("other.lock"), "").unwrap();
        let folder = Folder::create(Some(cache.path())).unwrap();
        let other = Folder::create(Some(cache.path())).unwrap();
        assert!(!left.exists() && folder.files().is_dir() && other.files().is_dir());
        assert_ne!(folder.files(), other.files());
        drop((folder, other));
        let names: Vec<_> = std::fs::read_dir(cache.path()).unwrap().flatten().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }

    #[test]
    fn the_cache_is_where_the_user_has_it() {
        let home = |name: &str| (name == "HOME").then(|| PathBuf::from("/home/u"));
        assert_eq!(default_cache(home), Path::new("/home/u/.cache/meetpoint"));
        let set = |name: &str| (name == "XDG_CACHE_HOME").then(|| PathBuf::from("/fast"));
        assert_eq!(default_cache(set), Path::new("/fast/meetpoint"));
    }
}
