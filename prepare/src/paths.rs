//! The folders of a dataset: one, or several that are served as one.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// Folders that are served as one dataset, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetPaths(Vec<PathBuf>);

impl DatasetPaths {
    /// The folders.
    pub fn as_slice(&self) -> &[PathBuf] {
        &self.0
    }

    /// The folder or the list of folders as a name for messages.
    pub fn name(&self) -> PathBuf {
        self.to_string().into()
    }
}

impl From<Vec<PathBuf>> for DatasetPaths {
    fn from(paths: Vec<PathBuf>) -> Self {
        Self(paths)
    }
}

impl From<PathBuf> for DatasetPaths {
    fn from(path: PathBuf) -> Self {
        Self(vec![path])
    }
}

impl From<&PathBuf> for DatasetPaths {
    fn from(path: &PathBuf) -> Self {
        Self(vec![path.clone()])
    }
}

impl From<&Path> for DatasetPaths {
    fn from(path: &Path) -> Self {
        Self(vec![path.to_path_buf()])
    }
}

impl From<OsString> for DatasetPaths {
    fn from(path: OsString) -> Self {
        Self(vec![path.into()])
    }
}

impl From<&str> for DatasetPaths {
    fn from(path: &str) -> Self {
        Self(vec![path.into()])
    }
}

impl From<&DatasetPaths> for DatasetPaths {
    fn from(paths: &DatasetPaths) -> Self {
        paths.clone()
    }
}

impl fmt::Display for DatasetPaths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(|path| path.display().to_string()).collect();
        f.write_str(&names.join(", "))
    }
}
