//! Limits of a batch, reasons why a picture is not added to it, and the status of pictures.

use crate::Error;

/// Limits of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JpegLimits {
    /// Maximum bytes of the staging area, and of its copy on the device; below 2^31.
    pub staging_bytes_max: usize,
    /// Maximum bytes of coefficients, samples, pixels and decoded rows of forms on the device.
    pub device_bytes_max: u64,
    /// Longest segment that a single thread decodes, in bytes, because all other threads may have
    /// to wait for it.
    pub segment_bytes_max: usize,
    /// Mean length of a picture's segments, in bytes, from which a warp decodes each segment.
    pub segment_bytes_long: usize,
    /// Length of the longest of those segments, in bytes, from which a block of threads decodes
    /// each.
    pub segment_bytes_huge: usize,
    /// Longest segment that a warp or a block of threads decodes, in bytes. In a hostile file, each
    /// thread has to wait for the one before, so decoding takes twice as long as with a single
    /// thread.
    pub stream_bytes_max: usize,
    /// Maximum bytes of entropy-coded data of a picture.
    pub picture_bytes_max: usize,
    /// Maximum number of MCUs of a picture.
    pub picture_mcus_max: u64,
}

impl Default for JpegLimits {
    fn default() -> Self {
        Self {
            staging_bytes_max: 1 << 30,
            device_bytes_max: 8 << 30,
            segment_bytes_max: 1 << 18,
            segment_bytes_long: 1 << 8,
            segment_bytes_huge: 1 << 14,
            stream_bytes_max: 1 << 22,
            picture_bytes_max: 1 << 25,
            picture_mcus_max: 1 << 20,
        }
    }
}

/// Why a picture is not added to a batch: the CPU decodes it.
#[derive(Debug, thiserror::Error)]
pub enum JpegError {
    /// A segment is too long for one thread.
    #[error("a segment of {bytes} bytes, more than {limit}; add entry points to the dataset")]
    LongSegment {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A segment is too long for one block of threads.
    #[error("a segment of {bytes} bytes, more than {limit}; add entry points to the dataset")]
    LongStream {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A picture has more data than one launch should decode.
    #[error("{bytes} bytes of entropy-coded data, more than {limit}")]
    LongPicture {
        /// Size of the data in bytes.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A picture has more MCUs than one launch should decode.
    #[error("{mcus} MCUs, more than {limit}")]
    ManyMcus {
        /// Number of MCUs.
        mcus: u64,
        /// The limit.
        limit: u64,
    },
    /// The staging area would be too large.
    #[error("the data of the batch have more than {limit} bytes")]
    Staging {
        /// The limit.
        limit: usize,
    },
    /// The memory of the device would be too large.
    #[error("the batch needs more than {limit} bytes on the device")]
    DeviceBytes {
        /// The limit.
        limit: u64,
    },
    /// The plan contradicts itself or the file.
    #[error("the plan does not fit the file")]
    Plan,
    /// The device failed.
    #[error(transparent)]
    Device(#[from] Error),
}

impl JpegError {
    /// Whether the picture may fit into another batch. A picture that does not fit into an empty
    /// batch fits into none.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Staging { .. } | Self::DeviceBytes { .. } => true,
            Self::LongSegment { .. }
            | Self::LongStream { .. }
            | Self::LongPicture { .. }
            | Self::ManyMcus { .. }
            | Self::Plan
            | Self::Device(_) => false,
        }
    }
}

/// Errors in the data of a picture; without errors, its pixels are those of the CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PictureStatus(pub(super) u32);

impl PictureStatus {
    /// Bits that match no Huffman code.
    pub const NO_CODE: Self = Self(1);
    /// A block with more than 64 coefficients.
    pub const TOO_MANY: Self = Self(2);
    /// Data that end too early.
    pub const OVERRUN: Self = Self(4);
    /// A segment that does not end where the next one begins.
    pub const WRONG_END: Self = Self(8);
    /// A row of a coefficient form that violates the format.
    pub const WRONG_FORM: Self = Self(16);

    /// Whether there were no errors, so that the pixels are correct.
    pub fn is_sound(self) -> bool {
        self == Self::default()
    }

    /// Whether this status has any of the errors of another one.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Memory of a [`JpegBatch`](super::JpegBatch).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchBytes {
    /// Page-locked memory of the host.
    pub host: usize,
    /// Memory of the device.
    pub device: usize,
}
