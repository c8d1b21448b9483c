//! Names from archives and tables: whether they can be keys, and the kind of content that they
//! indicate.
//!
//! A name never leads out of the folder into which a dataset is unpacked.

use super::ContentKind;
use super::folder::{AUDIO_EXTENSIONS, IMAGE_EXTENSIONS, SIDE_FILES, TEXT_EXTENSIONS};
use crate::message::Message;
use meetpoint_format::dataset::schema::KEY_BYTES_MAX;
use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// Extensions of text beside a picture in an archive.
const CAPTIONS: [&str; 2] = ["transcript", "caption"];

/// The kind of content of a file with this extension (in lower case; also `seg.png`).
pub(super) fn kind_of(extension: &str) -> ContentKind {
    let last = extension.rsplit('.').next().unwrap_or(extension).to_ascii_lowercase();
    match last.as_str() {
        last if IMAGE_EXTENSIONS.contains(&last) => ContentKind::Image,
        last if AUDIO_EXTENSIONS.contains(&last) => ContentKind::Audio,
        last if TEXT_EXTENSIONS.contains(&last) || CAPTIONS.contains(&last) => ContentKind::Text,
        _ => ContentKind::Bytes,
    }
}

/// The extension of a path: the part after the last dot of its last component.
pub(super) fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// Extensions of tables of files.
const TABLE_EXTENSIONS: [&str; 5] = ["csv", "tsv", "tab", "jsonl", "ndjson"];
/// Further extensions of a table `metadata.*`, which are refused with a message.
const METADATA_EXTENSIONS: [&str; 2] = ["json", "parquet"];
/// Extensions of compressed tables that are read.
const READ_COMPRESSIONS: [&str; 2] = [".gz", ".zst"];
/// Extensions of compressed tables that are not read.
const OTHER_COMPRESSIONS: [&str; 8] =
    [".bz2", ".xz", ".lzma", ".lz4", ".br", ".zip", ".7z", ".zstd"];

/// What the name of a file says about a table of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TableName {
    /// Whether it is the name that Hugging Face gives such a table, `metadata.*`.
    pub(super) is_metadata: bool,
    /// Whether it is compressed in a way that is not read.
    pub(super) is_undecodable: bool,
}

impl TableName {
    /// The name of a table, without its folder; `None` for another file.
    pub(super) fn of(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let without = |compressions: &[&str]| {
            compressions.iter().find_map(|compression| name.strip_suffix(compression))
        };
        let undecodable = without(&OTHER_COMPRESSIONS);
        let plain = undecodable.or_else(|| without(&READ_COMPRESSIONS)).unwrap_or(&name);
        let (stem, extension) = plain.rsplit_once('.')?;
        let is_metadata = stem.split('.').next() == Some("metadata");
        let is_table = TABLE_EXTENSIONS.contains(&extension)
            || is_metadata && METADATA_EXTENSIONS.contains(&extension);
        is_table.then_some(Self { is_metadata, is_undecodable: undecodable.is_some() })
    }
}

/// Whether a component of the path is hidden or a side file of a desktop.
pub(super) fn is_ignored(path: &str) -> bool {
    path.split('/').any(|name| name.starts_with('.') || SIDE_FILES.contains(&name))
}

/// A name for messages: invalid UTF-8 is written as `\xNN`.
pub(super) fn shown(name: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in name.utf8_chunks() {
        shown.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| shown.push_str(&format!("\\x{byte:02X}")));
    }
    shown
}

/// The relative path without `.` and empty components; the error is why the name is not a path
/// below its folder.
pub(super) fn relative_path(name: &[u8]) -> Result<String, Message> {
    let name =
        std::str::from_utf8(name).map_err(|_| "its name is not UTF-8, which keys must be")?;
    if name.starts_with('/') {
        let problem = Message::from("its name is an absolute path");
        return Err(problem.remedy("archive it with relative paths"));
    }
    if name.contains('\0') {
        return Err("its name has a zero byte in it".into());
    }
    if name.split(['/', '\\']).any(|component| component == "..") {
        return Err("its name leads out of the folder (`..`)".into());
    }
    let components = || name.split('/').filter(|component| !matches!(*component, "" | "."));
    let path = components().collect::<Vec<_>>().join("/");
    match path.len() {
        0 => Err("it has no name".into()),
        bytes if bytes > KEY_BYTES_MAX => {
            Err(format!("its name has {bytes} bytes, the limit is {KEY_BYTES_MAX}").into())
        }
        _ => Ok(path),
    }
}

/// The keys seen so far, as hashes of 16 bytes: different keys collide in one of 10^26 datasets of
/// a million samples.
#[derive(Default)]
pub(super) struct SeenKeys {
    hashes: HashSet<u128>,
    states: [RandomState; 2],
}

impl SeenKeys {
    /// Whether a key was inserted.
    pub(super) fn contains(&self, key: &str) -> bool {
        self.hashes.contains(&self.hash(key))
    }

    /// Inserts a key; `false` if it was already present.
    pub(super) fn insert(&mut self, key: &str) -> bool {
        let hash = self.hash(key);
        self.hashes.insert(hash)
    }

    fn hash(&self, key: &str) -> u128 {
        let [low, high] = &self.states;
        u128::from(high.hash_one(key)) << 64 | u128::from(low.hash_one(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_stay_below_their_folder_are_keys() {
        assert_eq!(relative_path(b"./a//b/./c.jpg").unwrap(), "a/b/c.jpg");
        assert_eq!(relative_path("ü/…".as_bytes()).unwrap(), "ü/…");
        for bad in ["/a", "..", "a/../b", "a\\..\\b", "", ".", "a\0b", &"x".repeat(4097)] {
            assert!(relative_path(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(relative_path(b"a\xff").unwrap_err().to_string().contains("UTF-8"));
        assert_eq!(shown(b"a\xff.jpg"), "a\\xFF.jpg");
    }

    #[test]
    fn names_determine_tables() {
        let of =
            |name: &str| TableName::of(name).map(|table| (table.is_metadata, table.is_undecodable));
        for name in ["metadata.csv", "METADATA.CSV", "metadata.jsonl.gz", "metadata.json"] {
            assert_eq!(of(name), Some((true, false)), "{name}");
        }
        assert_eq!(of("metadata.csv.bz2"), Some((true, true)));
        assert_eq!(of("train.csv"), Some((false, false)));
        assert_eq!(of("train.tsv.xz"), Some((false, true)));
        for name in ["a.json", "a.parquet", "metadata", "metadata.txt", "csv", "a.csv.jpg"] {
            assert_eq!(of(name), None, "{name}");
        }
    }

    #[test]
    fn extensions_determine_the_kind() {
        assert_eq!(kind_of("seg.PNG"), ContentKind::Image);
        assert_eq!(kind_of("flac"), ContentKind::Audio);
        assert_eq!(kind_of("npy"), ContentKind::Bytes);
        assert_eq!(extension("a.b/c"), "");
        assert_eq!(extension("a.b/c.tar.gz"), "gz");
        assert!(is_ignored("a/.b/c") && is_ignored("__MACOSX/a.jpg") && !is_ignored("a.b/c"));
    }

    #[test]
    fn a_key_is_seen_once() {
        let mut seen = SeenKeys::default();
        assert!(seen.insert("a") && seen.insert("b") && !seen.insert("a"));
        assert!(seen.contains("b") && !seen.contains("c"));
    }
}
