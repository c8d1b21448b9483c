//! Batches brought to a GPU: the recipe is divided where bytes become elements, bytes go over the
//! bus, and the GPU converts them to the bits of the host's kernels and mixes samples.
//!
//! In reading order: `split` ([`Split`], where a recipe is divided, and why one is not), `stage`
//! ([`DeliveryStage`], which brings batches of a loader to a GPU), `target` (an NVIDIA GPU for it),
//! `usage` ([`DeliveryUse`], what that took), `accelerator` ([`GpuAccelerator`], steps on batches
//! that are there).

mod accelerator;
mod split;
mod stage;
#[cfg(feature = "cuda")]
mod target;
#[cfg(test)]
mod tests;
mod usage;

pub use crate::page_locks::{LockBudget, Unlocked};
pub use crate::split_refusal::SplitRefusal;
pub use accelerator::{DeliveryOutcome, GpuAccelerator};
pub use meetpoint_gpu::delivery::{
    ConsumerStream, Delivered, DeliveryError, DeliveryLimits, DeviceBatch, Export, Streams,
};
pub use split::{GpuElement, Split, SplitConversion, SplitMixing};
pub use stage::{DeliveryStage, GpuBatch, GpuColumn};
#[cfg(feature = "cuda")]
pub use target::{CudaBatch, CudaMemory, CudaStage, open_cuda};
pub use usage::DeliveryUse;
