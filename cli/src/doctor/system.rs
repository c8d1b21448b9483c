//! The files under /proc, /sys, /dev and /etc, below a root that tests replace.

use meetpoint_host::energy::{Machine, Meters};
use std::path::{Path, PathBuf};

/// A machine's files.
#[derive(Debug, Clone)]
pub(crate) struct System {
    root: PathBuf,
}

impl System {
    /// This machine.
    pub(crate) fn this() -> Self {
        Self::at(Path::new("/"))
    }

    /// The machine whose files are below `root`.
    pub(crate) fn at(root: &Path) -> Self {
        Self { root: root.to_path_buf() }
    }

    /// Its energy meters.
    pub(super) fn meters(&self) -> Meters {
        Meters::find(Machine { root: self.root.clone(), ..Machine::this() })
    }

    /// The full path of a file; `path` has no leading slash.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// A small text file without the white space around it.
    pub(super) fn read(&self, path: &str) -> std::io::Result<String> {
        std::fs::read_to_string(self.path(path)).map(|text| text.trim().to_owned())
    }

    /// Whether a path exists.
    pub(super) fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// Names in a folder, sorted; empty if the folder does not exist.
    pub(super) fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(folder)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into()).collect();
        names.sort();
        names
    }
}

/// A made-up machine for tests: a folder with these files.
#[cfg(test)]
pub(super) fn made_up(files: &[(&str, &str)]) -> (tempfile::TempDir, System) {
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let system = System::at(folder.path());
    (folder, system)
}
