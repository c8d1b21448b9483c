//! Files in memory, for tests.

use super::seam::{FileKind, List, Metadata, Store, Walk, WalkOptions};
use super::tree::{Node, Tree};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

/// Files by their paths; no name is both a file and a folder.
#[derive(Debug)]
pub struct Memory {
    tree: Tree,
    files: Vec<Vec<u8>>,
}

impl Memory {
    /// Holds these files, whose paths are relative.
    pub fn new(files: impl IntoIterator<Item = (PathBuf, Vec<u8>)>) -> Self {
        let (paths, files): (Vec<_>, Vec<_>) = files.into_iter().unzip();
        Self { tree: Tree::new(PathBuf::new(), paths.into_iter()), files }
    }
}

impl Store for Memory {
    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let (kind, bytes) = match self.tree.find(path)? {
            Node::File(index) => (FileKind::File, self.files[index].len() as u64),
            Node::Folder => (FileKind::Folder, 0),
        };
        Ok(Metadata { kind, bytes, modified: (0, 0), tag: None })
    }

    fn is_link(&self, _: &Path) -> bool {
        false
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        self.tree.resolve(path)
    }

    fn list(&self, folder: &Path) -> io::Result<List<'_>> {
        self.tree.list(folder)
    }

    fn walk(&self, root: &Path, options: WalkOptions) -> Box<dyn Walk + '_> {
        Box::new(self.tree.walk(root, options))
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        match self.tree.find(path)? {
            Node::File(index) => {
                let mut file = File::from(memfd_create("source", MemfdFlags::CLOEXEC)?);
                file.write_all(&self.files[index])?;
                file.rewind()?;
                Ok(file)
            }
            Node::Folder => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    fn given(&self, beside: &Path, path: &Path) -> Option<PathBuf> {
        self.tree.given(beside, path)
    }
}
