//! The interface to a processor that prepares pictures outside of the preparer's thread: a GPU.

use crate::Error;
use meetpoint_gpu::resident::ResidentTensors;
use meetpoint_kernels::{Encoded, Interrupt, SampleId};
use std::fmt::Debug;

/// Prepares some of the pictures of each batch of one preparer, bit-identically to the CPU's
/// kernels.
///
/// The preparer offers each sample as it is read. Those that are taken are prepared while the
/// preparer continues with the others; at the end of the batch it receives their tensors. The
/// preparer itself prepares samples that are not taken or that fail, and also decides how a damaged
/// sample is handled.
pub trait Offload: Send + Debug {
    /// The processor, such as the name of a GPU.
    fn name(&self) -> &str;

    /// Sets the interrupt that ends waits.
    fn set_interrupt(&mut self, interrupt: Interrupt);

    /// Begins a batch of a number of samples and drops any results of the previous one. With
    /// `may_stay`, tensors may stay where they are prepared.
    fn begin(&mut self, samples: usize, may_stay: bool) -> Result<(), Error>;

    /// Takes a sample, whose bytes need not outlive the call, with all of its pictures; `false`
    /// leaves it to the caller.
    fn take(&mut self, position: usize, encoded: Encoded<'_>, id: SampleId) -> Result<bool, Error>;

    /// Called after each sample that the caller prepared itself, to record when the others are
    /// done.
    fn poll(&mut self);

    /// Ends the batch: writes the tensors of each taken sample to its position in each column of
    /// pictures, unless they stay where they were prepared.
    ///
    /// `own_ns` is the time that the caller spent on the samples that it prepared itself.
    fn finish(&mut self, columns: &mut [Tensors<'_>], own_ns: u64) -> Result<Finished, Error>;

    /// Its counts so far.
    fn counts(&self) -> OffloadCounts;
}

/// The tensors of a column of a batch, sample by sample.
#[derive(Debug)]
pub struct Tensors<'a> {
    /// All of them.
    pub bytes: &'a mut [u8],
    /// Bytes of those of a sample.
    pub each: usize,
}

/// The result of a batch of an [`Offload`].
#[derive(Debug, Default)]
pub struct Finished {
    /// Positions of samples that the caller has to prepare, in ascending order.
    pub given_back: Vec<usize>,
    /// Tensors that stayed where they were prepared. There is one column then.
    pub resident: Option<ResidentTensors>,
}

impl From<Vec<usize>> for Finished {
    fn from(given_back: Vec<usize>) -> Self {
        Self { given_back, resident: None }
    }
}

/// Counts of an [`Offload`] since it was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OffloadCounts {
    /// Samples that it prepared.
    pub prepared: u64,
    /// Of these, samples whose tensors stayed where they were prepared.
    pub resident: u64,
    /// Samples that it left to the CPU because its share was full.
    pub beyond_share: u64,
    /// Samples that it cannot prepare: progressive JPEGs, other formats, operations that it lacks.
    pub not_taken: u64,
    /// Samples that it took and returned because their data are damaged.
    pub given_back: u64,
    /// Samples that it left to the CPU after it failed.
    pub after_failure: u64,
    /// Samples left to the CPU because it ran out of memory, including those before the next
    /// attempt to use it.
    pub out_of_memory: u64,
}
