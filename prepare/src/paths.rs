//! The folders of a dataset: one, or several that are served as one.

use crate::remote::OpenRemote;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whether this is a URL (`s3://bucket/name`), not a path.
pub fn is_url(path: &Path) -> bool {
    let scheme = path.to_str().and_then(|text| text.split_once("://"));
    scheme.is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(|other| other.is_ascii_alphanumeric() || "+-.".contains(other))
    })
}

/// Folders that are served as one dataset, in their order, and what opens those that are URLs.
#[derive(Debug, Clone)]
pub struct DatasetPaths {
    paths: Vec<PathBuf>,
    remote: Option<Arc<dyn OpenRemote>>,
}

/// The same folders, whatever opens them.
impl PartialEq for DatasetPaths {
    fn eq(&self, other: &Self) -> bool {
        self.paths == other.paths
    }
}

impl Eq for DatasetPaths {}

impl DatasetPaths {
    /// The folders.
    pub fn as_slice(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The same folders, where `remote` opens those that are URLs.
    pub fn opened_by(self, remote: Arc<dyn OpenRemote>) -> Self {
        Self { remote: Some(remote), ..self }
    }

    /// What opens folders in stores.
    pub fn remote(&self) -> Option<&Arc<dyn OpenRemote>> {
        self.remote.as_ref()
    }

    /// The folder or the list of folders as a name for messages.
    pub fn name(&self) -> PathBuf {
        self.to_string().into()
    }
}

impl From<Vec<PathBuf>> for DatasetPaths {
    fn from(paths: Vec<PathBuf>) -> Self {
        Self { paths, remote: None }
    }
}

impl From<PathBuf> for DatasetPaths {
    fn from(path: PathBuf) -> Self {
        Self::from(vec![path])
    }
}

impl From<&PathBuf> for DatasetPaths {
    fn from(path: &PathBuf) -> Self {
        Self::from(vec![path.clone()])
    }
}

impl From<&Path> for DatasetPaths {
    fn from(path: &Path) -> Self {
        Self::from(vec![path.to_path_buf()])
    }
}

impl From<OsString> for DatasetPaths {
    fn from(path: OsString) -> Self {
        Self::from(vec![PathBuf::from(path)])
    }
}

impl From<&str> for DatasetPaths {
    fn from(path: &str) -> Self {
        Self::from(vec![PathBuf::from(path)])
    }
}

impl From<&DatasetPaths> for DatasetPaths {
    fn from(paths: &DatasetPaths) -> Self {
        paths.clone()
    }
}

impl fmt::Display for DatasetPaths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.paths.iter().map(|path| path.display().to_string()).collect();
        f.write_str(&names.join(", "))
    }
}
