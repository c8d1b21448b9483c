//! Files of an authority's folder: replaced atomically, and never waited for.

use super::error::{KeysError, io};
use meetpoint_storage::files::read_regular;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Longest list of issued certificates that is read, in bytes: about 500,000 certificates.
const LIST_BYTES_MAX: u64 = 64 << 20;

/// Replaces a file atomically: a reader finds the old or the complete new content.
pub(super) fn write(path: &Path, text: &str, mode: u32, replace: bool) -> Result<(), KeysError> {
    if !replace && path.exists() {
        return Err(KeysError::Exists { path: path.to_path_buf() });
    }
    let mut name = path.file_name().expect("a file in a folder").to_owned();
    name.push(".new");
    let beside = path.with_file_name(name);
    let written = || {
        // A file left by an interrupted call may have another mode.
        match std::fs::remove_file(&beside) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    };
    written().map_err(io("write", path))
}

/// Reads a text file of the folder. A pipe in its place is an error and never blocks.
pub(super) fn read_text(path: &Path) -> std::io::Result<String> {
    let text = String::from_utf8(read_regular(path, LIST_BYTES_MAX)?);
    text.map_err(|error| std::io::Error::new(ErrorKind::InvalidData, error))
}
