//! The extents of a dataset: where on a block device its files are, for a reader that does not
//! mount the file system.
//!
//! A text file in JSON. Checksums show whether the device still holds what was mapped; the dataset
//! itself is checked by the SHA-256 of `dataset.json`, as in a folder.

use super::manifest::MANIFEST_NAME;
use crate::checksum::crc32c;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// [`DatasetExtents::format`].
pub const EXTENTS_FORMAT: &str = "meetpoint-extents";

/// [`DatasetExtents::version`].
pub const EXTENTS_VERSION: u32 = 1;

/// Longest text that is read, in bytes.
pub const EXTENTS_BYTES_MAX: u64 = 1 << 28;

/// Most files.
const FILES_MAX: usize = 1 << 20;

/// Longest name of a file or device, in bytes, as in Linux.
const NAME_BYTES_MAX: usize = 255;

/// Maximum number of characters of an invalid text that an error repeats.
const CHARS_SHOWN: usize = 32;

/// Block sizes of drives, in bytes.
const BLOCK_BYTES: std::ops::RangeInclusive<u32> = 512..=65536;

/// The extents of a dataset.
///
/// ```
/// use meetpoint_format::dataset::{DatasetExtents, EXTENTS_FORMAT, EXTENTS_VERSION, ExtentsError};
///
/// let text = r#"{
///   "format": "meetpoint-extents",
///   "version": 1,
///   "manifest_sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
///   "device": {
///     "name": "nvme0n1p1", "bytes": 1048576, "block_bytes": 512,
///     "drive": "nvme0n1", "drive_bytes": 2097152, "partition_offset": 524288
///   },
///   "files": [
///     {"file": "dataset.json", "bytes": 600,
///      "extents": [{"offset": 4096, "bytes": 600, "crc32c": 0}]}
///   ]
/// }"#;
/// let extents = DatasetExtents::from_json(text.as_bytes())?;
/// assert_eq!((extents.files[0].bytes, extents.parts().len()), (600, 0));
/// // An extent must be on the device.
/// let outside = DatasetExtents::from_json(text.replace("4096", "1048064").as_bytes());
/// assert!(matches!(outside, Err(ExtentsError::Extent { .. })));
/// # Ok::<(), ExtentsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetExtents {
    /// Always [`EXTENTS_FORMAT`].
    pub format: String,
    /// Version of the format.
    pub version: u32,
    /// SHA-256 of `dataset.json`, in hexadecimal digits.
    pub manifest_sha256: String,
    /// The block device that offsets refer to.
    pub device: ExtentDevice,
    /// `dataset.json`, then the parts in the order of the manifest.
    pub files: Vec<FileExtents>,
}

/// The block device of a file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtentDevice {
    /// Its name on the machine that mapped the dataset: `nvme0n1p1`.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Bytes of a logical block: extents begin at multiples of it.
    pub block_bytes: u32,
    /// Name of the drive, the same if the device is no partition.
    pub drive: String,
    /// Length of the drive in bytes.
    pub drive_bytes: u64,
    /// Where on the drive the device begins, in bytes.
    pub partition_offset: u64,
}

/// A file of the dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileExtents {
    /// Its name in the dataset's folder.
    pub file: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its extents, in the order of its bytes and without gaps.
    pub extents: Vec<FileExtent>,
}

/// A range of the device that holds bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileExtent {
    /// First byte on the device.
    pub offset: u64,
    /// Length; a whole number of blocks except at the end of the file.
    pub bytes: u64,
    /// CRC-32C of these bytes.
    pub crc32c: u32,
}

/// What is wrong with a file of extents.
#[derive(Debug, thiserror::Error)]
pub enum ExtentsError {
    /// It does not parse.
    #[error("not a file of extents: {0}")]
    Json(#[from] serde_json::Error),
    /// Another format or version.
    #[error(
        "format {format:?}, version {version}, but this program reads {EXTENTS_FORMAT:?}, \
         version {EXTENTS_VERSION}"
    )]
    Version {
        /// Its format.
        format: String,
        /// Its version.
        version: u32,
    },
    /// The checksum of the manifest is not 64 hexadecimal digits.
    #[error("manifest_sha256 is not 64 hexadecimal digits")]
    Sha256,
    /// Numbers of the device that cannot be true.
    #[error("device {name}: {problem}")]
    Device {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// The list of files.
    #[error("files: {problem}")]
    Files {
        /// What is wrong.
        problem: &'static str,
    },
    /// An extent.
    #[error("{file}, extent {index}: {problem}")]
    Extent {
        /// Name of the file.
        file: String,
        /// Index of the extent in it.
        index: usize,
        /// What is wrong.
        problem: &'static str,
    },
}

impl DatasetExtents {
    /// Parses and checks a text.
    pub fn from_json(text: &[u8]) -> Result<Self, ExtentsError> {
        let extents: Self = serde_json::from_slice(text)?;
        extents.check()?;
        Ok(extents)
    }

    /// The text, in a readable form, ending with a line break.
    pub fn to_json(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).expect("its fields are text and numbers");
        text.push(b'\n');
        text
    }

    /// The parts, without `dataset.json`.
    pub fn parts(&self) -> &[FileExtents] {
        self.files.get(1..).unwrap_or_default()
    }

    /// SHA-256 of `dataset.json`; `None` if it is not 64 hexadecimal digits.
    pub fn manifest_sha256(&self) -> Option<[u8; 32]> {
        let digits = self.manifest_sha256.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut sha256 = [0; 32];
        for (byte, pair) in sha256.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16);
            *byte = u8::try_from(digit(0)? << 4 | digit(1)?).expect("two digits are a byte");
        }
        Some(sha256)
    }

    /// Checks everything that can be checked without the device: that extents are in whole blocks
    /// of it, are as long as their files, and do not overlap.
    pub fn check(&self) -> Result<(), ExtentsError> {
        if self.format != EXTENTS_FORMAT || self.version != EXTENTS_VERSION {
            let (format, version) = (beginning(&self.format), self.version);
            return Err(ExtentsError::Version { format, version });
        }
        self.manifest_sha256().ok_or(ExtentsError::Sha256)?;
        self.device.check()?;
        let files = |problem| Err(ExtentsError::Files { problem });
        if self.files.first().is_none_or(|first| first.file != MANIFEST_NAME) {
            return files("the first is not dataset.json");
        }
        if self.files.len() > FILES_MAX {
            return files("more than 1048576");
        }
        let mut names = HashSet::with_capacity(self.files.len());
        for FileExtents { file, .. } in &self.files {
            if file.is_empty() || file.contains('/') || file == "." || file == ".." {
                return files("a name is not that of a file in a folder");
            }
            if let Some(problem) = problem_of_name(file) {
                return files(problem);
            }
            if !names.insert(file) {
                return files("a name occurs twice");
            }
        }
        for file in &self.files {
            file.check(&self.device)?;
        }
        self.check_overlaps()
    }

    fn check_overlaps(&self) -> Result<(), ExtentsError> {
        let mut all: Vec<(u64, u64, &str, usize)> = Vec::new();
        for FileExtents { file, extents, .. } in &self.files {
            let ranges = extents.iter().enumerate();
            all.extend(ranges.map(|(index, it)| (it.offset, it.offset + it.bytes, &**file, index)));
        }
        all.sort_unstable();
        match all.windows(2).find(|pair| pair[0].1 > pair[1].0) {
            None => Ok(()),
            Some(pair) => {
                let (file, index) = (pair[1].2.to_owned(), pair[1].3);
                Err(ExtentsError::Extent { file, index, problem: "overlaps another extent" })
            }
        }
    }
}

impl ExtentDevice {
    fn check(&self) -> Result<(), ExtentsError> {
        let Self { bytes, block_bytes, drive_bytes, partition_offset, .. } = *self;
        for name in [&self.name, &self.drive] {
            if let Some(problem) = problem_of_name(name) {
                return Err(ExtentsError::Device { name: beginning(name), problem });
            }
        }
        let wrong = |problem| Err(ExtentsError::Device { name: self.name.clone(), problem });
        if !block_bytes.is_power_of_two() || !BLOCK_BYTES.contains(&block_bytes) {
            return wrong("block_bytes is not a power of two from 512 to 65536");
        }
        let block = u64::from(block_bytes);
        if !partition_offset.is_multiple_of(block) {
            return wrong("partition_offset is not a whole number of blocks");
        }
        let end = partition_offset.checked_add(bytes);
        if end.is_none_or(|end| end > drive_bytes) {
            return wrong("it ends after its drive");
        }
        Ok(())
    }
}

/// The problem of a name that is printed in messages; `None` if it is valid.
fn problem_of_name(name: &str) -> Option<&'static str> {
    if name.len() > NAME_BYTES_MAX {
        return Some("a name is longer than 255 bytes");
    }
    name.contains(char::is_control).then_some("a name has control characters")
}

/// The beginning of a text, without control characters.
fn beginning(text: &str) -> String {
    text.chars().take(CHARS_SHOWN).map(|it| if it.is_control() { '?' } else { it }).collect()
}

impl FileExtents {
    fn check(&self, device: &ExtentDevice) -> Result<(), ExtentsError> {
        let block = u64::from(device.block_bytes);
        let wrong =
            |index, problem| Err(ExtentsError::Extent { file: self.file.clone(), index, problem });
        let mut bytes = 0_u64;
        for (index, extent) in self.extents.iter().enumerate() {
            if extent.bytes == 0 {
                return wrong(index, "is empty");
            }
            if !extent.offset.is_multiple_of(block) {
                return wrong(index, "does not begin with a block of the device");
            }
            let end = extent.offset.checked_add(extent.bytes);
            if end.is_none_or(|end| end > device.bytes) {
                return wrong(index, "ends after the device");
            }
            let is_last = index + 1 == self.extents.len();
            if !is_last && !extent.bytes.is_multiple_of(block) {
                return wrong(index, "is not a whole number of blocks, and not the last one");
            }
            // Cannot overflow: both are at most the length of the file, or the check ends here.
            bytes = bytes.saturating_add(extent.bytes);
            if bytes > self.bytes {
                return wrong(index, "ends after the file");
            }
        }
        match bytes == self.bytes {
            true => Ok(()),
            false => wrong(self.extents.len(), "is missing: the extents are shorter than the file"),
        }
    }
}

impl FileExtent {
    /// Whether these are the bytes of the extent.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        bytes.len() as u64 == self.bytes && crc32c(bytes) == self.crc32c
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extents() -> DatasetExtents {
        let file = |file: &str, extents: &[(u64, u64)]| FileExtents {
            file: file.to_owned(),
            bytes: extents.iter().map(|it| it.1).sum(),
            extents: extents
                .iter()
                .map(|&(offset, bytes)| FileExtent { offset, bytes, crc32c: 7 })
                .collect(),
        };
        DatasetExtents {
            format: EXTENTS_FORMAT.to_owned(),
            version: EXTENTS_VERSION,
            manifest_sha256: "0f".repeat(32),
            device: ExtentDevice {
                name: "sda1".to_owned(),
                bytes: 1 << 20,
                block_bytes: 512,
                drive: "sda".to_owned(),
                drive_bytes: 1 << 21,
                partition_offset: 4096,
            },
            files: vec![
                file("dataset.json", &[(8192, 700)]),
                file("part-00000.arrow", &[(16384, 4096), (0, 1024), (32768, 1)]),
            ],
        }
    }

    #[test]
    fn a_text_is_read_as_it_was_written() {
        let extents = extents();
        assert_eq!(DatasetExtents::from_json(&extents.to_json()).unwrap(), extents);
        assert_eq!(extents.manifest_sha256(), Some([0x0f; 32]));
        assert_eq!(extents.parts()[0].file, "part-00000.arrow");
    }

    #[test]
    fn extents_that_are_not_on_the_device_or_not_of_the_file_are_refused() {
        let refused = |change: &dyn Fn(&mut Vec<FileExtent>)| {
            let mut extents = extents();
            change(&mut extents.files[1].extents);
            match extents.check().unwrap_err() {
                ExtentsError::Extent { file, index, .. } => (file, index),
                other => panic!("{other}"),
            }
        };
        let part = |index| ("part-00000.arrow".to_owned(), index);
        assert_eq!(refused(&|it| it[0].bytes = 0), part(0));
        assert_eq!(refused(&|it| it[1].offset += 1), part(1));
        assert_eq!(refused(&|it| it[1].offset = (1 << 20) - 512), part(1));
        assert_eq!(refused(&|it| it[1].offset = u64::MAX - 511), part(1));
        assert_eq!(refused(&|it| it[0].bytes -= 1), part(0));
        assert_eq!(refused(&|it| it[2].bytes = 2), part(2));
        assert_eq!(refused(&|it| it[0].bytes = u64::MAX), part(0));
        assert_eq!(refused(&|it| _ = it.pop()), part(2));
        // The manifest's, and its own first extent's.
        assert_eq!(refused(&|it| it[1].offset = 8192), part(1));
        assert_eq!(refused(&|it| it[1].offset = 16384 + 512), part(1));
    }

    #[test]
    fn files_of_other_folders_and_impossible_devices_are_refused() {
        let refused = |change: &dyn Fn(&mut DatasetExtents)| {
            let mut extents = extents();
            change(&mut extents);
            extents.check().unwrap_err()
        };
        let long = "x".repeat(1 << 20);
        let names =
            ["", ".", "..", "../x", "/etc/passwd", "a/b", "dataset.json", "a\0", "a\n", &long];
        for name in names {
            let error = refused(&|it| it.files[1].file = name.to_owned());
            assert!(matches!(error, ExtentsError::Files { .. }), "{name}: {error}");
            assert!(error.to_string().len() < 100, "{error}");
        }
        for name in ["a\u{1b}[31m", &long] {
            for error in [
                refused(&|it| it.device.name = name.to_owned()),
                refused(&|it| it.device.drive = name.to_owned()),
            ] {
                assert!(matches!(error, ExtentsError::Device { .. }), "{error}");
                let said = error.to_string();
                assert!(said.len() < 200 && !said.contains(char::is_control), "{said:?}");
            }
        }
        let error = refused(&|it| it.format.clone_from(&long));
        assert!(error.to_string().len() < 200, "{error}");
        assert!(matches!(refused(&|it| it.files.clear()), ExtentsError::Files { .. }));
        assert!(matches!(refused(&|it| it.version = 2), ExtentsError::Version { .. }));
        assert!(matches!(refused(&|it| it.manifest_sha256.push('0')), ExtentsError::Sha256));
        let wrong = "g".repeat(64);
        assert!(matches!(
            refused(&|it| it.manifest_sha256.clone_from(&wrong)),
            ExtentsError::Sha256
        ));
        let changes: [&dyn Fn(&mut ExtentDevice); 5] = [
            &|it| it.block_bytes = 0,
            &|it| it.block_bytes = 520,
            &|it| it.partition_offset = 100,
            &|it| it.drive_bytes = 1 << 20,
            &|it| it.bytes = u64::MAX,
        ];
        for change in changes {
            let error = refused(&|it| change(&mut it.device));
            assert!(matches!(error, ExtentsError::Device { .. }), "{error}");
        }
        let text = String::from_utf8(extents().to_json()).unwrap();
        let unknown = text.replace("\"device\"", "\"other\": 1, \"device\"");
        let error = DatasetExtents::from_json(unknown.as_bytes()).unwrap_err();
        assert!(matches!(error, ExtentsError::Json(_)), "{error}");
    }
}
