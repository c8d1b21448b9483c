//! What can go wrong with a GPU.

use std::path::PathBuf;

/// What can go wrong with a GPU.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This machine has no driver for GPUs.
    #[error("no NVIDIA driver: libcuda.so.1 was not found")]
    NoDriver,
    /// The driver is older than what the program needs.
    #[error("the NVIDIA driver supports CUDA {found_major}.{found_minor}, 12.0 is needed")]
    OldDriver {
        /// Of the driver.
        found_major: u32,
        /// Of the driver.
        found_minor: u32,
    },
    /// There is no GPU with this number.
    #[error("no GPU with the index {index}: this process sees {count}")]
    NoDevice {
        /// The wanted one.
        index: u32,
        /// How many there are.
        count: u32,
    },
    /// The run-time compiler was not found.
    #[error("the CUDA run-time compiler (libnvrtc.so) was not found; looked for {names}")]
    NoCompiler {
        /// Names that were tried.
        names: String,
    },
    /// A kernel does not compile.
    #[error("the kernels of {module} do not compile for {architecture}: {log}")]
    Compile {
        /// Which kernels.
        module: &'static str,
        /// For which GPU.
        architecture: String,
        /// What the compiler says.
        log: String,
    },
    /// Not enough memory on the GPU.
    #[error("out of GPU memory: {bytes} more bytes are needed, {free} of {total} are free")]
    OutOfMemory {
        /// Of the request.
        bytes: u64,
        /// Free on the GPU.
        free: u64,
        /// On the GPU.
        total: u64,
    },
    /// Not enough memory that can be locked.
    #[error("{bytes} bytes of page-locked host memory could not be allocated")]
    NoPinnedMemory {
        /// Of the request.
        bytes: u64,
    },
    /// Work on the GPU did not end in time.
    #[error("the GPU has not finished its work after {seconds} s")]
    Hung {
        /// How long it was waited for.
        seconds: f64,
    },
    /// A wait for the GPU was ended by a request to stop; the work goes on.
    #[error("the wait for the GPU was ended by a request to stop")]
    Stopped,
    /// The process is a fork of the one that opened the GPU, in which CUDA does not work.
    #[error("the GPU was opened before this process was forked; CUDA does not work in the child")]
    Forked,
    /// A kernel ran and gave results that are not those of the CPU.
    #[error("{gpu} gives wrong results: {what}")]
    WrongResults {
        /// Its name.
        gpu: String,
        /// Which ones.
        what: String,
    },
    /// Any other failure of the driver. After those that CUDA does not recover from, such as an
    /// illegal address, every further call returns the same one.
    #[error("{call}: {name} ({what})")]
    Driver {
        /// What was called.
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
    /// Whether memory was lacking, which may be free later: nothing else has failed.
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
