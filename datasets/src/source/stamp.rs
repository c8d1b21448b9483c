//! Detects whether the files of a source changed.

use super::links::Links;
use super::side_files::side_files;
use crate::Error;
use crate::store::{FileKind, Metadata, StorePath, WalkEntry, WalkError, WalkOptions};
use meetpoint_storage::is_of_the_file;
use sha2::{Digest, Sha256};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Names, lengths and times of the files of a source, in 128 bits.
///
/// It reads the metadata of each file but no contents; hidden files are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceStamp(u128);

impl SourceStamp {
    /// The stamp of everything in these files and folders, and of the side files of a file. For a
    /// pattern, it is that of the files beside it. Links that lead out of a folder are included if
    /// `follow_links` is set. Fails if the process reaches a limit.
    pub fn of(paths: &[StorePath], follow_links: bool) -> Result<Self, Error> {
        Self::listing(paths, follow_links, &mut |_, _| ())
    }

    /// As [`Self::of`], and calls `each` with every file and the stamp of it alone.
    pub(crate) fn listing(
        paths: &[StorePath],
        follow_links: bool,
        each: &mut dyn FnMut(&Path, u128),
    ) -> Result<Self, Error> {
        let mut sum = 0_u128;
        let side_files = paths.iter().flat_map(side_files).collect::<Vec<_>>();
        for path in paths.iter().chain(&side_files) {
            let (root, max_depth) = if path.exists() {
                (path.clone(), usize::MAX)
            } else {
                let folder = path.folder();
                let is_named = !folder.path().as_os_str().is_empty();
                (if is_named { folder } else { path.at(".") }, 1)
            };
            let is_root = root.path() == path.path();
            // A pattern may match links.
            let links = match Links::below(&root, follow_links || !is_root) {
                Err(Error::Source { path, source }) if !is_of_the_file(&source) => {
                    return Err(Error::Source { path, source });
                }
                links => links.ok(),
            };
            let leads_out = |link: StorePath| {
                links.as_ref().is_some_and(|links| links.leads_out(&link).is_some())
            };
            let is_seen = |found: &WalkEntry| {
                let is_hidden = found.name().as_bytes().starts_with(b".");
                let is_refused = found.is_link && leads_out(root.at(&found.path));
                found.depth == 0 || !(is_hidden || is_refused)
            };
            let options = WalkOptions { min_depth: 0, max_depth, follow_links: true };
            // Entries that cannot be read are reported when they are packed.
            for found in root.walk(options, is_seen) {
                let found = match found {
                    Ok(found) => root.at(found.path),
                    Err(error) if is_of_the_file(&error.source) => continue,
                    Err(WalkError { source, .. }) => {
                        return Err(Error::Source { path: root.to_path_buf(), source });
                    }
                };
                if let Ok(metadata) = found.metadata()
                    && metadata.kind == FileKind::File
                {
                    // A sum does not depend on the order, in which a folder lists its files.
                    let stamp = stamp_of(found.path(), &metadata);
                    each(found.path(), stamp);
                    sum = sum.wrapping_add(stamp);
                }
            }
        }
        Ok(Self(sum))
    }
}

fn stamp_of(path: &Path, metadata: &Metadata) -> u128 {
    let Metadata { kind: _, bytes, modified: (seconds, nanos), tag } = metadata;
    let mut hash = Sha256::new();
    hash.update(bytes.to_le_bytes());
    hash.update(seconds.to_le_bytes());
    hash.update(nanos.to_le_bytes());
    hash.update(path.as_os_str().as_bytes());
    hash.update(tag.as_deref().unwrap_or_default());
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
    use crate::store::StorePath;
    use std::path::Path;

    #[test]
    fn files_that_come_go_or_change_change_the_stamp() {
        let folder = tempfile::tempdir().unwrap();
        let of = |path: &Path| SourceStamp::of(&[StorePath::local(path)], false).unwrap();
        let stamp = || of(folder.path());
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
        let of_pattern = of(&pattern);
        put("c", "something else");
        assert_ne!(of_pattern, of(&pattern));
        for (file, side) in [
            ("x.msgpack", "x.msgpack.offsets"),
            ("t-images-idx3-ubyte", "t-labels-idx1-ubyte"),
            ("x.tar", "labels.json"),
        ] {
            put(file, "content");
            put(side, "a");
            let of_file = || of(&folder.path().join(file));
            let before = of_file();
            put(side, "another");
            assert_ne!(before, of_file(), "{side}");
        }
    }
}
