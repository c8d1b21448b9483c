//! Batches as pipeline jobs of a device.

use super::device::{Csx, CsxError, Input, JobCompletion, LegTotals, PipelineJob};
use super::emulated::EmulatedCsx;
use crate::csx_error::FunctionId;
use crate::{BatchMemory, Error, Job, Pace, PreparedBatch, Preparer, PreparerFactory, Resources};
use meetpoint_format::column::BatchColumns;
use meetpoint_kernels::Interrupt;
use meetpoint_storage::Counters;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Prepares batches by jobs of a device.
pub struct CsxPreparer {
    name: String,
    device: Box<dyn Csx>,
    job: Job,
    columns: Arc<BatchColumns>,
    totals: Arc<Mutex<LegTotals>>,
}

impl CsxPreparer {
    /// A preparer of `job` on a device that was created for it. Adds the legs of pipeline jobs to
    /// `totals`.
    pub fn new(
        device: Box<dyn Csx>,
        job: Job,
        totals: Arc<Mutex<LegTotals>>,
    ) -> Result<Self, Error> {
        let columns = Arc::new(job.batch_columns()?);
        let name = format!("CSx {}", device.properties().name);
        Ok(Self { name, device, job, columns, totals })
    }
}

/// The pipeline job of a batch: loads its samples and executes the recipe on them. If the content
/// of the dataset is in other files or in a store, nothing is loaded: the function reads it.
pub fn pipeline_job(
    job: &Job,
    epoch: u32,
    batch: u32,
    output_bytes_max: u64,
) -> Result<PipelineJob, Error> {
    let batching = &job.batching;
    let batches = batching.batches();
    if u64::from(batch) >= batches {
        return Err(Error::NoSuchBatch { batch, batches });
    }
    let dataset = &job.dataset;
    let order = batching.order(epoch);
    let mut inputs = Vec::new();
    if dataset.content_root().is_none() && !dataset.is_remote() {
        for sample in batching.samples_of(&order, batch) {
            let location = dataset.locate(sample)?;
            let ranges = dataset.storage_ranges(location.part, location.offset, location.bytes);
            inputs.extend(ranges.into_iter().map(|(source, range)| Input {
                source,
                offset: range.offset,
                bytes: range.bytes,
            }));
        }
        // A sample may occur several times in a batch, and is loaded once.
        let mut known = HashSet::new();
        inputs.retain(|input: &Input| input.bytes > 0 && known.insert(input.clone()));
    }
    let (function, seed) = (FunctionId(job.recipe.hash()), batching.seed());
    Ok(PipelineJob { inputs, function, seed, epoch, batch, output_bytes_max })
}

impl Preparer for CsxPreparer {
    fn name(&self) -> &str {
        &self.name
    }

    fn columns(&self) -> &Arc<BatchColumns> {
        &self.columns
    }

    fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.device.set_interrupt(interrupt);
    }

    fn prepare(
        &mut self,
        epoch: u32,
        batch: u32,
        memory: &mut dyn BatchMemory,
        pace: Pace<'_>,
    ) -> Result<PreparedBatch, Error> {
        let job = pipeline_job(&self.job, epoch, batch, memory.bytes_mut().len() as u64)?;
        let JobCompletion { prepared, legs } =
            self.device.run(&job, memory, pace).map_err(|error| match error {
                CsxError::Function(error) => *error,
                CsxError::Storage(error) => error.into(),
                CsxError::Refused(refusal) => Error::Csx(refusal),
            })?;
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        totals.load += legs.load;
        totals.compute += legs.compute;
        totals.copy += legs.copy;
        Ok(prepared)
    }

    fn counters(&self) -> Counters {
        self.device.counters()
    }
}

/// Creates preparers, each of which drives an emulated device.
#[derive(Debug)]
pub struct EmulatedCsxPreparers {
    memory_bytes: u64,
    totals: Arc<Mutex<LegTotals>>,
}

impl EmulatedCsxPreparers {
    /// For devices with `memory_bytes` bytes of memory each.
    pub fn new(memory_bytes: u64) -> Self {
        Self { memory_bytes, totals: Arc::default() }
    }

    /// The legs of all jobs so far.
    pub fn totals(&self) -> LegTotals {
        *self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PreparerFactory for EmulatedCsxPreparers {
    fn preparer(&self, job: &Job, resources: Resources) -> Result<Box<dyn Preparer>, Error> {
        let device = EmulatedCsx::new(job, resources, self.memory_bytes)?;
        let totals = Arc::clone(&self.totals);
        Ok(Box::new(CsxPreparer::new(Box::new(device), job.clone(), totals)?))
    }
}
