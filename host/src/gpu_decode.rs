//! Options for the GPU that prepares part of the host's batches.

use meetpoint_prepare::gpu::{GpuIndex, GpuMemory, ShareChoice};

/// A GPU that prepares a share of each batch of the host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GpuDecode {
    /// The GPU.
    pub gpu: GpuIndex,
    /// Its share of each batch.
    pub share: ShareChoice,
    /// Maximum device memory in bytes, for all threads together. `None`: the default, or less if
    /// the proportional page-locked memory does not fit into this process's memory.
    pub memory_bytes: Option<u64>,
}

impl GpuDecode {
    /// This GPU, with defaults for all other options.
    pub fn new(gpu: GpuIndex) -> Self {
        Self { gpu, share: ShareChoice::default(), memory_bytes: None }
    }

    /// Its memory limits for all ranks of this process. They may use `bytes` bytes of host memory,
    /// of which `others` are reserved. `None` if the given limit does not fit.
    pub(crate) fn memory(&self, bytes: u64, others: u64) -> Option<GpuMemory> {
        let left = bytes.saturating_sub(others);
        match self.memory_bytes {
            Some(given) => Some(GpuMemory::of(given)).filter(|it| it.pinned_bytes <= left),
            // Half of the rest, so that other threads and libraries have some too.
            None => Some(GpuMemory::default().within(left / 2)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::GpuDecode;
    use meetpoint_prepare::gpu::{GpuIndex, GpuMemory};

    #[test]
    fn the_default_is_lowered_where_it_does_not_fit_and_a_given_limit_is_not() {
        let default = GpuDecode::new(GpuIndex(0));
        assert_eq!(default.memory(64 << 30, 1 << 30), Some(GpuMemory::default()));
        let small = default.memory(1 << 30, 512 << 20).unwrap();
        assert_eq!(small.pinned_bytes, 256 << 20);
        assert_eq!(small.device_bytes, 8 * small.pinned_bytes);
        let given = GpuDecode { memory_bytes: Some(8 << 30), ..default };
        assert_eq!(given.memory(2 << 30, 1 << 30).unwrap().pinned_bytes, 1 << 30);
        assert_eq!(given.memory((2 << 30) - 1, 1 << 30), None);
    }
}
