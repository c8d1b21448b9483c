//! A store with injected failures for tests, which records the opened files.

use super::path::StorePath;
use super::traits::{List, Metadata, Store, Walk, WalkOptions};
use crate::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A store in which some files cannot be opened.
#[derive(Debug)]
pub struct Faulty {
    inner: StorePath,
    faults: BTreeMap<PathBuf, io::ErrorKind>,
    opened: Mutex<BTreeSet<PathBuf>>,
}

impl Faulty {
    /// Wraps the store of a path, with these faults.
    pub fn new(
        inner: StorePath,
        faults: impl IntoIterator<Item = (PathBuf, io::ErrorKind)>,
    ) -> Self {
        Self { inner, faults: faults.into_iter().collect(), opened: Mutex::default() }
    }

    /// The files that were opened so far, including failed attempts.
    pub fn opened(&self) -> BTreeSet<PathBuf> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self) -> &dyn Store {
        self.inner.store()
    }
}

impl Store for Faulty {
    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.store().metadata(path)
    }

    fn is_link(&self, path: &Path) -> bool {
        self.store().is_link(path)
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        self.store().resolve(path)
    }

    fn list(&self, folder: &Path) -> io::Result<List<'_>> {
        self.store().list(folder)
    }

    fn walk(&self, root: &Path, options: WalkOptions) -> Box<dyn Walk + '_> {
        self.store().walk(root, options)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        let file = self.store().open(path)?;
        self.lock().insert(path.to_path_buf());
        match self.faults.get(path) {
            None => Ok(file),
            Some(kind) => Err((*kind).into()),
        }
    }

    fn reserve(&self, folder: &Path) -> io::Result<()> {
        self.store().reserve(folder)
    }

    fn given(&self, beside: &Path, path: &Path) -> Option<PathBuf> {
        self.store().given(beside, path)
    }

    fn check(&self) -> Result<(), Error> {
        self.store().check()
    }

    fn check_unchanged(&self) -> Result<(), Error> {
        self.store().check_unchanged()
    }
}
