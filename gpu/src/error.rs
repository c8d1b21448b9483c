//! Errors of GPUs.

use std::path::PathBuf;

/// Errors of GPUs.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This machine has no driver for GPUs.
    #[error("no NVIDIA driver: libcuda.so.1 was not found, or cannot be loaded")]
    NoDriver,
    /// The driver is older than the required version.
    #[error("the NVIDIA driver supports CUDA {found_major}.{found_minor}, 12.0 is needed")]
    OldDriver {
        /// Version of the driver.
        found_major: u32,
        /// Version of the driver.
        found_minor: u32,
    },
    /// There is no GPU with this index.
    #[error("no GPU with the index {index}: this process sees {count}")]
    NoDevice {
        /// The requested index.
        index: u32,
        /// Number of GPUs.
        count: u32,
    },
    /// The run-time compiler was not found.
    #[error("the CUDA run-time compiler (libnvrtc.so) was not found; looked for {names}")]
    NoCompiler {
        /// File names that were tried.
        names: String,
    },
    /// A kernel does not compile.
    #[error("the kernels of {module} do not compile for {architecture}: {log}")]
    Compile {
        /// The module of kernels.
        module: &'static str,
        /// The target architecture.
        architecture: String,
        /// The output of the compiler.
        log: String,
    },
    /// Not enough memory on the GPU.
    #[error("out of GPU memory: {bytes} more bytes are needed, {free} of {total} are free")]
    OutOfMemory {
        /// Bytes requested.
        bytes: u64,
        /// Free bytes on the GPU.
        free: u64,
        /// Total bytes on the GPU.
        total: u64,
    },
    /// Not enough page-locked memory.
    #[error("{bytes} bytes of page-locked host memory could not be allocated")]
    NoPinnedMemory {
        /// Bytes requested.
        bytes: u64,
    },
    /// Work on the GPU did not end in time.
    #[error("the GPU has not finished its work after {seconds} s")]
    Hung {
        /// Waiting time in seconds.
        seconds: f64,
    },
    /// A request to stop ended a wait for the GPU; the work continues.
    #[error("the wait for the GPU was ended by a request to stop")]
    Stopped,
    /// The process is a fork of the one that opened the GPU, in which CUDA does not work.
    #[error("the GPU was opened before this process was forked; CUDA does not work in the child")]
    Forked,
    /// The results of a kernel differ from those of the CPU.
    #[error("{gpu} gives wrong results: {what}")]
    WrongResults {
        /// Its name.
        gpu: String,
        /// The results that differ.
        what: String,
    },
    /// Any other failure of the driver. After a failure from which CUDA cannot recover, such as an
    /// illegal address, every further call returns the same one.
    #[error("{call}: {name} ({what})")]
    Driver {
        /// The function that was called.
        call: &'static str,
        /// CUDA's name of the error.
        name: String,
        /// CUDA's description of it.
        what: String,
    },
    /// The kernels for the CPU do not compile or run.
    #[error("{program}: {reason}")]
    Shim {
        /// Compiler or compiled program.
        program: PathBuf,
        /// What went wrong.
        reason: String,
    },
}

impl Error {
    /// Whether the only failure was a lack of memory. A later attempt may succeed.
    pub fn is_out_of_memory(&self) -> bool {
        match self {
            Self::OutOfMemory { .. } | Self::NoPinnedMemory { .. } => true,
            Self::NoDriver
            | Self::OldDriver { .. }
            | Self::NoDevice { .. }
            | Self::NoCompiler { .. }
            | Self::Compile { .. }
            | Self::Hung { .. }
            | Self::Stopped
            | Self::Forked
            | Self::WrongResults { .. }
            | Self::Driver { .. }
            | Self::Shim { .. } => false,
        }
    }
}
