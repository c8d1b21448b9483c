//! The interface of a store: files by their paths, read-only.
//!
//! Paths are those that a user enters: local paths or URLs. An error contains the problem but not
//! the path, which [`StorePath`](super::StorePath) adds.

use crate::Error;
use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// What a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, where links are not followed.
    Link,
    /// A device, pipe or socket.
    Other,
}

/// What is known of a file without opening it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// What it is.
    pub kind: FileKind,
    /// Its length.
    pub bytes: u64,
    /// Seconds and nanoseconds of its last change.
    pub modified: (i64, i64),
    /// What the store says to distinguish it from others of that name (an ETag).
    pub tag: Option<String>,
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name in the folder.
    pub name: OsString,
    /// What it is; links are not followed.
    pub kind: FileKind,
}

/// The entries of a folder, in any order.
pub type List<'a> = Box<dyn Iterator<Item = io::Result<Listed>> + 'a>;

/// How far to walk below a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkOptions {
    /// Depth of the first entries that are given; the root has depth 0.
    pub min_depth: usize,
    /// Depth of the last ones.
    pub max_depth: usize,
    /// Whether links are followed.
    pub follow_links: bool,
}

/// What a walk finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its path: that of the root, and what lies below it.
    pub path: PathBuf,
    /// Folders between it and the root, and 1; 0 for the root itself.
    pub depth: usize,
    /// What it is; of what a link leads to, where links are followed.
    pub kind: FileKind,
    /// Whether the path itself is a link.
    pub is_link: bool,
}

impl Found {
    /// Its name; empty for a root that ends in `..`.
    pub fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }
}

/// Why a walk does not see something.
#[derive(Debug)]
pub struct WalkError {
    /// What it is about.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
    /// Whether it is a link to a folder that it lies in.
    pub is_loop: bool,
}

/// A walk below a folder: folders before what is in them.
pub trait Walk: Iterator<Item = Result<Found, WalkError>> {
    /// Passes over the folder that was given last.
    fn skip_folder(&mut self);
}

/// Files by their paths.
pub trait Store: Debug + Send + Sync {
    /// What a path names; links are followed.
    fn metadata(&self, path: &Path) -> io::Result<Metadata>;

    /// Whether a path itself is a symbolic link.
    fn is_link(&self, path: &Path) -> bool;

    /// The path without links, `.` and `..`; fails where nothing lies there.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf>;

    /// The entries of a folder.
    fn list(&self, folder: &Path) -> io::Result<List<'_>>;

    /// Walks below a folder, or gives a file alone.
    fn walk(&self, root: &Path, options: WalkOptions) -> Box<dyn Walk + '_>;

    /// Opens a regular file, which stays readable for as long as it is open, whatever becomes of
    /// its name. What is not a regular file is refused without waiting for it.
    fn open(&self, path: &Path) -> io::Result<File>;

    /// Makes room for all files below a folder at once, for a reader that keeps them all open.
    fn reserve(&self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }

    /// A path that a user gave beside one in this store, where it names something in here.
    fn given(&self, beside: &Path, path: &Path) -> Option<PathBuf>;

    /// Fails if a file could not be opened that should have been, whatever came of it.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Fails if the files are others than those that were listed at first, as far as the store
    /// keeps a list.
    fn check_unchanged(&self) -> Result<(), Error> {
        Ok(())
    }
}
