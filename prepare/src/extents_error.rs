//! Why a dataset cannot be read by its extents.

use meetpoint_diagnose::{Command, Diagnose, Remedy, shown};
use meetpoint_format::dataset::{ExtentDevice, ExtentsError};
use meetpoint_storage::{Error as StorageError, open_files_limit};
use std::io::ErrorKind;
use std::path::PathBuf;

/// A file of extents, or a block device, that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ExtentFolderError {
    /// The file of extents cannot be read.
    #[error("failed to read it: {0}")]
    Read(#[source] std::io::Error),
    /// Its content is wrong.
    #[error(transparent)]
    Extents(ExtentsError),
    /// The block device cannot be opened.
    #[error(transparent)]
    Block(StorageError),
    /// The block device has another length than that of the extents.
    #[error(
        "{} has {bytes} bytes, but the extents are on {} of {} bytes (drive {} of {} bytes)",
        shown(block), device.name, device.bytes, device.drive, device.drive_bytes
    )]
    Length {
        /// The block device that was named.
        block: PathBuf,
        /// Its length.
        bytes: u64,
        /// The device of the extents.
        device: ExtentDevice,
    },
    /// The bytes at the extents of the manifest are not the manifest.
    #[error(
        "{} does not hold dataset.json where the extents say: it is another device, or the dataset \
         was moved, replaced or deleted since it was mapped",
        shown(block)
    )]
    OtherManifest {
        /// The block device.
        block: PathBuf,
    },
    /// A manifest above the maximum length.
    #[error("dataset.json of {bytes} bytes is too long")]
    ManifestTooLong {
        /// Its length.
        bytes: u64,
    },
    /// The parts in the manifest have other names or lengths.
    #[error("the extents are not those of the parts that dataset.json lists")]
    OtherParts,
    /// A dataset whose content is in separate files.
    #[error("the content of the dataset stays in other files, which have no extents here")]
    InPlace,
    /// An extent that holds other bytes than when it was mapped.
    #[error(
        "{file}, extent {index} (at {offset}, {bytes} bytes): checksum is {got:#010x}, expected \
         {expected:#010x}"
    )]
    Checksum {
        /// Name of the file.
        file: String,
        /// Index of the extent in the file.
        index: usize,
        /// First byte on the device.
        offset: u64,
        /// Length.
        bytes: u64,
        /// Computed.
        got: u32,
        /// Stored.
        expected: u32,
    },
    /// A dataset by its extents cannot be mapped into memory.
    #[error("a dataset by its extents cannot be mapped into memory")]
    NotMapped,
}

impl Diagnose for ExtentFolderError {
    fn cause(&self) -> &'static str {
        match self {
            Self::Read(_) => "extents_unreadable",
            Self::Extents(_) => "extents_invalid",
            Self::Block(source) => source.cause(),
            Self::Length { .. } => "another_block_device",
            Self::OtherManifest { .. } | Self::OtherParts => "extents_outdated",
            Self::ManifestTooLong { .. } => "extents_invalid",
            Self::InPlace => "extents_in_place",
            Self::Checksum { .. } => "extent_checksum",
            Self::NotMapped => "dataset_not_mapped",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        let map_again = || Remedy::run(Command::MapExtents);
        Some(match self {
            Self::Read(_) => {
                Remedy::advice("name a readable file of extents").or_run(Command::MapExtents)
            }
            Self::Block(source) => return remedy_of_block(source),
            Self::Length { .. } => {
                Remedy::advice("name the device or the drive that the dataset is on")
                    .or("map the dataset again on that device")
            }
            Self::Extents(_) | Self::OtherParts | Self::ManifestTooLong { .. } => map_again(),
            Self::OtherManifest { .. } | Self::Checksum { .. } => {
                map_again().or("name the device that the dataset is on")
            }
            Self::InPlace => Remedy::run(Command::Pack),
            Self::NotMapped => "read it without a mapping".into(),
        })
    }
}

/// The remedy for a block device that cannot be read. The user named it; unlike a file, it cannot
/// be restored.
fn remedy_of_block(source: &StorageError) -> Option<Remedy> {
    match source {
        StorageError::Open { source: cause, .. }
            if matches!(cause.kind(), ErrorKind::PermissionDenied)
                || open_files_limit(cause).is_some() =>
        {
            source.remedy()
        }
        StorageError::Open { .. }
        | StorageError::Length { .. }
        | StorageError::ShortRead { .. } => Some(
            Remedy::advice("name the device or the drive that the dataset is on")
                .or("name an image of either"),
        ),
        source => source.remedy(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_device_that_is_not_there_is_not_restored_but_named() {
        let remedy = |kind: ErrorKind| {
            let (path, source) = ("/dev/none".into(), std::io::Error::from(kind));
            ExtentFolderError::Block(StorageError::Open { path, source }).remedy().unwrap()
        };
        let missing = remedy(ErrorKind::NotFound);
        assert_eq!(missing.steps().len(), 2, "{missing:?}");
        assert_ne!(remedy(ErrorKind::PermissionDenied), missing);
    }
}
