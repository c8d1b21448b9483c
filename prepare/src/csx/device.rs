//! The interface of a device with primitive requests.

use crate::csx_error::{CsxRefusal, FunctionId};
use crate::{BatchMemory, Error, Pace, PreparedBatch};
use meetpoint_kernels::Interrupt;
use meetpoint_storage::Counters;
use serde::Serialize;
use std::ops::AddAssign;
use std::path::PathBuf;

/// Memory of the device that is allocated to this host (AFDM).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Afdm {
    /// Number of the allocation.
    pub id: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// The properties of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsxProperties {
    /// Its name.
    pub name: String,
    /// Bytes of its function data memory.
    pub memory_bytes: u64,
    /// The functions that it can execute.
    pub functions: Vec<FunctionId>,
}

/// A range of storage that a job reads: an extent of a block device, or of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Input {
    /// The block device or the file.
    pub source: PathBuf,
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// A job: one batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineJob {
    /// The ranges to load, each with one request.
    pub inputs: Vec<Input>,
    /// The function to execute on them.
    pub function: FunctionId,
    /// Seed of the random parameters.
    pub seed: u64,
    /// Epoch.
    pub epoch: u32,
    /// Batch of the epoch.
    pub batch: u32,
    /// Maximum bytes of the result.
    pub output_bytes_max: u64,
}

/// A leg of a job: its bytes, and the device's time for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Leg {
    /// Bytes read from storage, computed, or copied.
    pub bytes: u64,
    /// Time on the device, in nanoseconds.
    pub device_ns: u64,
}

impl AddAssign for Leg {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.device_ns += other.device_ns;
    }
}

/// The sums of the legs of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LegTotals {
    /// From storage to the device's memory.
    pub load: Leg,
    /// Execution; its bytes are those of results.
    pub compute: Leg,
    /// From the device's memory to the host's.
    pub copy: Leg,
}

/// A completed job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobCompletion {
    /// The prepared batch.
    pub prepared: PreparedBatch,
    /// Bytes and time of each leg.
    pub legs: LegTotals,
}

/// The result of a compute request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Computed {
    /// The batch in the memory of the output.
    pub prepared: PreparedBatch,
    /// Bytes and time of the computation. The bytes are those of the result.
    pub compute: Leg,
    /// Ranges that the function itself loaded, such as replacements of damaged samples.
    pub load: Leg,
}

/// A failed request.
#[derive(Debug, thiserror::Error)]
pub enum CsxError {
    /// The device refused it.
    #[error(transparent)]
    Refused(#[from] CsxRefusal),
    /// A range of storage that the device cannot read, or does not have.
    #[error(transparent)]
    Storage(#[from] meetpoint_storage::Error),
    /// The function failed, or was cancelled ([`Error::Interrupted`]).
    #[error(transparent)]
    Function(Box<Error>),
}

/// A computational storage device (CSx), driven by one thread. Every request is complete when its
/// call returns.
pub trait Csx: Send {
    /// The properties of the device.
    fn properties(&self) -> CsxProperties;

    /// Allocates memory.
    fn allocate(&mut self, bytes: u64) -> Result<Afdm, CsxError>;

    /// Frees memory; nothing happens if it is not allocated.
    fn free(&mut self, memory: Afdm);

    /// Storage request: fills the beginning of `memory` with a range of storage.
    fn load(&mut self, input: &Input, memory: Afdm) -> Result<Leg, CsxError>;

    /// Compute request: executes the function of a job on its inputs, each with the memory into
    /// which it was loaded. `pace` can cancel it.
    fn compute(
        &mut self,
        job: &PipelineJob,
        inputs: &[(Input, Afdm)],
        output: Afdm,
        pace: Pace<'_>,
    ) -> Result<Computed, CsxError>;

    /// Copy request: copies the beginning of `memory` to the host.
    fn copy(&mut self, memory: Afdm, into: &mut [u8]) -> Result<Leg, CsxError>;

    /// Its reads from storage since it was opened.
    fn counters(&self) -> Counters;

    /// Sets the interrupt that cancels a compute request, even within a sample.
    fn set_interrupt(&mut self, interrupt: Interrupt);

    /// Executes a job: a serial batch request of loads, one compute request and one copy request.
    /// Frees all memory that it allocated, also after an error. A device that accepts whole jobs
    /// overrides this function.
    fn run(
        &mut self,
        job: &PipelineJob,
        memory: &mut dyn BatchMemory,
        pace: Pace<'_>,
    ) -> Result<JobCompletion, CsxError> {
        let mut allocated = Vec::with_capacity(job.inputs.len() + 1);
        let done = lower(self, job, memory, pace, &mut allocated);
        allocated.into_iter().for_each(|memory| self.free(memory));
        done
    }
}

/// The requests of a job, in order. `allocated` receives the memory to free.
fn lower<D: Csx + ?Sized>(
    device: &mut D,
    job: &PipelineJob,
    memory: &mut dyn BatchMemory,
    pace: Pace<'_>,
    allocated: &mut Vec<Afdm>,
) -> Result<JobCompletion, CsxError> {
    let mut legs = LegTotals::default();
    let output = device.allocate(job.output_bytes_max)?;
    allocated.push(output);
    let mut inputs = Vec::with_capacity(job.inputs.len());
    for input in &job.inputs {
        if !pace(0) {
            return Err(CsxError::Function(Box::new(Error::Interrupted)));
        }
        let loaded = device.allocate(input.bytes)?;
        allocated.push(loaded);
        match device.load(input, loaded) {
            Ok(leg) => {
                legs.load += leg;
                inputs.push((input.clone(), loaded));
            }
            // The function requests the range again, and its error names the sample.
            Err(CsxError::Storage(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let Computed { prepared, compute, load } = device.compute(job, &inputs, output, pace)?;
    legs.compute += compute;
    legs.load += load;
    let needed = usize::try_from(prepared.layout.bytes()).expect("it is in memory");
    if needed > memory.bytes_mut().len() && !memory.grow(needed) {
        let got = memory.bytes_mut().len();
        return Err(CsxError::Function(Box::new(Error::OutputTooSmall { got, needed })));
    }
    legs.copy += device.copy(output, &mut memory.bytes_mut()[..needed])?;
    Ok(JobCompletion { prepared, legs })
}
