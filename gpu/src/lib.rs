//! Decodes JPEGs and executes recipes on a GPU, with results bit-identical to the CPU's kernels.
//!
//! Kernels are CUDA C++ in the folder `cuda`, compiled when they are first used. They run on a
//! [`Compute`]: an NVIDIA GPU (feature `cuda`), or the CPU, for which the tests compile the same
//! kernels (feature `shim`). This crate does not open datasets or parse recipes.
//!
//! In reading order: [`GpuIndex`] (which GPU), [`Compute`] (memory, copies, launches),
//! [`buffer`] (memory that grows within a limit), [`Module`] (kernels and their sources), `cuda`
//! (an NVIDIA GPU), `shim` (the CPU), `subject` (which of them tests use), `hooked` (a device whose
//! calls a test observes), [`PictureDescriptor`] (a picture on a device), [`jpeg`] (decoding),
//! [`pictures`] (recipes executed on pictures), [`resident`] (tensors that stay on the device),
//! [`delivery`] (batches delivered to a GPU).

pub mod buffer;
mod compute;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod delivery;
mod diagnose;
mod error;
#[cfg(feature = "shim")]
mod hooked;
mod index;
pub mod jpeg;
mod module;
mod picture;
pub mod pictures;
pub mod resident;
#[cfg(feature = "shim")]
mod shim;
#[cfg(feature = "shim")]
mod subject;

pub use compute::{
    ASK_EVERY, Argument, Compute, DeviceMemory, Fence, HostMemory, Launch, PageLock,
};
pub use error::Error;
#[cfg(feature = "shim")]
pub use hooked::{Hooked, Hooks};
pub use index::{GpuIndex, NotAGpu};
pub use module::{KernelName, MODULES, Module};
pub use picture::PictureDescriptor;
#[cfg(feature = "shim")]
pub use shim::Shim;
#[cfg(feature = "shim")]
pub use subject::{TEST_GPU, subject};
