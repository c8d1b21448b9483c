//! Files with content in place: they are opened only below their root, and only if they are
//! unchanged since they were indexed.

use crate::Error;
use meetpoint_format::dataset::ContentFile;
use meetpoint_storage::{Engine, FileId};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Files that one thread keeps open: enough for the reads of a batch.
const OPEN_MAX: usize = 64;

/// The files of a dataset whose content stays in place.
#[derive(Debug)]
pub(crate) struct Contents {
    root: PathBuf,
    folder: OwnedFd,
    /// The last file that was read synchronously: archives are read sequentially.
    last: Mutex<Option<(ContentFile, Arc<File>)>>,
}

impl Contents {
    /// Opens the root.
    pub(crate) fn open(root: &str) -> Result<Self, Error> {
        let root = PathBuf::from(root);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(&root, flags, Mode::empty()).map_err(|errno| {
            let source = errno.into();
            Error::NoRoot { root: root.clone(), source }
        })?;
        Ok(Self { root, folder, last: Mutex::default() })
    }

    /// The folder that paths are relative to.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Opens a file, if it is unchanged.
    pub(crate) fn open_file(&self, file: &ContentFile) -> Result<File, Error> {
        let path = || self.root.join(&file.path);
        let failed = |source| Error::Content { path: path(), source };
        let opened = open_below(self.folder.as_fd(), &file.path)
            .map_err(|errno| failed(std::io::Error::from(errno)))?;
        let opened = File::from(opened);
        let metadata = opened.metadata().map_err(failed)?;
        match difference(&metadata, file) {
            None => {
                // It is a regular file, so opening did not block; reads may block, or io_uring
                // would fail them.
                rustix::fs::fcntl_setfl(&opened, OFlags::empty())
                    .map_err(|errno| failed(errno.into()))?;
                Ok(opened)
            }
            Some(difference) => Err(Error::ContentChanged { path: path(), difference }),
        }
    }

    /// Reads a range synchronously.
    pub(crate) fn read_exact_at(
        &self,
        file: &ContentFile,
        offset: u64,
        into: &mut [u8],
    ) -> Result<(), Error> {
        let known = {
            let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            last.as_ref().filter(|(known, _)| known == file).map(|(_, open)| Arc::clone(open))
        };
        let open = match known {
            Some(open) => open,
            None => {
                let open = Arc::new(self.open_file(file)?);
                let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
                *last = Some((file.clone(), Arc::clone(&open)));
                open
            }
        };
        open.read_exact_at(into, offset)
            .map_err(|source| Error::Content { path: self.root.join(&file.path), source })
    }
}

/// How a file differs from its state when it was indexed.
fn difference(metadata: &Metadata, file: &ContentFile) -> Option<String> {
    if !metadata.is_file() {
        return Some("it is no longer a regular file".to_owned());
    }
    if metadata.len() != file.bytes {
        return Some(format!("it has {} bytes, had {}", metadata.len(), file.bytes));
    }
    let modified_ns = modified_ns((metadata.mtime(), metadata.mtime_nsec()));
    (modified_ns != file.modified_ns).then(|| {
        let later = (modified_ns - file.modified_ns) as f64 / 1e9;
        let (by, when) = (later.abs(), if later < 0.0 { "earlier" } else { "later" });
        format!("it was modified: its modification time is {by:.3} s {when}")
    })
}

/// The modification time of a file in nanoseconds since 1970, as recorded in an index of content in
/// place.
pub fn modified_ns((seconds, nanos): (i64, i64)) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// Opens a file below a folder without following links, and without blocking on a pipe.
fn open_below(folder: impl AsFd, path: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match openat2(&folder, path, flags, Mode::empty(), resolve) {
        // For kernels and sandboxes without the call: component by component.
        Err(Errno::NOSYS | Errno::PERM) => {}
        opened => return opened,
    }
    let mut names = path.split('/').peekable();
    let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut at = openat(&folder, ".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    while let Some(name) = names.next() {
        // Paths were checked when the index was read: no component is `..`.
        let is_last = names.peek().is_none();
        let opened = openat(&at, name, if is_last { flags } else { step }, Mode::empty())?;
        if is_last {
            return Ok(opened);
        }
        at = opened;
    }
    Err(Errno::INVAL)
}

/// The files that one thread's engine has open. The least recently used is closed first; reads in
/// flight keep a closed file alive until they end.
#[derive(Debug, Default)]
pub(crate) struct OpenContents {
    open: HashMap<ContentFile, (FileId, u64)>,
    /// Counts uses.
    now: u64,
}

impl OpenContents {
    /// The engine's identifier of the file.
    pub(crate) fn file(
        &mut self,
        file: &ContentFile,
        contents: &Contents,
        engine: &mut dyn Engine,
    ) -> Result<FileId, Error> {
        self.now += 1;
        if let Some((id, used)) = self.open.get_mut(file) {
            *used = self.now;
            return Ok(*id);
        }
        if self.open.len() >= OPEN_MAX {
            let oldest = self.open.iter().min_by_key(|(_, (_, used))| *used);
            let oldest = oldest.map(|(file, _)| file.clone()).expect("there are some");
            if let Some((id, _)) = self.open.remove(&oldest) {
                engine.close(id);
            }
        }
        let name = contents.root().join(&file.path).display().to_string();
        let id = engine.adopt(contents.open_file(file)?, &name)?;
        self.open.insert(file.clone(), (id, self.now));
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(folder: &Path, path: &str) -> ContentFile {
        let metadata = std::fs::metadata(folder.join(path)).unwrap();
        let modified_ns = modified_ns((metadata.mtime(), metadata.mtime_nsec()));
        ContentFile { path: path.to_owned(), bytes: metadata.len(), modified_ns }
    }

    #[test]
    fn a_file_that_is_another_than_was_indexed_is_refused_with_what_changed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("below")).unwrap();
        std::fs::write(folder.path().join("below/a"), "first").unwrap();
        let contents = Contents::open(folder.path().to_str().unwrap()).unwrap();
        let file = of(folder.path(), "below/a");
        let mut read = [0; 3];
        contents.read_exact_at(&file, 1, &mut read).unwrap();
        assert_eq!(&read, b"irs");
        let refused = |file: &ContentFile| contents.open_file(file).unwrap_err().to_string();
        let longer = ContentFile { bytes: 9, ..file.clone() };
        assert!(refused(&longer).contains("it has 5 bytes, had 9"), "{}", refused(&longer));
        let earlier = ContentFile { modified_ns: file.modified_ns - 1_500_000_000, ..file.clone() };
        assert!(refused(&earlier).contains("1.500 s later"), "{}", refused(&earlier));
        std::fs::remove_file(folder.path().join("below/a")).unwrap();
        assert!(refused(&file).contains("below/a"), "{}", refused(&file));
    }

    #[test]
    fn a_link_is_not_followed_wherever_it_leads() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("out")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), folder.path().join("s")).unwrap();
        let contents = Contents::open(folder.path().to_str().unwrap()).unwrap();
        for path in ["out/secret", "s"] {
            let error = contents.open_file(&of(folder.path(), path)).unwrap_err();
            assert!(matches!(error, Error::Content { .. }), "{path}: {error}");
        }
    }
}
