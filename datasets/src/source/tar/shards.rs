//! Which tar files are meant: one, those of a folder, or those of a pattern with braces.

use crate::source::Whence;
use crate::source::pattern::expand;
use crate::{Error, natural_order};
use std::ffi::OsString;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

/// Entries of a folder that are looked at to find one.
const FOLDER_ENTRIES_MAX: usize = 10_000;
/// Endings of shards.
const ENDINGS: [&str; 6] = [".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.zstd", ".tzst"];

/// Whether a file calls itself a tar file.
pub(in crate::source) fn has_tar_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.to_ascii_lowercase();
    !name.starts_with('.') && ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Name of a shard in a folder.
pub(super) fn first_in(folder: &Path) -> Option<OsString> {
    let mut entries = std::fs::read_dir(folder).ok()?.take(FOLDER_ENTRIES_MAX);
    let is_shard = |entry: &DirEntry| {
        has_tar_name(&entry.path()) && entry.file_type().is_ok_and(|kind| !kind.is_dir())
    };
    entries.find_map(|entry| entry.ok().filter(is_shard)).map(|entry| entry.file_name())
}

/// The shards that `path` means, in order: as a pattern names them, else in natural order.
pub(super) fn shards_of(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |source| Error::Source { path: path.to_path_buf(), source };
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            let mut shards = Vec::new();
            for entry in std::fs::read_dir(path).map_err(failed)? {
                let path = entry.map_err(failed)?.path();
                if has_tar_name(&path) && !path.is_dir() {
                    shards.push(path);
                }
            }
            let name = |path: &PathBuf| path.to_string_lossy().into_owned();
            shards.sort_by(|left, right| natural_order(&name(left), &name(right)));
            if shards.is_empty() {
                return Err(malformed(path, "no tar file in this folder"));
            }
            Ok(shards)
        }
        Ok(_) => Ok(vec![path.to_path_buf()]),
        Err(error) => match path.to_str() {
            Some(pattern) if pattern.contains('{') => {
                let names = expand(pattern).map_err(|problem| malformed(path, &problem))?;
                Ok(names.into_iter().map(PathBuf::from).collect())
            }
            _ => Err(failed(error)),
        },
    }
}

fn malformed(path: &Path, problem: &str) -> Error {
    let whence = Whence { file: path.display().to_string(), ..Whence::default() };
    Error::Malformed { whence: Box::new(whence), problem: problem.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_shards() {
        assert!(has_tar_name(Path::new("a/b-0.TAR.GZ")) && has_tar_name(Path::new("x.tzst")));
        assert!(!has_tar_name(Path::new(".hidden.tar")) && !has_tar_name(Path::new("tar")));
    }
}
