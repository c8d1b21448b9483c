//! How much memory decoding on a GPU may take.

/// The page-locked part of the memory that a GPU may have for decoding: files are smaller than what
/// they are decoded to.
const PINNED_PART: u64 = 8;

/// Parts of the page-locked memory: that of programs, and in all. The rest is for files.
const PROGRAMS_PART: u64 = 4;

/// Memory for decoding on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuMemory {
    /// Most bytes on the GPU.
    pub device_bytes: u64,
    /// Most bytes of page-locked memory of the host.
    pub pinned_bytes: u64,
}

impl GpuMemory {
    /// The default limit of a loader, in bytes on the GPU.
    pub const DEFAULT_BYTES: u64 = 4 << 30;

    /// The smallest useful limit: a few photographs.
    pub const BYTES_MIN: u64 = 64 << 20;

    /// With a limit on the GPU, to which that of page-locked memory is in proportion: an eighth.
    pub fn of(device_bytes: u64) -> Self {
        Self { device_bytes, pinned_bytes: device_bytes / PINNED_PART }
    }

    /// The same, or less: with no more than this much page-locked memory.
    #[must_use]
    pub fn within(self, pinned_bytes: u64) -> Self {
        match self.pinned_bytes <= pinned_bytes {
            true => self,
            false => Self::of(pinned_bytes.saturating_mul(PINNED_PART)),
        }
    }

    /// An equal part of it, for one of several threads.
    #[must_use]
    pub fn divided(self, threads: u32) -> Self {
        Self::of(self.device_bytes / u64::from(threads.max(1)))
    }

    /// Half of it.
    #[must_use]
    pub(super) fn halved(self) -> Self {
        Self::of(self.device_bytes / 2)
    }

    /// Page-locked memory for what is done to pictures.
    pub(super) fn programs_bytes(self) -> usize {
        usize::try_from(self.pinned_bytes / PROGRAMS_PART).unwrap_or(usize::MAX)
    }

    /// Page-locked memory for files.
    pub(super) fn files_bytes(self) -> usize {
        let bytes = self.pinned_bytes - self.pinned_bytes / PROGRAMS_PART;
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

impl Default for GpuMemory {
    fn default() -> Self {
        Self::of(Self::DEFAULT_BYTES)
    }
}
