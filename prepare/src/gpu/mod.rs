//! Pictures of a batch prepared on a GPU: JPEGs decoded there, and the recipe executed there.
//!
//! In reading order: `share` (which share of a batch goes to the GPU), `program` (what a recipe
//! does to a sample, as the GPU takes it), [`GpuBatch`] (the pictures of one batch), `refusal` (why
//! the CPU prepares instead), [`GpuOffload`] (one preparer's use of a GPU), [`GpuUse`] (that of all
//! preparers of a loader), [`GpuPreparers`] (makes them), `open` (opens a GPU for them).

mod batch;
mod factory;
mod offload;
mod open;
mod program;
mod refusal;
mod share;
mod usage;

pub use batch::{GpuBatch, GpuRefused, Taken};
pub use factory::{Computes, GpuPreparers};
pub use meetpoint_gpu::{Error as GpuError, GpuIndex, NotAGpu};
pub use offload::GpuOffload;
pub use refusal::{GpuFailure, NotOffloaded, NotTaken, OpenError};
pub use share::{NotAShare, ShareChoice};
pub use usage::GpuUse;
