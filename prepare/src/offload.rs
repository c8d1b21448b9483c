//! The interface to what prepares pictures of a batch outside of the preparer's thread: a GPU.

use crate::Error;
use meetpoint_kernels::{Encoded, Interrupt, SampleId};
use std::fmt::Debug;

/// Prepares some of the pictures of each batch of one preparer, to the bits of the CPU's kernels.
///
/// The preparer offers each sample as it is read. Those that are taken are prepared while the
/// preparer continues with the others; at the end of the batch it gets their tensors. What is not
/// taken, or fails, the preparer prepares itself: it also decides what a damaged sample becomes.
pub trait Offload: Send + Debug {
    /// What it runs on, such as the name of a GPU.
    fn name(&self) -> &str;

    /// Ends waits when it is raised.
    fn set_interrupt(&mut self, interrupt: Interrupt);

    /// Begins a batch of a number of samples; what the batch before left is dropped.
    fn begin(&mut self, samples: usize) -> Result<(), Error>;

    /// Takes a sample, whose bytes need not outlive the call, or leaves it to the caller: `false`.
    fn take(&mut self, position: usize, encoded: Encoded<'_>, id: SampleId) -> Result<bool, Error>;

    /// Called after each sample that the caller prepared itself, to note when the others are done.
    fn poll(&mut self);

    /// Ends the batch: writes the tensor of each sample that was taken to its position among
    /// `tensors`, which all have the same length, and returns the positions of those that the
    /// caller has to prepare, in ascending order.
    ///
    /// `own_ns` is the time that the caller spent on the samples it prepared meanwhile.
    fn finish(&mut self, tensors: Tensors<'_>, own_ns: u64) -> Result<Vec<usize>, Error>;

    /// What it has done so far.
    fn counts(&self) -> OffloadCounts;
}

/// The tensors of a batch, one after another.
#[derive(Debug)]
pub struct Tensors<'a> {
    /// All of them.
    pub bytes: &'a mut [u8],
    /// Bytes of each.
    pub each: usize,
}

/// What an [`Offload`] has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OffloadCounts {
    /// Samples that it prepared.
    pub prepared: u64,
    /// Samples that it left to the CPU because its share was full.
    pub beyond_share: u64,
    /// Samples that it cannot prepare: progressive JPEGs, other formats, operations that it lacks.
    pub not_taken: u64,
    /// Samples that it took and gave back, because their data are damaged.
    pub given_back: u64,
    /// Samples that it left to the CPU after a failure of its own.
    pub after_failure: u64,
    /// Samples that it left to the CPU because its memory was used up, and until it is tried again.
    pub out_of_memory: u64,
}
