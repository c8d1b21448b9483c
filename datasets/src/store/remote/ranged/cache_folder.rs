//! The folder of the cached blocks of a dataset, and those of other datasets beside it.
//!
//! It is `store-HASH` in the cache folder, by the SHA-256 of `dataset.json`. It must belong to the
//! user alone.

use super::super::cache::{private_cache, private_folders};
use super::state::{is_idle, lock_exclusive};
use crate::error::RemoteError;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Prefix of the names of folders.
const PREFIX: &str = "store-";
/// Name of the file of blocks in a folder.
pub(super) const BLOCKS_NAME: &str = "blocks";

/// The folder of a dataset.
#[derive(Debug)]
pub(super) struct DatasetCacheFolder {
    pub(super) path: PathBuf,
    /// Excludes other processes from the whole cache folder, until it is closed.
    pub(super) lock: File,
}

impl DatasetCacheFolder {
    /// Creates or opens the folder of a dataset in a cache folder, and removes those of other
    /// datasets that no process uses, as far as their bytes exceed a limit.
    pub(super) fn create(
        cache: Option<&Path>,
        manifest_sha256: [u8; 32],
        others_bytes_max: u64,
    ) -> Result<Self, RemoteError> {
        let cache = private_cache(cache)?;
        let lock_path = cache.join("stores.lock");
        let lock = lock_exclusive(&lock_path).map_err(|error| not_written(&lock_path, &error))?;
        let path = cache.join(name_of(manifest_sha256));
        clean(&cache, &path, others_bytes_max);
        match private_folders().create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(not_written(&path, &error));
            }
            _ => {}
        }
        check_private(&path)?;
        Ok(Self { path, lock })
    }
}

/// Name of the folder of a dataset.
pub(super) fn name_of(manifest_sha256: [u8; 32]) -> String {
    let hash: String = manifest_sha256[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{PREFIX}{hash}")
}

/// The error for a file or folder that cannot be written to.
pub(super) fn not_written(path: &Path, error: &io::Error) -> RemoteError {
    RemoteError::Cache { path: path.to_path_buf(), problem: error.to_string() }
}

/// Refuses a folder that is not this user's alone.
fn check_private(folder: &Path) -> Result<(), RemoteError> {
    let problem = match folder.symlink_metadata() {
        Ok(found) if !found.is_dir() => "it is not a folder",
        Ok(found) if found.uid() != rustix::process::geteuid().as_raw() => {
            "it belongs to another user"
        }
        Ok(found) if found.mode() & 0o077 != 0 => "others have access to it (chmod go-rwx)",
        Ok(_) => return Ok(()),
        Err(_) => "it cannot be opened",
    };
    Err(RemoteError::NotPrivate { path: folder.to_path_buf(), problem })
}

/// Removes caches of other datasets that no process uses, the oldest first, until their bytes are
/// at most `bytes_max`. The caller has locked the cache folder.
fn clean(cache: &Path, own: &Path, bytes_max: u64) {
    let mut idle: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(cache).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_other = name.to_str().is_some_and(|name| name.starts_with(PREFIX)) && path != own;
        if !is_other || check_private(&path).is_err() || !is_idle(&path) {
            continue;
        }
        let Ok(found) = path.join(BLOCKS_NAME).symlink_metadata() else {
            idle.push((SystemTime::UNIX_EPOCH, 0, path));
            continue;
        };
        let used = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        idle.push((used, found.blocks().saturating_mul(512), path));
    }
    idle.sort_unstable_by(|left, right| right.cmp(left));
    let mut bytes = 0_u64;
    for (_, own_bytes, path) in idle {
        bytes = bytes.saturating_add(own_bytes);
        if bytes > bytes_max {
            // The next process removes what cannot be removed now.
            let _ = std::fs::remove_dir_all(path);
        }
    }
}
