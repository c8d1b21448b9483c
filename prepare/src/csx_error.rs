//! Why a device refuses a request.

use meetpoint_diagnose::{Change, Diagnose, Remedy, Setting};
use meetpoint_format::recipe::RecipeHash;

/// A function of a device (CSF): a recipe, by its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FunctionId(pub RecipeHash);

/// A refused request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CsxRefusal {
    /// The memory of the device is full.
    #[error("the device has {free} bytes of function data memory left, {needed} are needed")]
    NoMemory {
        /// Bytes needed.
        needed: u64,
        /// Bytes left.
        free: u64,
    },
    /// A range that was not allocated, or was freed.
    #[error("no memory of the device is allocated under number {id}")]
    NotAllocated {
        /// Number of the allocation.
        id: u64,
    },
    /// A request that exceeds its memory.
    #[error("a request of {bytes} bytes exceeds the allocated {allocated} bytes")]
    TooLong {
        /// Bytes of the request.
        bytes: u64,
        /// Bytes allocated.
        allocated: u64,
    },
    /// A function that the device does not have.
    #[error("the device has no function {}", function.0)]
    UnknownFunction {
        /// The function.
        function: FunctionId,
    },
    /// A job with another seed than that of the function.
    #[error("the function of the device has seed {own}, the job has {asked}")]
    OtherSeed {
        /// Seed of the function.
        own: u64,
        /// Seed of the job.
        asked: u64,
    },
}

impl Diagnose for CsxRefusal {
    fn cause(&self) -> &'static str {
        match self {
            Self::NoMemory { .. } => "device_memory_full",
            Self::NotAllocated { .. } => "device_memory_not_allocated",
            Self::TooLong { .. } => "device_memory_too_short",
            Self::UnknownFunction { .. } => "unknown_function",
            Self::OtherSeed { .. } => "other_seed",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::NoMemory { .. } => Some(
                Remedy::set(Setting::BatchSize, Change::Lower)
                    .or("give the device more function data memory"),
            ),
            // Errors of the caller's code.
            Self::NotAllocated { .. }
            | Self::TooLong { .. }
            | Self::UnknownFunction { .. }
            | Self::OtherSeed { .. } => None,
        }
    }
}
