//! The folder that contains objects, which is removed when its process ends.
//!
//! It is `remote-PID-RANDOM` in the cache folder, beside a file of that name with `.lock` that is
//! locked while the process lives. An unlocked folder belongs to a killed process, and the next
//! process removes it. Only the user can read the objects, and no link is followed.

use crate::error::RemoteError;
use crate::named_lock::lock_named;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::process::geteuid;
use std::collections::hash_map::RandomState;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Prefix of the names of folders.
const PREFIX: &str = "remote-";
/// Suffix of the names of locks.
const LOCK: &str = ".lock";
/// Maximum number of attempts to find an unused name.
const NAMES_MAX: u32 = 1000;

/// The cache folder of one process.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    lock_path: PathBuf,
    /// Locked while it is open.
    _lock: File,
}

impl Folder {
    /// Creates one in the cache folder, and removes leftovers of killed processes.
    pub(super) fn create(cache: Option<&Path>) -> Result<Self, RemoteError> {
        let (cache, location) = custom_or_default(cache)?;
        Self::create_in(&cache, location)
    }

    fn create_in(cache: &Path, location: CacheLocation) -> Result<Self, RemoteError> {
        let failed = |error: io::Error| RemoteError::Cache {
            path: cache.to_path_buf(),
            problem: error.to_string(),
        };
        let cache = private_in(cache, location)?;
        clean(&cache);
        for _ in 0..NAMES_MAX {
            // An unpredictable name, so that no other user can create it beforehand.
            let random = RandomState::new().build_hasher().finish();
            let name = format!("{PREFIX}{}-{random:016x}", std::process::id());
            let (path, lock_path) = (cache.join(&name), cache.join(format!("{name}{LOCK}")));
            let Some(lock) = lock(&lock_path).map_err(failed)? else { continue };
            private_folders().create(&path).map_err(failed)?;
            for inner in ["files", "incoming"] {
                private_folders().create(path.join(inner)).map_err(failed)?;
            }
            return Ok(Self { path, lock_path, _lock: lock });
        }
        Err(failed(io::Error::other("too many folders of this process")))
    }

    /// The folder of complete objects.
    pub(super) fn files(&self) -> PathBuf {
        self.path.join("files")
    }

    /// The folder of incomplete objects.
    pub(super) fn incoming(&self) -> PathBuf {
        self.path.join("incoming")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The next process removes what cannot be removed now.
        let _ = std::fs::remove_dir_all(&self.path);
        let _ = std::fs::remove_file(&self.lock_path);
    }
}

/// The cache folder that the user named, or the default one.
fn custom_or_default(cache: Option<&Path>) -> Result<(PathBuf, CacheLocation), RemoteError> {
    match cache {
        Some(cache) => Ok((cache.to_path_buf(), CacheLocation::Custom)),
        None => {
            let cache = default_cache(|name| std::env::var_os(name).map(PathBuf::from));
            Ok((cache.ok_or(RemoteError::NoCache)?, CacheLocation::Default))
        }
    }
}

/// The cache folder that the user named, or the default one, in which no other user can replace
/// files.
pub(super) fn private_cache(cache: Option<&Path>) -> Result<PathBuf, RemoteError> {
    let (cache, location) = custom_or_default(cache)?;
    private_in(&cache, location)
}

/// Creates a cache folder, and makes sure that no other user can replace its files.
fn private_in(cache: &Path, location: CacheLocation) -> Result<PathBuf, RemoteError> {
    let failed = |error: io::Error| RemoteError::Cache {
        path: cache.to_path_buf(),
        problem: error.to_string(),
    };
    private_folders().recursive(true).create(cache).map_err(failed)?;
    let cache = cache.canonicalize().map_err(failed)?;
    let folder = OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::NOFOLLOW | OFlags::DIRECTORY).bits().cast_signed())
        .open(&cache)
        .map_err(failed)?;
    let metadata = folder.metadata().map_err(failed)?;
    let user = geteuid().as_raw();
    match location.check_access(metadata.uid(), metadata.mode(), user) {
        Ok(FolderAccess::Private) => {}
        Ok(FolderAccess::NeedsChmod) => {
            folder.set_permissions(Permissions::from_mode(0o700)).map_err(failed)?;
        }
        Err(problem) => return Err(RemoteError::NotPrivate { path: cache, problem }),
    }
    Ok(cache)
}

/// The location of a cache folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CacheLocation {
    /// The default one, in the user's cache.
    Default,
    /// One that the user named, with arbitrary content.
    Custom,
}

/// Who can access a cache folder, by its owner and mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FolderAccess {
    /// No other user can replace its files.
    Private,
    /// Private once its mode is set to 0700.
    NeedsChmod,
}

impl CacheLocation {
    /// Checks whether objects may be stored below such a folder, in a folder that only `user` can
    /// open.
    fn check_access(self, owner: u32, mode: u32, user: u32) -> Result<FolderAccess, &'static str> {
        let is_writable = mode & 0o022 != 0;
        let is_sticky = mode & 0o1000 != 0;
        match self {
            _ if owner != user && owner != 0 => Err("it belongs to another user"),
            Self::Default if owner != user => Err("it belongs to another user"),
            Self::Default if mode & 0o077 != 0 => Ok(FolderAccess::NeedsChmod),
            Self::Custom if is_writable && !is_sticky => {
                Err("others may write to it and rename its contents (chmod go-w)")
            }
            _ => Ok(FolderAccess::Private),
        }
    }
}

/// The cache folder of the user, if there is one.
fn default_cache(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    cache.map(|cache| cache.join("meetpoint"))
}

pub(super) fn private_folders() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// Creates or truncates a file that only the user can read and that is not a link.
pub(super) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(NO_LINK.bits().cast_signed())
        .open(path)
}

/// Flags to refuse links and not to wait for the other end of a pipe.
const NO_LINK: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK);

/// Creates and locks a lock file; `None` if another process has it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    // Before it is locked, another process may remove it as a leftover.
    lock_named(create_private(path)?, path)
}

/// Removes folders that are not locked.
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
        let flags = NO_LINK.bits().cast_signed();
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(entry.path());
        // In a folder that others can write to, they may have prepared an entry with this name.
        let is_ours = |file: &File| {
            let metadata = file.metadata();
            metadata.is_ok_and(|there| there.is_file() && there.uid() == geteuid().as_raw())
        };
        let Some(file) = opened.ok().filter(is_ours) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // Another process may be removing the same; the next process removes the rest.
            let _ = std::fs::remove_dir_all(cache.join(folder));
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_folder_is_removed_by_its_owner_and_leftovers_by_the_next_process() {
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
        assert_eq!(default_cache(home).unwrap(), Path::new("/home/u/.cache/meetpoint"));
        let set = |name: &str| (name == "XDG_CACHE_HOME").then(|| PathBuf::from("/fast"));
        assert_eq!(default_cache(set).unwrap(), Path::new("/fast/meetpoint"));
        assert_eq!(default_cache(|_| None), None);
        assert_eq!(default_cache(|_| Some(PathBuf::from("relative"))), None);
    }

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().mode() & 0o7777
    }

    #[test]
    fn only_the_user_can_read_cached_objects() {
        let home = tempfile::tempdir().unwrap();
        let cache = home.path().join(".cache/meetpoint");
        let folder = Folder::create_in(&cache, CacheLocation::Default).unwrap();
        for path in [&cache, &folder.path, &folder.files(), &folder.incoming()] {
            assert_eq!(mode(path), 0o700, "{}", path.display());
        }
        let object = folder.incoming().join("0");
        create_private(&object).unwrap();
        assert_eq!((mode(&object), mode(&folder.lock_path)), (0o600, 0o600));
        std::fs::set_permissions(&cache, Permissions::from_mode(0o755)).unwrap();
        let _other = Folder::create_in(&cache, CacheLocation::Default).unwrap();
        assert_eq!(mode(&cache), 0o700);
    }

    #[test]
    fn a_cache_that_others_can_change_is_refused() {
        let (user, other, root) = (1000, 1001, 0);
        assert_eq!(
            CacheLocation::Default.check_access(user, 0o40700, user),
            Ok(FolderAccess::Private)
        );
        assert_eq!(
            CacheLocation::Default.check_access(user, 0o40777, user),
            Ok(FolderAccess::NeedsChmod)
        );
        assert!(CacheLocation::Default.check_access(other, 0o40700, user).is_err());
        assert!(CacheLocation::Default.check_access(root, 0o41777, user).is_err());
        assert_eq!(
            CacheLocation::Custom.check_access(user, 0o40755, user),
            Ok(FolderAccess::Private)
        );
        assert_eq!(
            CacheLocation::Custom.check_access(root, 0o41777, user),
            Ok(FolderAccess::Private)
        );
        assert!(CacheLocation::Custom.check_access(other, 0o40755, user).is_err());
        assert!(CacheLocation::Custom.check_access(user, 0o40775, user).is_err());
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        let refused = Folder::create(Some(folder.path()));
        assert!(matches!(refused, Err(RemoteError::NotPrivate { .. })), "{refused:?}");
    }

    #[test]
    fn prepared_links_are_not_followed() {
        let cache = tempfile::tempdir().unwrap();
        let precious = cache.path().join("precious");
        std::fs::write(&precious, "x").unwrap();
        for name in ["remote-1-0.lock", "remote-1-0"] {
            std::os::unix::fs::symlink(&precious, cache.path().join(name)).unwrap();
        }
        assert!(lock(&cache.path().join("remote-1-0.lock")).is_err());
        assert!(create_private(&cache.path().join("remote-1-0")).is_err());
        drop(Folder::create(Some(cache.path())).unwrap());
        assert_eq!(std::fs::read(&precious).unwrap(), b"x");
        assert_eq!(std::fs::read_dir(cache.path()).unwrap().count(), 3);
    }
}
