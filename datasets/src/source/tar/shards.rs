//! Finds the tar files of a source: one file, those of a folder, or those of a pattern with braces.

use crate::pattern::expand;
use crate::source::malformed::malformed;
use crate::store::{FileKind, StorePath};
use crate::{Error, natural_order};
use std::path::Path;

/// Maximum number of entries of a folder that are examined to find a shard.
const FOLDER_ENTRIES_MAX: usize = 10_000;
/// Endings of shards.
const ENDINGS: [&str; 6] = [".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.zstd", ".tzst"];

/// Whether a file is named like a tar file.
pub(in crate::source) fn has_tar_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.to_ascii_lowercase();
    !name.starts_with('.') && ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Name of a shard in a folder.
pub(super) fn first_in(folder: &StorePath) -> Option<String> {
    let entries = folder.list().ok()?.take(FOLDER_ENTRIES_MAX).flatten();
    let mut shards =
        entries.filter(|(path, kind)| has_tar_name(path.path()) && *kind != FileKind::Folder);
    let name = shards.next()?.0.file_name()?.to_string_lossy().into_owned();
    Some(name)
}

/// The shards of `path`: in the order of the pattern, else in natural order.
pub(super) fn shards_of(path: &StorePath) -> Result<Vec<StorePath>, Error> {
    let failed = |source| Error::Source { path: path.to_path_buf(), source };
    match path.metadata() {
        Ok(metadata) if metadata.kind == FileKind::Folder => {
            let mut shards = Vec::new();
            for entry in path.list().map_err(failed)? {
                let (path, _) = entry.map_err(failed)?;
                if has_tar_name(path.path()) && !path.is_dir() {
                    shards.push(path);
                }
            }
            shards.sort_by(|left, right| natural_order(&left.shown(), &right.shown()));
            if shards.is_empty() {
                return Err(malformed(path, None, "no tar file in this folder"));
            }
            Ok(shards)
        }
        Ok(_) => Ok(vec![path.clone()]),
        Err(error) => match path.path().to_str() {
            Some(pattern) if pattern.contains('{') => {
                let names = expand(pattern).map_err(|problem| malformed(path, None, problem))?;
                Ok(names.into_iter().map(|name| path.at(name)).collect())
            }
            _ => Err(failed(error)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_determine_shards() {
        assert!(has_tar_name(Path::new("a/b-0.TAR.GZ")) && has_tar_name(Path::new("x.tzst")));
        assert!(!has_tar_name(Path::new(".hidden.tar")) && !has_tar_name(Path::new("tar")));
    }
}
