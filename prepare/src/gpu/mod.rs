//! Pictures of a batch prepared on a GPU: JPEGs decoded there, and the recipe executed there.
//!
//! In reading order: `share` (which share of a batch goes to the GPU), `program` (what a recipe
//! does to a sample, as the GPU takes it), [`GpuBatch`] (the pictures of one batch), [`GpuOffload`]
//! (one preparer's use of a GPU).

mod batch;
mod offload;
mod program;
mod share;

pub use batch::{GpuBatch, GpuRefused, Taken};
pub use offload::GpuOffload;
pub use share::{NotAShare, ShareChoice};
