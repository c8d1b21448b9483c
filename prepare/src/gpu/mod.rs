//! Pictures of a batch prepared on a GPU: JPEGs decoded there, and the recipe executed there.
//!
//! In reading order: `share` (which share of a batch goes to the GPU), [`GpuMemory`] (memory
//! limits), `program` (the operations of a recipe on a sample, in the form for the GPU),
//! [`GpuBatch`] (the pictures of one batch), `refusal` (why the CPU prepares instead), `retry`
//! (when the GPU is tried again), [`GpuOffload`] (one preparer's use of a GPU), [`GpuUse`] (that of
//! all preparers of a loader), [`GpuPreparers`] (makes them), `open` (opens a GPU for them).

mod batch;
mod factory;
mod memory;
mod offload;
mod open;
mod program;
mod refusal;
mod retry;
mod share;
mod usage;

pub use crate::gpu_use::{Downloaded, GpuFailure, GpuUse, NotOffloaded, NotTaken};
pub use batch::{GpuBatch, GpuRefusal, MemoryUse, OfferOutcome};
pub use factory::{Computes, GpuPreparers};
pub use meetpoint_gpu::{Error as GpuError, GpuIndex, NotAGpu};
pub use memory::GpuMemory;
pub use offload::GpuOffload;
pub use open::open_gpu;
pub use program::{mix_partner, sample_mix};
pub use refusal::OpenError;
pub use share::{NotAShare, ShareChoice};
