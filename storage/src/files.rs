//! Plain random access to a fixed set of files: footers and tables, not samples.

use crate::Error;
use std::fs::File;
use std::path::PathBuf;

/// Opens a regular file; anything else could block for ever.
fn open_regular(path: &std::path::Path) -> std::io::Result<File> {
    if std::fs::metadata(path)?.is_file() {
        File::open(path)
    } else {
        Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file"))
    }
}

/// Files opened for reading, by index. Shareable among threads.
#[derive(Debug)]
pub struct FileSet {
    files: Vec<(PathBuf, File)>,
}

impl FileSet {
    /// Opens every file.
    pub fn open(paths: Vec<PathBuf>) -> Result<Self, Error> {
        let files = paths
            .into_iter()
            .map(|path| match open_regular(&path) {
                Ok(file) => Ok((path, file)),
                Err(source) => Err(Error::Open { path, source }),
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { files })
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Path of a file.
    pub fn path(&self, file: usize) -> &std::path::Path {
        &self.files[file].0
    }

    /// Length of a file in bytes.
    pub fn file_bytes(&self, file: usize) -> std::io::Result<u64> {
        Ok(self.files[file].1.metadata()?.len())
    }

    /// Fills `into` from `offset`, whole or not at all.
    pub fn read_exact_at(&self, file: usize, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.files[file].1, into, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_several_files_read_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let paths = [("a", "first"), ("b", "second one")].map(|(name, text)| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        });
        let files = FileSet::open(paths.to_vec()).unwrap();
        assert_eq!((files.len(), files.is_empty(), files.path(1)), (2, false, &*paths[1]));
        assert_eq!(files.file_bytes(1).unwrap(), 10);
        let mut three = [0; 3];
        files.read_exact_at(1, 7, &mut three).unwrap();
        assert_eq!(&three, b"one");
        let error = files.read_exact_at(0, 3, &mut three).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_file_that_does_not_open_is_named() {
        let error = FileSet::open(vec!["/nowhere/part-00000.arrow".into()]).unwrap_err();
        assert!(error.to_string().contains("/nowhere/part-00000.arrow"), "{error}");
        assert!(FileSet::open(Vec::new()).unwrap().is_empty());
    }
}
