//! Random access to a fixed set of files by blocking reads, for metadata.

use crate::Error;
use crate::open::irregular;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Maximum size of a text file that a user writes.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Files opened for reading, by index. Threads can share it.
#[derive(Debug)]
pub struct FileSet {
    files: Vec<OpenedFile>,
}

#[derive(Debug)]
struct OpenedFile {
    path: PathBuf,
    file: File,
    /// Length when it was opened.
    bytes: u64,
}

impl FileSet {
    /// Opens every file.
    pub fn open(paths: impl IntoIterator<Item = PathBuf>) -> Result<Self, Error> {
        Self::open_with(paths, &open_regular)
    }

    /// Opens every file with the given function instead of [`open_regular`].
    pub fn open_with(
        paths: impl IntoIterator<Item = PathBuf>,
        open: &dyn Fn(&Path) -> io::Result<File>,
    ) -> Result<Self, Error> {
        let measured = |path: &Path| {
            let file = open(path)?;
            let bytes = file.metadata()?.len();
            Ok((file, bytes))
        };
        let files = paths
            .into_iter()
            .map(|path| match measured(&path) {
                Ok((file, bytes)) => Ok(OpenedFile { path, file, bytes }),
                Err(source) => Err(Error::Open { path, source }),
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { files })
    }

    /// Appends the files of another set.
    pub fn append(&mut self, mut other: Self) {
        self.files.append(&mut other.files);
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Path of a file.
    pub fn path(&self, file: usize) -> &Path {
        &self.files[file].path
    }

    /// Length of a file in bytes when it was opened.
    pub fn file_bytes(&self, file: usize) -> u64 {
        self.files[file].bytes
    }

    /// Current length of a file in bytes.
    pub fn file_bytes_now(&self, file: usize) -> io::Result<u64> {
        Ok(self.files[file].file.metadata()?.len())
    }

    /// Current length and times of a file.
    pub fn file_state(&self, file: usize) -> io::Result<FileState> {
        FileState::of(&self.files[file].file)
    }

    /// Fills `into` with the bytes from `offset` on; an error if the file ends before.
    pub fn read_exact_at(&self, file: usize, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let opened = &self.files[file].file;
        match std::os::unix::fs::FileExt::read_exact_at(opened, into, offset) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                let (wanted, bytes) = (into.len(), self.file_bytes_now(file)?);
                let problem =
                    format!("{wanted} bytes at offset {offset} of {bytes}, it ends early");
                Err(io::Error::new(error.kind(), problem))
            }
            read => read,
        }
    }
}

/// Length and times of a file: equal as long as nothing is written to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileState {
    bytes: u64,
    /// Seconds and nanoseconds since 1970.
    modified: (i64, i64),
    /// The same of the last change of content or metadata, which no program can set.
    changed: (i64, i64),
}

impl FileState {
    /// The current state of an open file.
    pub fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self {
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

/// Opens a regular file for reading. Anything else, such as a pipe, is an error, because it could
/// block forever.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Opening a pipe does not wait for its other end. The flag has no effect on regular files.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => {
            if file.metadata()?.is_file() {
                Ok(file)
            } else {
                Err(irregular())
            }
        }
        // Opening a socket fails.
        Err(_) if path.metadata().is_ok_and(|metadata| !metadata.is_file()) => Err(irregular()),
        Err(error) => Err(error),
    }
}

/// Reads a regular file of at most `bytes_max` bytes.
pub fn read_regular(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_at_most(open_regular(path)?, bytes_max)
}

/// Reads a file from its current position to its end; an error above `bytes_max` bytes.
pub fn read_at_most(file: File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let problem = format!("longer than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(bytes)
}

/// Reads a text file that a user writes, such as a job or a recipe: a regular file, UTF-8, at most
/// 1 MiB.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_regular(path, TEXT_BYTES_MAX)?).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("byte {offset} is not UTF-8"))
    })
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
        let files = FileSet::open(paths.clone()).unwrap();
        assert_eq!((files.len(), files.is_empty(), files.path(1)), (2, false, &*paths[1]));
        assert_eq!((files.file_bytes(1), files.file_bytes_now(1).unwrap()), (10, 10));
        std::fs::write(&paths[1], "short").unwrap();
        assert_eq!((files.file_bytes(1), files.file_bytes_now(1).unwrap()), (10, 5));
        std::fs::write(&paths[1], "second one").unwrap();
        let mut three = [0; 3];
        files.read_exact_at(1, 7, &mut three).unwrap();
        assert_eq!(&three, b"one");
        let error = files.read_exact_at(0, 3, &mut three).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn the_state_of_a_file_changes_with_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part");
        std::fs::write(&path, "one").unwrap();
        let files = FileSet::open([path.clone()]).unwrap();
        let before = files.file_state(0).unwrap();
        assert_eq!(files.file_state(0).unwrap(), before);
        std::fs::write(&path, "longer").unwrap();
        assert_ne!(files.file_state(0).unwrap(), before);
    }

    #[test]
    fn a_set_is_added_to_another() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "bc"].map(|text| {
            let path = folder.path().join(text);
            std::fs::write(&path, text).unwrap();
            path
        });
        let [first, second] = paths.clone().map(|path| FileSet::open([path]).unwrap());
        let mut files = first;
        files.append(second);
        assert_eq!((files.len(), files.file_bytes(1), files.path(1)), (2, 2, &*paths[1]));
    }

    #[test]
    fn a_file_that_does_not_open_is_named() {
        let error = FileSet::open(["/nowhere/part-00000.arrow".into()]).unwrap_err();
        assert!(error.to_string().contains("/nowhere/part-00000.arrow"), "{error}");
        assert!(FileSet::open([]).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_regular_file_or_too_long_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for path in [socket.as_path(), folder.path(), Path::new("/dev/zero")] {
            let error = read_text(path).unwrap_err();
            assert!(error.to_string().contains("not a regular file"), "{error}");
        }
        let text = folder.path().join("t");
        std::fs::write(&text, b"a\xff").unwrap();
        assert!(read_text(&text).unwrap_err().to_string().contains("byte 1 is not UTF-8"));
        assert!(read_regular(&text, 1).unwrap_err().to_string().contains("longer than 1 bytes"));
        assert_eq!(read_regular(&text, 2).unwrap(), b"a\xff");
    }
}
