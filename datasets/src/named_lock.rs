//! Locks of files and folders that other processes may rename or remove.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Locks an open file or folder exclusively, without waiting.
///
/// `None` if another process has locked it, or if `path` no longer refers to it because another
/// process renamed or removed it after it was opened.
pub(crate) fn lock_named(file: File, path: &Path) -> io::Result<Option<File>> {
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Ok(None),
        locked => locked?,
    }
    let (locked, named) = (file.metadata()?, path.symlink_metadata());
    let is_same =
        named.is_ok_and(|named| (named.dev(), named.ino()) == (locked.dev(), locked.ino()));
    Ok(is_same.then_some(file))
}

#[cfg(test)]
mod tests {
    use super::lock_named;
    use std::fs::File;

    #[test]
    fn a_file_is_locked_once_and_only_under_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let file = File::create(&path).unwrap();
        let held = lock_named(file, &path).unwrap();
        assert!(held.is_some());
        assert!(lock_named(File::open(&path).unwrap(), &path).unwrap().is_none());
        drop(held);
        let opened = File::open(&path).unwrap();
        std::fs::rename(&path, folder.path().join("other")).unwrap();
        assert!(lock_named(opened, &path).unwrap().is_none());
    }
}
