//! A path in a store, which sources use instead of a local path.

use super::local::Local;
use super::traits::{FileKind, Metadata, Store, Walk, WalkEntry, WalkError, WalkOptions};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Display, Path, PathBuf};
use std::sync::Arc;

/// A path, and the store that contains it.
#[derive(Clone)]
pub struct StorePath {
    store: Arc<dyn Store>,
    path: PathBuf,
}

impl StorePath {
    /// A path in a store.
    pub fn new(store: Arc<dyn Store>, path: impl Into<PathBuf>) -> Self {
        Self { store, path: path.into() }
    }

    /// A path of this machine.
    pub fn local(path: impl Into<PathBuf>) -> Self {
        Self::new(Arc::new(Local), path)
    }

    /// The store.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Another path in the same store.
    pub fn at(&self, path: impl Into<PathBuf>) -> Self {
        Self { store: Arc::clone(&self.store), path: path.into() }
    }

    /// The path as a user would name it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path for an error.
    pub fn to_path_buf(&self) -> PathBuf {
        self.path.clone()
    }

    /// The path for printing.
    pub fn display(&self) -> Display<'_> {
        self.path.display()
    }

    /// The path for sorting and printing, with replacement characters for invalid UTF-8.
    pub fn shown(&self) -> Cow<'_, str> {
        self.path.to_string_lossy()
    }

    /// The path below it.
    pub fn join(&self, path: impl AsRef<Path>) -> Self {
        self.at(self.path.join(path))
    }

    /// The path of another name in the same folder.
    pub fn with_file_name(&self, name: impl AsRef<OsStr>) -> Self {
        self.at(self.path.with_file_name(name))
    }

    /// The parent folder; an empty path for a name alone.
    pub fn folder(&self) -> Self {
        self.at(self.path.parent().unwrap_or(Path::new("")))
    }

    /// Its last component.
    pub fn file_name(&self) -> Option<&OsStr> {
        self.path.file_name()
    }

    /// The part after the last dot of its last component.
    pub fn extension(&self) -> Option<&OsStr> {
        self.path.extension()
    }

    /// Its metadata; links are followed.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.store.metadata(&self.path)
    }

    /// Whether it exists.
    pub fn exists(&self) -> bool {
        self.metadata().is_ok()
    }

    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.metadata().is_ok_and(|metadata| metadata.kind == FileKind::File)
    }

    /// Whether it is a folder.
    pub fn is_dir(&self) -> bool {
        self.metadata().is_ok_and(|metadata| metadata.kind == FileKind::Folder)
    }

    /// Whether it is itself a symbolic link.
    pub fn is_link(&self) -> bool {
        self.store.is_link(&self.path)
    }

    /// The path without links, `.` and `..`.
    pub fn resolve(&self) -> io::Result<PathBuf> {
        self.store.resolve(&self.path)
    }

    /// Opens a regular file for reading.
    pub fn open(&self) -> io::Result<File> {
        self.store.open(&self.path)
    }

    /// The entries of a folder and their types, in any order; links are not followed.
    pub fn list(&self) -> io::Result<impl Iterator<Item = io::Result<(Self, FileKind)>> + '_> {
        let entries = self.store.list(&self.path)?;
        Ok(entries.map(|entry| entry.map(|entry| (self.join(entry.name), entry.kind))))
    }

    /// Walks below it; skips folders that `is_seen` rejects.
    pub(crate) fn walk(
        &self,
        options: WalkOptions,
        mut is_seen: impl FnMut(&WalkEntry) -> bool,
    ) -> impl Iterator<Item = Result<WalkEntry, WalkError>> {
        let mut walk: Box<dyn Walk + '_> = self.store.walk(&self.path, options);
        std::iter::from_fn(move || {
            loop {
                match walk.next()? {
                    Ok(found) if !is_seen(&found) => {
                        if found.kind == FileKind::Folder {
                            walk.skip_folder();
                        }
                    }
                    next => return Some(next),
                }
            }
        })
    }

    /// Reserves space for all files below it at once.
    pub fn reserve(&self) -> io::Result<()> {
        self.store.reserve(&self.path)
    }

    /// Another path from the user, relative to this one: in this store if it contains it, else
    /// local.
    pub(crate) fn given(&self, path: &Path) -> Self {
        match self.store.given(&self.path, path) {
            Some(inside) => self.at(inside),
            None => Self::local(path),
        }
    }
}

/// The path, without the store.
impl fmt::Debug for StorePath {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(to)
    }
}
