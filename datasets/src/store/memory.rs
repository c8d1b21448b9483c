//! Files in memory, for tests.

use super::traits::{FileKind, Metadata};
use super::tree::{Tree, TreeFiles};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::PathBuf;

/// Files by their paths; no path is both a file and a folder.
#[derive(Debug)]
pub struct Memory {
    tree: Tree,
    files: Vec<Vec<u8>>,
}

impl Memory {
    /// A store of these files, whose paths are relative.
    pub fn new(files: impl IntoIterator<Item = (PathBuf, Vec<u8>)>) -> Self {
        let (paths, files): (Vec<_>, Vec<_>) = files.into_iter().unzip();
        Self { tree: Tree::new(PathBuf::new(), paths.into_iter()), files }
    }
}

impl TreeFiles for Memory {
    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn file(&self, index: usize) -> Metadata {
        let bytes = self.files[index].len() as u64;
        Metadata { kind: FileKind::File, bytes, modified: (0, 0), tag: None }
    }

    fn open_file(&self, index: usize) -> io::Result<File> {
        let mut file = File::from(memfd_create("source", MemfdFlags::CLOEXEC)?);
        file.write_all(&self.files[index])?;
        file.rewind()?;
        Ok(file)
    }
}
