//! The interface between the consumer of a batch and its preparer.

use crate::{BatchMemory, Error, Replacement};
use meetpoint_format::column::{BatchColumns, BatchLayout};
use meetpoint_kernels::Interrupt;
use meetpoint_storage::Counters;
use std::sync::Arc;

/// Called between stages and samples, and while waiting for reads, with the number of finished
/// samples; returning `false` abandons the batch.
pub type Pace<'a> = &'a mut dyn FnMut(u32) -> bool;

/// Prepares batches of a [`Job`](crate::Job) in one thread.
///
/// A batch is a function of the job, the epoch and the index alone: every implementation writes the
/// same bytes into any kind of memory, regardless of what it prepared before and whether that
/// failed.
pub trait Preparer: Send {
    /// Its name, such as that of its storage engine.
    fn name(&self) -> &str;

    /// The columns of its batches.
    fn columns(&self) -> &Arc<BatchColumns>;

    /// Sets the interrupt that ends [`Self::prepare`] with [`Error::Interrupted`], even within a
    /// sample.
    fn set_interrupt(&mut self, interrupt: Interrupt);

    /// Prepares a batch at the beginning of `memory`. After it returns, nothing writes to `memory`
    /// any more; an abandoned batch returns [`Error::Interrupted`].
    ///
    /// Damaged samples are handled according to [`Job::on_error`](crate::Job::on_error): an error,
    /// or [`PreparedBatch::replacements`]. Rows after a skipped sample move up.
    fn prepare(
        &mut self,
        epoch: u32,
        batch: u32,
        memory: &mut dyn BatchMemory,
        pace: Pace<'_>,
    ) -> Result<PreparedBatch, Error>;

    /// The counters of its storage engine.
    fn counters(&self) -> Counters;
}

/// A prepared batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedBatch {
    /// The positions of its columns.
    pub layout: BatchLayout,
    /// Its samples in batch order, including replacements, without skipped samples.
    pub samples: Vec<u64>,
    /// Damaged samples, by their positions.
    pub replacements: Vec<Replacement>,
    /// The costs of preparing it.
    pub stats: PrepareStats,
}

/// Times and bytes of one batch. Nanoseconds of wall time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PrepareStats {
    /// Samples prepared.
    pub samples: u32,
    /// Of these, damaged JPEGs whose missing data were filled in because the recipe is lenient.
    pub filled_in: u32,
    /// Of these, damaged samples that were skipped: the batch is shorter by their number.
    pub left_out: u32,
    /// Of these, damaged samples that were replaced.
    pub replaced: u32,
    /// Samples that were taken from an application cache.
    pub cached: u32,
    /// Encoded bytes read.
    pub bytes_read: u64,
    /// Time waiting for reads.
    pub read_wait_ns: u64,
    /// Time in kernels and checks.
    pub compute_ns: u64,
}
