//! Options and progress of operations on datasets.

use crate::writer::PART_BYTES_TARGET;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How an operation writes its result.
#[derive(Debug, Clone)]
pub struct CopyOptions {
    /// Replace a dataset at the destination.
    pub force: bool,
    /// Bytes after which the next part begins.
    pub part_bytes_target: u64,
    /// Maximum number of bytes of rows in memory at once; a single row may be larger.
    pub memory_bytes: u64,
    /// Threads that read; 0 for one per processor.
    pub threads: usize,
    /// Resume an interrupted run of the same operation, and retain complete parts if this run is
    /// interrupted.
    pub resume: bool,
    /// Set by the caller to stop; without `resume`, nothing is retained.
    pub stop: Arc<AtomicBool>,
}

impl Default for CopyOptions {
    fn default() -> Self {
        Self {
            force: false,
            part_bytes_target: PART_BYTES_TARGET,
            memory_bytes: 256 << 20,
            threads: 0,
            resume: false,
            stop: Arc::default(),
        }
    }
}

/// Progress of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Number of finished samples.
    pub samples_done: u64,
    /// Number of all samples.
    pub samples: u64,
    /// Bytes of the content of finished samples.
    pub bytes_done: u64,
}
