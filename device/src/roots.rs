//! The folders whose datasets are served, and how a host names a dataset in them.
//!
//! A host on this machine names paths. One on another machine names a root and the checksum of a
//! `dataset.json`: no path of a message is ever opened.

use crate::{Error, Root};
use meetpoint_format::dataset::{MANIFEST_BYTES_MAX, MANIFEST_NAME};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// Maximum number of folders in a root that are searched for a dataset.
const FOLDERS_MAX: usize = 4096;

/// Length and modification time of a `dataset.json`, and its checksum while they do not change.
type CachedChecksum = (u64, SystemTime, [u8; 32]);

/// The roots of a device.
#[derive(Debug)]
pub(crate) struct Roots {
    /// With all symbolic links resolved.
    roots: Vec<Root>,
    known: Mutex<HashMap<PathBuf, CachedChecksum>>,
}

impl Roots {
    /// Resolves the folders; with `must_be_named`, each must have a name.
    pub(crate) fn find(given: &[Root], must_be_named: bool) -> Result<Self, Error> {
        if given.is_empty() {
            return Err(Error::NoRoots);
        }
        let mut roots: Vec<Root> = Vec::with_capacity(given.len());
        for Root { name, folder } in given {
            if must_be_named && name.is_none() {
                return Err(Error::UnnamedRoot { path: folder.clone() });
            }
            let is_same = |other: &Root| name.is_some() && other.name == *name;
            if roots.iter().any(is_same) {
                let name = name.clone().expect("it was compared");
                return Err(Error::RootNamedTwice { name });
            }
            let failed = |source| Error::Root { path: folder.clone(), source };
            let folder = std::fs::canonicalize(folder).map_err(failed)?;
            // Checks that it is a readable folder.
            std::fs::read_dir(&folder).map_err(failed)?;
            roots.push(Root { name: name.clone(), folder });
        }
        Ok(Self { roots, known: Mutex::default() })
    }

    /// No folders.
    pub(crate) fn none() -> Self {
        Self { roots: Vec::new(), known: Mutex::default() }
    }

    /// Whether a path with all links resolved is within one of them.
    pub(crate) fn contain(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(&root.folder))
    }

    /// Their paths.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.roots.iter().map(|root| root.folder.as_path())
    }

    /// The names and folders of those that have a name.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.roots.iter().filter_map(|root| Some((root.name.as_deref()?, root.folder.as_path())))
    }

    /// Their names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.roots.iter().filter_map(|root| root.name.as_deref())
    }

    /// The dataset whose `dataset.json` has this checksum, in the root with this name or, if the
    /// name is empty, in any: the root itself, or a folder in it. Blocks on files.
    pub(crate) fn dataset(&self, name: &str, sha256: &[u8]) -> Option<PathBuf> {
        let is_meant = |root: &&Root| name.is_empty() || root.name.as_deref() == Some(name);
        self.roots.iter().filter(is_meant).find_map(|root| {
            let mut folders = vec![root.folder.clone()];
            let inside = std::fs::read_dir(&root.folder).into_iter().flatten().take(FOLDERS_MAX);
            folders.extend(inside.filter_map(|entry| Some(entry.ok()?.path())));
            // So that the same one is found every time if several are equal.
            folders[1..].sort_unstable();
            let found = folders
                .into_iter()
                .find(|folder| self.checksum(folder).is_some_and(|own| own[..] == *sha256))?;
            // A symbolic link may lead out of the root.
            std::fs::canonicalize(found).ok().filter(|path| self.contain(path))
        })
    }

    /// Checksum of a folder's `dataset.json`; `None` if there is none.
    fn checksum(&self, folder: &Path) -> Option<[u8; 32]> {
        let path = folder.join(MANIFEST_NAME);
        let metadata = std::fs::metadata(&path).ok().filter(|it| it.is_file())?;
        let stamp = (metadata.len(), metadata.modified().ok()?);
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((bytes, time, sha256)) = lock().get(&path)
            && (*bytes, *time) == stamp
        {
            return Some(*sha256);
        }
        let mut text = Vec::new();
        File::open(&path).ok()?.take(MANIFEST_BYTES_MAX).read_to_end(&mut text).ok()?;
        let sha256 = Sha256::digest(&text).into();
        lock().insert(path, (stamp.0, stamp.1, sha256));
        Some(sha256)
    }
}

#[cfg(test)]
mod tests {
    use super::Roots;
    use crate::{Error, Root};
    use sha2::{Digest, Sha256};
    use std::path::{Path, PathBuf};

    fn set(folder: &Path, text: &str) -> [u8; 32] {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("dataset.json"), text).unwrap();
        Sha256::digest(text).into()
    }

    fn named(name: &str, folder: PathBuf) -> Root {
        Root { name: Some(name.to_owned()), folder }
    }

    #[test]
    fn a_dataset_is_found_by_root_and_checksum_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let first = set(&base.join("a/one"), "{1}");
        let second = set(&base.join("b"), "{2}");
        let outside = set(&base.join("secret"), "{3}");
        std::os::unix::fs::symlink(base.join("secret"), base.join("a/link")).unwrap();
        let given = [named("a", base.join("a")), named("b", base.join("b"))];
        let roots = Roots::find(&given, true).unwrap();
        assert_eq!(roots.dataset("a", &first), Some(base.join("a/one")));
        assert_eq!(roots.dataset("", &first), Some(base.join("a/one")));
        assert_eq!(roots.dataset("b", &first), None);
        assert_eq!(roots.dataset("", &second), Some(base.join("b")));
        for name in ["", "a", "b", "..", "../secret", "/"] {
            assert_eq!(roots.dataset(name, &outside), None, "{name}");
        }
        assert_eq!(roots.dataset("a", &[]), None);
        // Another version takes its place.
        let changed = set(&base.join("a/one"), "{10}");
        assert_eq!(roots.dataset("a", &first), None);
        assert_eq!(roots.dataset("a", &changed), Some(base.join("a/one")));
    }

    #[test]
    fn roots_for_a_network_have_names_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_path_buf();
        assert!(matches!(Roots::find(&[], false), Err(Error::NoRoots)));
        assert!(Roots::find(&[path.clone().into()], false).is_ok());
        let unnamed = Roots::find(&[path.clone().into()], true);
        assert!(matches!(unnamed, Err(Error::UnnamedRoot { .. })));
        let twice = [named("a", path.clone()), named("a", path)];
        assert!(matches!(Roots::find(&twice, true), Err(Error::RootNamedTwice { .. })));
    }
}
