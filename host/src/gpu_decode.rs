//! Which GPU takes part in the host's preparation, and how much of it.

use meetpoint_prepare::gpu::{GpuIndex, ShareChoice};

/// A GPU that prepares a share of each batch of the host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GpuDecode {
    /// Which one.
    pub gpu: GpuIndex,
    /// Its share.
    pub share: ShareChoice,
}
