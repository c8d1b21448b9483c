//! Small text files of the kernel, below a root that tests replace.

use std::path::{Path, PathBuf};

use super::MeterError;

/// Characters of a file that an error shows.
const SHOWN: usize = 24;

/// Names in a folder, sorted; empty if the folder is missing.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into()).collect();
    names.sort();
    names
}

/// The text of a file, trimmed.
pub(super) fn text(path: &Path) -> Result<String, MeterError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(error) => Err(MeterError::Read { path: path.to_owned(), error: error.into() }),
    }
}

/// A whole number, 0 or more.
pub(super) fn number(path: &Path, expected: &'static str) -> Result<u64, MeterError> {
    let text = text(path)?;
    text.parse().map_err(|_| garbage(path.to_owned(), &text, expected))
}

/// The error for a file with other content.
pub(super) fn garbage(path: PathBuf, text: &str, expected: &'static str) -> MeterError {
    let held = text.chars().take(SHOWN).collect();
    MeterError::Garbage { path, held, expected: expected.into() }
}
