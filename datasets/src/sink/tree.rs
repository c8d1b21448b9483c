//! Writes files below a folder, each named by a key, and never outside of it.
//!
//! Folders are opened one by one, each relative to its parent, without following links, so that a
//! link created during writing has no effect.

use super::Refusal;
use crate::Error;
use meetpoint_format::dataset::schema::KEY_BYTES_MAX;
use rustix::fs::{Mode, OFlags, mkdirat, open, openat, syncfs};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Flags for opening a folder.
const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Flags for creating a file, which must not exist.
const NEW_FILE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Checks that a key is a path below the folder; the error is why not.
pub(crate) fn check_key(key: &str) -> Result<(), &'static str> {
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        Err("its key is empty or too long")
    } else if key.starts_with('/') {
        Err("its key is an absolute path, which is not written")
    } else if key.contains('\0') {
        Err("its key contains a NUL, which no file name does")
    } else if key.split('/').any(|name| matches!(name, "" | "." | "..")) {
        Err("its key has an empty name, `.` or `..` in it, which is not written")
    } else {
        Ok(())
    }
}

/// The folder below which all files are written.
#[derive(Debug)]
pub struct Root {
    folder: OwnedFd,
    path: PathBuf,
}

impl Root {
    /// Opens the folder.
    pub(crate) fn open(path: &Path) -> std::io::Result<Self> {
        Ok(Self { folder: open(path, FOLDER, Mode::empty())?, path: path.to_path_buf() })
    }

    /// A writer for one thread.
    pub(crate) fn tree(&self) -> Tree<'_> {
        Tree { root: self, last: None }
    }

    /// Removes a file that was written below it.
    pub(crate) fn remove(&self, key: &str) -> Result<(), Error> {
        let path = self.path.join(key);
        std::fs::remove_file(&path).map_err(|source| Error::Write { path, source })
    }

    /// Syncs everything that was written.
    pub(crate) fn sync(&self) -> std::io::Result<()> {
        Ok(syncfs(&self.folder)?)
    }
}

/// One thread's writer of files below a folder.
#[derive(Debug)]
pub(crate) struct Tree<'a> {
    root: &'a Root,
    /// The folder of the last file, with its path; the next file is likely in the same folder.
    last: Option<(String, OwnedFd)>,
}

impl Tree<'_> {
    /// Writes a file whose key was [checked](check_key), and creates its parent folders.
    pub(crate) fn write(&mut self, key: &str, bytes: &[u8]) -> Result<(), Refusal> {
        let (folders, name) = key.rsplit_once('/').unwrap_or(("", key));
        let opened = self.folder(folders).and_then(|folder| {
            openat(folder, name, NEW_FILE, Mode::from_raw_mode(0o666)).map_err(Into::into)
        });
        let written = opened.map(File::from).and_then(|mut file| file.write_all(bytes));
        written.map_err(|source| self.trouble(key, source))
    }

    /// Opens the parent folder of a file.
    fn folder(&mut self, path: &str) -> std::io::Result<std::os::fd::BorrowedFd<'_>> {
        if path.is_empty() {
            return Ok(self.root.folder.as_fd());
        }
        if self.last.as_ref().is_none_or(|(last, _)| last != path) {
            let mut folder = None;
            for name in path.split('/') {
                let above = folder.as_ref().unwrap_or(&self.root.folder);
                match mkdirat(above, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                folder = Some(openat(above, name, FOLDER, Mode::empty())?);
            }
            self.last = folder.map(|folder| (path.to_owned(), folder));
        }
        let (_, folder) = self.last.as_ref().expect("a path has at least one name");
        Ok(folder.as_fd())
    }

    /// Attributes a failed write to the key or to the destination.
    fn trouble(&self, key: &str, source: std::io::Error) -> Refusal {
        let clash = "its key occurs twice, names a folder of another key, or is another key with \
                     its extension";
        match Errno::from_io_error(&source) {
            Some(Errno::EXIST | Errno::NOTDIR | Errno::ISDIR | Errno::LOOP) => {
                Refusal::Sample(clash.to_owned())
            }
            Some(Errno::NAMETOOLONG) => {
                Refusal::Sample("its key has a name that is too long for the file system".into())
            }
            _ => Refusal::Write(Error::Write { path: self.root.path.join(key), source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_that_lead_elsewhere_are_refused() {
        let long = "k".repeat(KEY_BYTES_MAX + 1);
        let hostile = [
            "",
            "/etc/passwd",
            "..",
            "../a",
            "a/../../b",
            "a/..",
            "./a",
            "a//b",
            "a/",
            "a\0b",
            &long,
        ];
        for key in hostile {
            assert!(check_key(key).is_err(), "{key:?}");
        }
        for key in ["a", "a/b.jpg", "..a", "a..", ".hidden", "a\\..\\b", "ä/…/b", "C:/x"] {
            assert!(check_key(key).is_ok(), "{key:?}");
        }
    }

    #[test]
    fn a_link_in_the_folder_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (root, outside) = (folder.path().join("root"), folder.path().join("outside"));
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, root.join("link")).unwrap();
        std::os::unix::fs::symlink(outside.join("new"), root.join("file")).unwrap();
        let opened = Root::open(&root).unwrap();
        for key in ["link/a", "link", "file"] {
            assert!(matches!(opened.tree().write(key, b"x"), Err(Refusal::Sample(_))), "{key}");
        }
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    }

    proptest! {
        #[test]
        fn whatever_the_keys_are_nothing_is_written_beside_the_folder(
            keys in proptest::collection::vec("[a./\\\\\0]{0,8}", 1..12),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().join("x/root");
            std::fs::create_dir_all(&root).unwrap();
            let opened = Root::open(&root).unwrap();
            let mut tree = opened.tree();
            for key in &keys {
                if check_key(key).is_ok() && tree.write(key, key.as_bytes()).is_ok() {
                    prop_assert_eq!(std::fs::read(root.join(key)).unwrap(), key.as_bytes());
                }
            }
            prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
            prop_assert_eq!(std::fs::read_dir(folder.path().join("x")).unwrap().count(), 1);
        }
    }
}
