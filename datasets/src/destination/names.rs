//! Names of working folders and of the files in them, which distinguish leftovers from the files of
//! other programs.

use meetpoint_diagnose::shown;
use meetpoint_format::dataset::MANIFEST_NAME;
use meetpoint_format::key_index::KEY_INDEX_NAME;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Infix between the dataset's name and the process in the name of a working folder.
const PARTIAL: &str = ".partial-";
/// Replaces process and number in the name of a resumable folder.
pub(super) const RESUMABLE: &str = "0-0";

/// Name of the marker file in a working folder for files with arbitrary names.
pub(super) const MARK: &str = "unpacking";
/// Name of the folder beside the marker file.
pub(super) const FILES: &str = "files";
/// Name of the journal in the working folder of a dataset.
pub(crate) const JOURNAL_NAME: &str = "journal.jsonl";

/// The path of a working folder beside a destination.
pub(super) fn place_beside(destination: &Path, place: &str) -> PathBuf {
    let mut name = OsString::from(destination.as_os_str());
    name.push(PARTIAL);
    name.push(place);
    PathBuf::from(name)
}

/// Whether a name is `NAME.partial-PID-N`.
pub(super) fn is_partial_of(candidate: &OsStr, name: &OsStr) -> bool {
    let rest = candidate.as_encoded_bytes().strip_prefix(name.as_encoded_bytes());
    let numbers = rest.and_then(|rest| rest.strip_prefix(PARTIAL.as_bytes()));
    numbers.is_some_and(|numbers| {
        let mut pieces = numbers.split(|byte| *byte == b'-');
        let mut is_number =
            || pieces.next().is_some_and(|p| !p.is_empty() && p.iter().all(u8::is_ascii_digit));
        is_number() && is_number() && pieces.next().is_none()
    })
}

/// An entry of the folder that does not belong to a dataset, other than a file named `also`; `None`
/// if the folder may be removed as a dataset.
pub(super) fn foreign_entry(path: &Path, also: Option<&str>) -> std::io::Result<Option<String>> {
    if !path.symlink_metadata()?.is_dir() {
        return Ok(Some("no files, being one itself".to_owned()));
    }
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_ours = entry.file_type()?.is_file()
            && name.to_str().is_some_and(|name| is_name_of_ours(name) || also == Some(name));
        if !is_ours {
            return Ok(Some(shown(Path::new(&name)).to_string()));
        }
    }
    Ok(None)
}

/// Name of an index of keys while it is written into a dataset; `of` identifies the process.
pub(crate) fn partial_keys(of: &str) -> String {
    format!(".{KEY_INDEX_NAME}{PARTIAL}{of}")
}

/// Whether a file of a dataset has such a name.
fn is_name_of_ours(name: &str) -> bool {
    let is_keys = name == KEY_INDEX_NAME || name.starts_with(&partial_keys(""));
    name == MANIFEST_NAME || is_keys || is_part_name(name)
}

/// Whether a folder contains the marker file, and nothing else but the folder of files.
pub(super) fn is_place_for_files(path: &Path) -> std::io::Result<bool> {
    let mut has_mark = false;
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if entry.file_name() == MARK && kind.is_file() {
            has_mark = true;
        } else if entry.file_name() != FILES || !kind.is_dir() {
            return Ok(false);
        }
    }
    Ok(has_mark)
}

fn is_part_name(name: &str) -> bool {
    let number = name.strip_prefix("part-").and_then(|rest| rest.strip_suffix(".arrow"));
    number.is_some_and(|digits| digits.len() >= 5 && digits.bytes().all(|b| b.is_ascii_digit()))
}
