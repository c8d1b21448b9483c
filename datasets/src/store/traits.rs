//! The interface of a store: files by their paths, read-only.
//!
//! Paths are as the user enters them: local paths or URLs. An error contains the problem but not
//! the path, which [`StorePath`](super::StorePath) adds.

use crate::Error;
use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The type of a path's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, if links are not followed.
    Link,
    /// A device, pipe or socket.
    Other,
}

/// Metadata of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// Its type.
    pub kind: FileKind,
    /// Its length.
    pub bytes: u64,
    /// Seconds and nanoseconds of its last change.
    pub modified: (i64, i64),
    /// An identifier of the version from the store (an ETag).
    pub tag: Option<String>,
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEntry {
    /// Its name in the folder.
    pub name: OsString,
    /// Its type; links are not followed.
    pub kind: FileKind,
}

/// The entries of a folder, in any order.
pub type List<'a> = Box<dyn Iterator<Item = io::Result<FolderEntry>> + 'a>;

/// How far to walk below a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkOptions {
    /// Minimum depth of returned entries; the root has depth 0.
    pub min_depth: usize,
    /// Maximum depth.
    pub max_depth: usize,
    /// Whether links are followed.
    pub follow_links: bool,
}

/// An entry that a walk finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkEntry {
    /// Its path, including that of the root.
    pub path: PathBuf,
    /// Its depth: 0 for the root, 1 for its entries.
    pub depth: usize,
    /// Its type; that of a link's target, if links are followed.
    pub kind: FileKind,
    /// Whether the path itself is a link.
    pub is_link: bool,
}

impl WalkEntry {
    /// Its name; empty for a root that ends in `..`.
    pub fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }
}

/// Why a walk cannot read an entry.
#[derive(Debug)]
pub struct WalkError {
    /// The path of the entry.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
    /// Whether it is a link to one of its parent folders.
    pub is_loop: bool,
}

/// A walk below a folder; a folder precedes its entries.
pub trait Walk: Iterator<Item = Result<WalkEntry, WalkError>> {
    /// Skips the folder that was returned last.
    fn skip_folder(&mut self);
}

/// A read-only store of files.
pub trait Store: Debug + Send + Sync {
    /// Metadata of a path; links are followed.
    fn metadata(&self, path: &Path) -> io::Result<Metadata>;

    /// Whether a path itself is a symbolic link.
    fn is_link(&self, path: &Path) -> bool;

    /// The path without links, `.` and `..`; fails if it does not exist.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf>;

    /// The entries of a folder.
    fn list(&self, folder: &Path) -> io::Result<List<'_>>;

    /// Walks below a folder, or returns a single file.
    fn walk(&self, root: &Path, options: WalkOptions) -> Box<dyn Walk + '_>;

    /// Opens a regular file, which remains readable while it is open, even if it is removed.
    /// Anything else, such as a pipe, is refused without blocking.
    fn open(&self, path: &Path) -> io::Result<File>;

    /// Reserves space for all files below a folder at once, for a reader that keeps them all open.
    fn reserve(&self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }

    /// A path from the user, relative to another one in this store; `None` if it is not in this
    /// store.
    fn given(&self, beside: &Path, path: &Path) -> Option<PathBuf>;

    /// Fails if opening a file failed earlier, even if the caller ignored the error.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Fails if the files differ from those listed at first, if the store retains a list.
    fn check_unchanged(&self) -> Result<(), Error> {
        Ok(())
    }
}
