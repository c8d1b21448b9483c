//! Opens regular files, and only those: opening a pipe or a device may block forever.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Linux's `O_NONBLOCK`, with which opening a pipe returns at once.
const O_NONBLOCK: i32 = 0o4000;

/// Opens a regular file for reading.
pub(super) fn open(path: &Path) -> Result<File> {
    let file = File::options().read(true).custom_flags(O_NONBLOCK).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(Error::new(ErrorKind::InvalidInput, "not a regular file")),
    }
}

/// Whether the path is a readable regular file.
pub(super) fn is_readable(path: &Path) -> bool {
    open(path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::{is_readable, open};
    use std::process::Command;

    #[test]
    fn pipes_folders_and_devices_are_refused_without_a_wait() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let file = folder.path().join("file");
        std::fs::write(&file, "content").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for (path, is_file) in [
            (pipe.as_path(), false),
            (folder.path(), false),
            ("/dev/null".as_ref(), false),
            (&file, true),
            (&link, true),
        ] {
            assert_eq!(open(path).is_ok(), is_file, "{}", path.display());
            assert_eq!(is_readable(path), is_file);
        }
    }
}
