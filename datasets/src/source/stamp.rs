//! Whether the files of a source are those that they were.

use super::links::Links;
use super::side_files::side_files;
use crate::Error;
use meetpoint_storage::is_of_the_file;
use sha2::{Digest, Sha256};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Names, lengths and times of the files of a source, in 128 bits.
///
/// It takes one look at each name and none at the contents; hidden files do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceStamp(u128);

impl SourceStamp {
    /// Of everything in these files and folders, and of the side files of a file. For a path that
    /// names no file or folder by itself (a pattern), it is that of the files beside it. Links that
    /// lead out of a folder count where `follow_links` says that they are followed.
    /// Fails at a limit of this process.
    pub fn of(paths: &[&Path], follow_links: bool) -> Result<Self, Error> {
        let mut sum = 0_u128;
        let side_files = paths.iter().flat_map(|path| side_files(path)).collect::<Vec<_>>();
        for path in paths.iter().copied().chain(side_files.iter().map(PathBuf::as_path)) {
            let (root, depth) = if path.exists() {
                (path, usize::MAX)
            } else {
                let parent = path.parent().filter(|parent| *parent != Path::new(""));
                (parent.unwrap_or(Path::new(".")), 1)
            };
            // What a pattern names may be links.
            let links = match Links::below(root, follow_links || root != path) {
                Err(Error::Source { path, source }) if !is_of_the_file(&source) => {
                    return Err(Error::Source { path, source });
                }
                links => links.ok(),
            };
            let files = walkdir::WalkDir::new(root).max_depth(depth).follow_links(true);
            let leads_out =
                |link: &Path| links.as_ref().is_some_and(|links| links.leads_out(link).is_some());
            let is_seen = |entry: &walkdir::DirEntry| {
                let is_hidden = entry.file_name().as_bytes().starts_with(b".");
                let is_refused = entry.path_is_symlink() && leads_out(entry.path());
                entry.depth() == 0 || !(is_hidden || is_refused)
            };
            // What does not read here does not read when it is packed either, and is named there.
            for entry in files.into_iter().filter_entry(is_seen) {
                let entry = match entry.map_err(std::io::Error::from) {
                    Ok(entry) => entry,
                    Err(error) if is_of_the_file(&error) => continue,
                    Err(source) => {
                        return Err(Error::Source { path: root.to_path_buf(), source });
                    }
                };
                if let Ok(metadata) = entry.metadata()
                    && metadata.is_file()
                {
                    // A sum does not depend on the order, in which a folder lists its files.
                    sum = sum.wrapping_add(stamp_of(entry.path(), &metadata));
                }
            }
        }
        Ok(Self(sum))
    }
}

impl SourceStamp {
    /// Of parts that are told in words, whatever their order.
    #[cfg(feature = "remote")]
    pub(super) fn of_parts(parts: impl Iterator<Item = String>) -> Self {
        let part = |part: String| low_half(Sha256::digest(part.as_bytes()).as_slice());
        Self(parts.map(part).fold(0, u128::wrapping_add))
    }
}

fn stamp_of(path: &Path, metadata: &std::fs::Metadata) -> u128 {
    let mut hash = Sha256::new();
    hash.update(metadata.len().to_le_bytes());
    hash.update(metadata.mtime().to_le_bytes());
    hash.update(metadata.mtime_nsec().to_le_bytes());
    hash.update(path.as_os_str().as_bytes());
    low_half(hash.finalize().as_slice())
}

/// 128 bits of a digest.
fn low_half(digest: &[u8]) -> u128 {
    let mut low = [0; 16];
    low.copy_from_slice(&digest[..16]);
    u128::from_le_bytes(low)
}

impl std::fmt::Display for SourceStamp {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::SourceStamp;

    #[test]
    fn files_that_come_go_or_change_change_the_stamp() {
        let folder = tempfile::tempdir().unwrap();
        let stamp = || SourceStamp::of(&[folder.path()], false).unwrap();
        let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        std::fs::create_dir(folder.path().join("below")).unwrap();
        put("a", "one");
        let mut seen = vec![stamp()];
        put("below/b", "one");
        seen.push(stamp());
        put("a", "longer");
        seen.push(stamp());
        std::fs::rename(folder.path().join("a"), folder.path().join("c")).unwrap();
        seen.push(stamp());
        for (index, stamp) in seen.iter().enumerate() {
            assert!(!seen[..index].contains(stamp));
        }
        put(".hidden", "x");
        assert_eq!(seen.last(), Some(&stamp()));
        let pattern = folder.path().join("{a..c}");
        let of_pattern = SourceStamp::of(&[&pattern], false).unwrap();
        put("c", "something else");
        assert_ne!(of_pattern, SourceStamp::of(&[&pattern], false).unwrap());
        for (file, side) in [
            ("x.msgpack", "x.msgpack.offsets"),
            ("t-images-idx3-ubyte", "t-labels-idx1-ubyte"),
            ("x.tar", "labels.json"),
        ] {
            put(file, "content");
            put(side, "a");
            let of_file = || SourceStamp::of(&[&folder.path().join(file)], false).unwrap();
            let before = of_file();
            put(side, "another");
            assert_ne!(before, of_file(), "{side}");
        }
    }
}
