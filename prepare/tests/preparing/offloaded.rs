//! Pictures that are prepared outside of the preparer.

use crate::support::shuffled;
use meetpoint_gpu::subject;
use meetpoint_kernels::{Cpu, Encoded, Error as KernelError, Interrupt, SampleId, SamplePreparer};
use meetpoint_prepare::gpu::{GpuBatch, GpuMemory, GpuOffload, ShareChoice};
use meetpoint_prepare::{CpuPreparer, Error, Finished, Job, Offload, OffloadCounts, Tensors};

/// A preparer that offloads some of the pictures, where it can.
pub(crate) fn offloading(job: &Job, offload: Box<dyn Offload>) -> CpuPreparer {
    let engine = shuffled(&job.dataset, 5, 4);
    let mut preparer = CpuPreparer::new(job.clone(), engine, Cpu::detect()).unwrap();
    if preparer.can_offload() {
        preparer.set_offload(offload);
    }
    preparer
}

/// The kernels of a GPU, for a share of each batch.
pub(crate) fn on_gpu(job: &Job, choice: ShareChoice) -> GpuOffload {
    on_gpu_within(job, choice, GpuMemory::default())
}

/// The same within a limit of memory.
pub(crate) fn on_gpu_within(job: &Job, choice: ShareChoice, memory: GpuMemory) -> GpuOffload {
    let compute = subject(env!("CARGO_TARGET_TMPDIR").as_ref()).unwrap();
    let columns = columns_of(job);
    GpuOffload::new(GpuBatch::new(compute, &job.recipe, &columns, memory).unwrap(), choice)
}

/// The columns of the recipe of a job, in the order of its batches.
pub(crate) fn columns_of(job: &Job) -> Vec<usize> {
    let index = |name: &String| job.recipe.images().iter().position(|it| it.column == *name);
    job.columns.iter().filter_map(index).collect()
}

/// Accepts two of three samples, and returns every second of them.
#[derive(Debug)]
pub(crate) struct PartialOffload {
    preparer: SamplePreparer,
    bytes: usize,
    taken: Vec<(usize, Option<Vec<u8>>)>,
    counts: OffloadCounts,
    /// Whether taking the fourth sample of a batch panics.
    panics: bool,
}

impl PartialOffload {
    pub(crate) fn new(job: &Job) -> Self {
        Self {
            preparer: SamplePreparer::new(&job.recipe, Cpu::Portable),
            bytes: job.recipe.output().unwrap().bytes(),
            taken: Vec::new(),
            counts: OffloadCounts::default(),
            panics: false,
        }
    }

    /// With a defect.
    pub(crate) fn panicking(job: &Job) -> Self {
        Self { panics: true, ..Self::new(job) }
    }
}

impl Offload for PartialOffload {
    fn name(&self) -> &str {
        "elsewhere"
    }

    fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.preparer.set_interrupt(interrupt);
    }

    fn begin(&mut self, _samples: usize, _may_stay: bool) -> Result<(), Error> {
        self.taken.clear();
        Ok(())
    }

    fn take(&mut self, position: usize, encoded: Encoded<'_>, id: SampleId) -> Result<bool, Error> {
        assert!(!self.panics || position != 3, "a defect");
        if position % 3 == 2 {
            self.counts.not_taken += 1;
            return Ok(false);
        }
        let mut tensor = vec![0; self.bytes];
        let prepared = self.preparer.prepare(encoded, id, &mut tensor, &mut || ());
        if matches!(prepared, Err(KernelError::Interrupted)) {
            return Err(Error::Interrupted);
        }
        // A damaged sample is detected later, as on a GPU.
        let prepared = prepared.is_ok() && self.taken.len().is_multiple_of(2);
        self.taken.push((position, prepared.then_some(tensor)));
        Ok(true)
    }

    fn poll(&mut self) {}

    fn finish(&mut self, columns: &mut [Tensors<'_>], _own_ns: u64) -> Result<Finished, Error> {
        let [tensors] = columns else { panic!("one column") };
        assert_eq!(tensors.each, self.bytes);
        let mut given_back = Vec::new();
        for (position, tensor) in self.taken.drain(..) {
            match tensor {
                Some(tensor) => {
                    tensors.bytes[position * self.bytes..][..self.bytes].copy_from_slice(&tensor);
                    self.counts.prepared += 1;
                }
                None => given_back.push(position),
            }
        }
        given_back.sort_unstable();
        self.counts.given_back += given_back.len() as u64;
        Ok(given_back.into())
    }

    fn counts(&self) -> OffloadCounts {
        self.counts
    }
}
