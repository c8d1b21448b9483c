//! An NVIDIA GPU as a [`Compute`](crate::Compute).
//!
//! Neither the driver nor the run-time compiler (NVRTC) is linked: both are loaded by the first
//! [`Gpu::open`], and a machine without them gets a typed [`Error`](crate::Error).
//!
//! In reading order: [`Options`], `driver` (the library and its error codes), `context` (one GPU in
//! one process: fork, failures, counters), `memory`, [`Event`], `regular` (opens files),
//! `nvrtc` (finds the compiler),
//! `cache` (compiled kernels on disk), `kernels` (compiles and loads), [`Gpu`], `shared` (each GPU
//! is opened once), [`CudaCompute`], `self_test`, `streams` (the streams of others).

mod cache;
mod compute;
mod context;
mod driver;
mod event;
mod gpu;
mod kernels;
mod memory;
mod nvrtc;
mod options;
mod regular;
mod self_test;
mod shared;
mod streams;

pub use compute::{CudaCompute, Download};
pub use context::Allocated;
pub use driver::{Driver, Version};
pub use event::Event;
pub use gpu::{Gpu, GpuInfo};
pub use nvrtc::CompilerInfo;
pub use options::Options;
pub use streams::CudaConsumers;
