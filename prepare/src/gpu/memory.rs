//! Memory limits for decoding on a GPU.

/// Device memory divided by page-locked memory. Files are smaller than their decoded pictures.
const PINNED_PART: u64 = 8;

/// 1 / `PROGRAMS_PART` of the page-locked memory is for programs, the rest for files.
const PROGRAMS_PART: u64 = 4;

/// 1 / `TENSORS_PART` of the device memory is for tensors that stay there until they are delivered.
const TENSORS_PART: u64 = 4;

/// Memory limits for decoding on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuMemory {
    /// Maximum bytes on the GPU.
    pub device_bytes: u64,
    /// Maximum bytes of page-locked host memory.
    pub pinned_bytes: u64,
}

impl GpuMemory {
    /// The default limit of a loader, in bytes on the GPU.
    pub const DEFAULT_BYTES: u64 = 4 << 30;

    /// The smallest useful limit: a few photographs.
    pub const BYTES_MIN: u64 = 64 << 20;

    /// This limit on the GPU, and an eighth of it for page-locked memory.
    pub fn of(device_bytes: u64) -> Self {
        Self { device_bytes, pinned_bytes: device_bytes / PINNED_PART }
    }

    /// Reduces the limits, if necessary, to at most this much page-locked memory.
    #[must_use]
    pub fn within(self, pinned_bytes: u64) -> Self {
        match self.pinned_bytes <= pinned_bytes {
            true => self,
            false => Self::of(pinned_bytes.saturating_mul(PINNED_PART)),
        }
    }

    /// The equal share of one of several threads.
    #[must_use]
    pub fn divided(self, threads: u32) -> Self {
        Self::of(self.device_bytes / u64::from(threads.max(1)))
    }

    /// The limits that remain without the memory for tensors that stay on the GPU, and the bytes of
    /// that memory.
    #[must_use]
    pub fn without_tensors(self) -> (Self, u64) {
        let tensors = self.device_bytes / TENSORS_PART;
        (Self::of(self.device_bytes - tensors), tensors)
    }

    /// Half of these limits.
    #[must_use]
    pub(super) fn halved(self) -> Self {
        Self::of(self.device_bytes / 2)
    }

    /// Page-locked memory for the programs of pictures.
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
