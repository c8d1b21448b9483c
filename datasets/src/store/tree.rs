//! Folders derived from the paths of files: look-ups, listings and walks without a file system. A
//! store of such files implements [`TreeFiles`].

use super::traits::{
    FileKind, FolderEntry, List, Metadata, Store, Walk, WalkEntry, WalkError, WalkOptions,
};
use crate::Error;
use std::ffi::OsString;
use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The files of a [`Tree`], by their indices. The tree handles paths, so every such type is a
/// [`Store`].
pub trait TreeFiles: Debug + Send + Sync {
    /// The paths of the files.
    fn tree(&self) -> &Tree;

    /// Metadata of a file.
    fn file(&self, index: usize) -> Metadata;

    /// Opens a file.
    fn open_file(&self, index: usize) -> io::Result<File>;

    /// Like [`Store::reserve`], for the files below a folder.
    fn reserve_files(&self, _folder: &Path, _indices: &[usize]) -> io::Result<()> {
        Ok(())
    }

    /// Like [`Store::check`].
    fn check_files(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Like [`Store::check_unchanged`].
    fn check_files_unchanged(&self) -> Result<(), Error> {
        Ok(())
    }
}

impl<F: TreeFiles> Store for F {
    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        Ok(match self.tree().find(path)? {
            Node::File(index) => self.file(index),
            Node::Folder => {
                Metadata { kind: FileKind::Folder, bytes: 0, modified: (0, 0), tag: None }
            }
        })
    }

    fn is_link(&self, _: &Path) -> bool {
        false
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        self.tree().resolve(path)
    }

    fn list(&self, folder: &Path) -> io::Result<List<'_>> {
        self.tree().list(folder)
    }

    fn walk(&self, root: &Path, options: WalkOptions) -> Box<dyn Walk + '_> {
        Box::new(self.tree().walk(root, options))
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        match self.tree().find(path)? {
            Node::File(index) => self.open_file(index),
            Node::Folder => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    fn reserve(&self, folder: &Path) -> io::Result<()> {
        self.reserve_files(folder, &self.tree().indices_below(folder)?)
    }

    fn given(&self, beside: &Path, path: &Path) -> Option<PathBuf> {
        self.tree().given(beside, path)
    }

    fn check(&self) -> Result<(), Error> {
        self.check_files()
    }

    fn check_unchanged(&self) -> Result<(), Error> {
        self.check_files_unchanged()
    }
}

/// What lies at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    /// The file with this index.
    File(usize),
    /// A folder, which has files in it or below it.
    Folder,
}

impl Node {
    fn kind(self) -> FileKind {
        match self {
            Self::File(_) => FileKind::File,
            Self::Folder => FileKind::Folder,
        }
    }
}

/// Files by their paths below a folder; no path is both a file and a folder.
#[derive(Debug)]
pub struct Tree {
    /// Path of the folder, as a user names it.
    base: PathBuf,
    /// Paths below it, and indices, ordered by the components of the paths, so that the files of a
    /// folder are consecutive.
    files: Vec<(PathBuf, usize)>,
}

impl Tree {
    /// A tree of files with these paths below `base`; their order determines the indices.
    pub(super) fn new(base: PathBuf, paths: impl Iterator<Item = PathBuf>) -> Self {
        let mut files: Vec<_> = paths.zip(0..).collect();
        files.sort_unstable();
        Self { base, files }
    }

    /// What lies at a path.
    fn find(&self, path: &Path) -> io::Result<Node> {
        self.node(&self.below(path)?).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The path without `.` and `..`.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        self.find(path)?;
        let below = self.below(path)?;
        let is_base = below.as_os_str().is_empty();
        Ok(if is_base { self.base.clone() } else { self.base.join(below) })
    }

    /// The entries of a folder.
    fn list(&self, folder: &Path) -> io::Result<List<'_>> {
        let below = self.below(folder)?;
        match self.find(folder)? {
            Node::File(_) => Err(io::ErrorKind::NotADirectory.into()),
            Node::Folder => Ok(Box::new(
                self.children(below)
                    .map(|(name, node)| Ok(FolderEntry { name, kind: node.kind() })),
            )),
        }
    }

    /// Walks below a folder, or returns a single file.
    fn walk(&self, root: &Path, options: WalkOptions) -> TreeWalk<'_> {
        let first = match self.find(root) {
            Ok(node) => Ok((root.to_path_buf(), 0, node)),
            Err(source) => Err(WalkError { path: root.to_path_buf(), source, is_loop: false }),
        };
        TreeWalk { tree: self, options, ahead: vec![first], folder: None }
    }

    /// The indices of all files below a folder, in their order.
    fn indices_below(&self, folder: &Path) -> io::Result<Vec<usize>> {
        let below = self.below(folder)?;
        let first = self.files.partition_point(|(path, _)| *path < below);
        let files = self.files[first..].iter().take_while(|(path, _)| path.starts_with(&below));
        let mut indices: Vec<usize> = files.map(|(_, index)| *index).collect();
        indices.sort_unstable();
        Ok(indices)
    }

    /// A relative path from the user, resolved beside another one; `None` if it is not in this
    /// tree.
    fn given(&self, beside: &Path, path: &Path) -> Option<PathBuf> {
        let inside = beside.join(path);
        (path.is_relative() && self.find(&inside).is_ok()).then_some(inside)
    }

    /// A path relative to the base.
    fn below(&self, path: &Path) -> io::Result<PathBuf> {
        let mut below = PathBuf::new();
        for component in path.strip_prefix(&self.base).unwrap_or(path).components() {
            match component {
                Component::Normal(name) => below.push(name),
                Component::CurDir => {}
                Component::ParentDir if below.pop() => {}
                // Nothing outside belongs to the store.
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(io::ErrorKind::NotFound.into());
                }
            }
        }
        Ok(below)
    }

    fn node(&self, below: &Path) -> Option<Node> {
        let at = self.files.partition_point(|(path, _)| path.as_path() < below);
        let (path, index) = self.files.get(at)?;
        if path == below {
            return Some(Node::File(*index));
        }
        path.starts_with(below).then_some(Node::Folder)
    }

    /// The direct entries of a folder.
    fn children(&self, folder: PathBuf) -> impl Iterator<Item = (OsString, Node)> + '_ {
        let depth = folder.components().count();
        let mut at = self.files.partition_point(|(path, _)| *path < folder);
        std::iter::from_fn(move || {
            let (path, index) = self.files.get(at).filter(|(path, _)| path.starts_with(&folder))?;
            let mut names = path.components().skip(depth).map(|name| name.as_os_str().to_owned());
            let (name, rest) = (names.next()?, names.next());
            if rest.is_none() {
                at += 1;
                return Some((name, Node::File(*index)));
            }
            let inner = folder.join(&name);
            at += self.files[at..].partition_point(|(path, _)| path.starts_with(&inner));
            Some((name, Node::Folder))
        })
    }
}

/// A walk below a folder of a tree.
struct TreeWalk<'a> {
    tree: &'a Tree,
    options: WalkOptions,
    /// Entries to return, last first.
    ahead: Vec<Result<(PathBuf, usize, Node), WalkError>>,
    /// The folder that was returned last, which is entered unless it is skipped.
    folder: Option<(PathBuf, usize)>,
}

impl Walk for TreeWalk<'_> {
    fn skip_folder(&mut self) {
        self.folder = None;
    }
}

impl Iterator for TreeWalk<'_> {
    type Item = Result<WalkEntry, WalkError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((folder, depth)) = self.folder.take() {
                let below = self.tree.below(&folder).unwrap_or_default();
                let children = self.tree.children(below);
                let inside = children.map(|(name, node)| Ok((folder.join(name), depth + 1, node)));
                let first = self.ahead.len();
                self.ahead.extend(inside);
                self.ahead[first..].reverse();
            }
            let (path, depth, node) = match self.ahead.pop()? {
                Ok(next) => next,
                Err(error) => return Some(Err(error)),
            };
            if node == Node::Folder && depth < self.options.max_depth {
                self.folder = Some((path.clone(), depth));
            }
            if depth >= self.options.min_depth {
                return Some(Ok(WalkEntry { path, depth, kind: node.kind(), is_link: false }));
            }
        }
    }
}
