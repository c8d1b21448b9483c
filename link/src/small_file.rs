//! Reads the files of certificates, keys and tokens.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Reads a regular file of at most `bytes_max` bytes. Anything else is an error, as a pipe could
/// block forever, and a device has no length.
pub(crate) fn read_small(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    // Opening a pipe does not wait for its other end. The flag has no effect on regular files.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > bytes_max {
        true => {
            let problem = format!("it has more than {bytes_max} bytes");
            Err(Error::new(ErrorKind::FileTooLarge, problem))
        }
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::read_small;
    use std::path::Path;

    #[test]
    fn only_small_regular_files_are_read_and_a_pipe_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        for path in [&pipe, folder.path(), Path::new("/dev/zero")] {
            let error = read_small(path, 8).unwrap_err().to_string();
            assert_eq!(error, "it is not a regular file", "{}", path.display());
        }
        let file = folder.path().join("file");
        std::fs::write(&file, "12345678").unwrap();
        assert_eq!(read_small(&file, 8).unwrap(), b"12345678");
        assert_eq!(read_small(&file, 7).unwrap_err().to_string(), "it has more than 7 bytes");
    }
}
