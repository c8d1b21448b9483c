//! Why a file cannot be used by its extents.

use super::fiemap::flags;
use meetpoint_diagnose::{Diagnose, Remedy, shown};
use std::path::{Path, PathBuf};

/// Why the bytes of a file are not, or may not remain, where a map says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instability {
    /// Not yet assigned to blocks.
    Delayed,
    /// The file system does not say where it is.
    Unknown,
    /// Compressed, or changed in another way.
    Encoded,
    /// Encrypted by the file system.
    Encrypted,
    /// Not at a block boundary.
    Unaligned,
    /// Stored in the inode.
    Inline,
    /// Stored in one block together with other files.
    Tail,
    /// Blocks that are reserved but not written, which read as zeros.
    Unwritten,
    /// Blocks that another file shares (reflink).
    Shared,
    /// A hole, which no block represents.
    Hole,
    /// A flag that this program does not know.
    UnknownFlag(u32),
}

impl Instability {
    /// The first reason among the flags of an extent, if there is one.
    pub(super) fn of_flags(given: u32) -> Option<Self> {
        // The specific flags before those that they imply.
        let known = [
            (flags::DELALLOC, Self::Delayed),
            (flags::DATA_INLINE, Self::Inline),
            (flags::DATA_TAIL, Self::Tail),
            (flags::DATA_ENCRYPTED, Self::Encrypted),
            (flags::ENCODED, Self::Encoded),
            (flags::UNWRITTEN, Self::Unwritten),
            (flags::SHARED, Self::Shared),
            (flags::UNKNOWN, Self::Unknown),
            (flags::NOT_ALIGNED, Self::Unaligned),
        ];
        if let Some((_, found)) = known.iter().find(|(flag, _)| given & flag != 0) {
            return Some(*found);
        }
        let other = given & !(flags::LAST | flags::MERGED);
        (other != 0).then_some(Self::UnknownFlag(other))
    }

    fn words(self) -> String {
        match self {
            Self::Delayed => "not yet written to blocks (DELALLOC)".to_owned(),
            Self::Unknown => "at an unknown position (UNKNOWN)".to_owned(),
            Self::Encoded => "compressed or otherwise encoded (ENCODED)".to_owned(),
            Self::Encrypted => "encrypted by the file system (DATA_ENCRYPTED)".to_owned(),
            Self::Unaligned => "not aligned to blocks (NOT_ALIGNED)".to_owned(),
            Self::Inline => "stored in the inode (DATA_INLINE)".to_owned(),
            Self::Tail => "stored in a block with other files (DATA_TAIL)".to_owned(),
            Self::Unwritten => "reserved, but never written (UNWRITTEN)".to_owned(),
            Self::Shared => "shared with another file (SHARED)".to_owned(),
            Self::Hole => "a hole".to_owned(),
            Self::UnknownFlag(bits) => format!("marked with unknown flags ({bits:#x})"),
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::Delayed => "run `sync`, then map it again",
            Self::Shared => "copy the dataset without reflinks (cp --reflink=never)",
            Self::Hole | Self::Unwritten => {
                "copy the dataset so that every block is written (cp --sparse=never)"
            }
            Self::Encoded | Self::Encrypted => {
                "copy the dataset to a folder that is neither compressed nor encrypted"
            }
            Self::Inline | Self::Tail => {
                "copy the dataset to a file system without inline data and tails"
            }
            Self::Unknown | Self::Unaligned | Self::UnknownFlag(_) => {
                "copy the dataset to a file system of type ext4 or XFS"
            }
        }
    }
}

/// Why a file cannot be mapped to extents.
#[derive(Debug, thiserror::Error)]
pub enum ExtentError {
    /// A call to the operating system failed.
    #[error("{}: failed to {action}: {source}", shown(path))]
    Io {
        /// File.
        path: PathBuf,
        /// What was attempted.
        action: &'static str,
        /// Cause.
        source: std::io::Error,
    },
    /// The file system does not report extents.
    #[error("{}: its file system does not report extents (FIEMAP)", shown(path))]
    NotSupported {
        /// File.
        path: PathBuf,
    },
    /// Addresses of the file system are not known to be offsets on one block device.
    #[error(
        "{}: its file system (type {magic:#x}) is neither ext4 nor XFS, so its extents are not \
         known to be offsets on one block device",
        shown(path)
    )]
    FileSystem {
        /// File.
        path: PathBuf,
        /// `f_type` of statfs.
        magic: u64,
    },
    /// The file system is not on a block device of this machine, or is on several.
    #[error("{}: its file system is not on one block device of this machine", shown(path))]
    NoDevice {
        /// File.
        path: PathBuf,
    },
    /// A range of the file is not on blocks of its own.
    #[error("{}: bytes {start} to {end} are {}", shown(path), reason.words())]
    Unstable {
        /// File.
        path: PathBuf,
        /// First byte.
        start: u64,
        /// The byte after the last one.
        end: u64,
        /// Why.
        reason: Instability,
    },
    /// A range that the device does not have.
    #[error(
        "{}: an extent at {offset} of {bytes} bytes is outside of its device of {device_bytes}",
        shown(path)
    )]
    OutOfRange {
        /// File.
        path: PathBuf,
        /// First byte on the device.
        offset: u64,
        /// Length.
        bytes: u64,
        /// Length of the device.
        device_bytes: u64,
    },
    /// The file was written to, or its blocks were moved, while it was mapped.
    #[error("{}: {what} changed while it was mapped", shown(path))]
    Changed {
        /// File.
        path: PathBuf,
        /// What changed.
        what: &'static str,
    },
}

impl ExtentError {
    /// The file.
    pub fn path(&self) -> &Path {
        match self {
            Self::Io { path, .. }
            | Self::NotSupported { path }
            | Self::FileSystem { path, .. }
            | Self::NoDevice { path }
            | Self::Unstable { path, .. }
            | Self::OutOfRange { path, .. }
            | Self::Changed { path, .. } => path,
        }
    }
}

impl Diagnose for ExtentError {
    fn cause(&self) -> &'static str {
        match self {
            Self::Io { .. } => "input_output",
            Self::NotSupported { .. } => "extents_not_reported",
            Self::FileSystem { .. } => "file_system_not_supported",
            Self::NoDevice { .. } => "no_block_device",
            Self::Unstable { .. } => "extents_unstable",
            Self::OutOfRange { .. } => "extent_out_of_range",
            Self::Changed { .. } => "file_changed",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::Io { .. } => return None,
            Self::NotSupported { .. } | Self::FileSystem { .. } | Self::NoDevice { .. } => {
                "copy the dataset to a file system of type ext4 or XFS on a block device".into()
            }
            Self::Unstable { reason, .. } => reason.remedy().into(),
            Self::OutOfRange { .. } => "check the file system (fsck)".into(),
            Self::Changed { .. } => {
                Remedy::advice("wait until nothing writes to the dataset, then map it again")
                    .or("mount its file system read-only")
            }
        })
    }
}
