//! Batches delivered to a GPU: the recipe is divided where bytes become elements, bytes are copied
//! over the bus, and the GPU converts them to the same elements as the host's kernels, and mixes
//! samples.
//!
//! In reading order: `split` ([`Split`], where a recipe is divided, and why one is not), `stage`
//! ([`DeliveryStage`], which delivers batches of a loader to a GPU), `target` (an NVIDIA GPU for
//! it), `usage` ([`DeliveryUse`], its statistics), `accelerator` ([`GpuAccelerator`], training
//! steps on delivered batches).

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
