//! Files of this machine.

use super::traits::{
    FileKind, FolderEntry, List, Metadata, Store, Walk, WalkEntry, WalkError, WalkOptions,
};
use meetpoint_storage::files::open_regular;
use std::fs::{File, FileType};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// The file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Local;

/// The current folder for a path without a folder.
fn named(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

impl From<FileType> for FileKind {
    fn from(kind: FileType) -> Self {
        match kind {
            kind if kind.is_file() => Self::File,
            kind if kind.is_dir() => Self::Folder,
            kind if kind.is_symlink() => Self::Link,
            _ => Self::Other,
        }
    }
}

impl From<std::fs::Metadata> for Metadata {
    fn from(metadata: std::fs::Metadata) -> Self {
        Self {
            kind: metadata.file_type().into(),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            tag: None,
        }
    }
}

impl Store for Local {
    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        Ok(std::fs::metadata(named(path))?.into())
    }

    fn is_link(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink())
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        named(path).canonicalize()
    }

    fn list(&self, folder: &Path) -> io::Result<List<'_>> {
        let entries = std::fs::read_dir(named(folder))?;
        Ok(Box::new(entries.map(|entry| {
            let entry = entry?;
            Ok(FolderEntry { name: entry.file_name(), kind: entry.file_type()?.into() })
        })))
    }

    fn walk(&self, root: &Path, options: WalkOptions) -> Box<dyn Walk + '_> {
        let entries = WalkDir::new(root)
            .min_depth(options.min_depth)
            .max_depth(options.max_depth)
            .follow_links(options.follow_links);
        Box::new(LocalWalk { root: root.to_path_buf(), entries: entries.into_iter() })
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        open_regular(path)
    }

    fn given(&self, _: &Path, path: &Path) -> Option<PathBuf> {
        Some(path.to_path_buf())
    }
}

/// A walk through the file system.
struct LocalWalk {
    root: PathBuf,
    entries: walkdir::IntoIter,
}

impl Walk for LocalWalk {
    fn skip_folder(&mut self) {
        self.entries.skip_current_dir();
    }
}

impl Iterator for LocalWalk {
    type Item = Result<WalkEntry, WalkError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(match self.entries.next()? {
            Ok(entry) => {
                let (kind, is_link) = (entry.file_type().into(), entry.path_is_symlink());
                Ok(WalkEntry { depth: entry.depth(), kind, is_link, path: entry.into_path() })
            }
            Err(error) => {
                let path = error.path().unwrap_or(&self.root).to_path_buf();
                let (is_loop, text) = (error.loop_ancestor().is_some(), error.to_string());
                let source = error.into_io_error().unwrap_or_else(|| io::Error::other(text));
                Err(WalkError { path, source, is_loop })
            }
        })
    }
}
