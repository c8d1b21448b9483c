//! A device in this process: memory of a fixed size, and functions that the CPU executes.

use super::device::{Afdm, Computed, Csx, CsxError, CsxProperties, Input, Leg, PipelineJob};
use super::engine::{FunctionEngine, Shared, lock};
use crate::csx_error::{CsxRefusal, FunctionId};
use crate::factory::CpuPreparers;
use crate::{BatchMemory, Error, Job, MemoryKind, Pace, Preparer, PreparerFactory, Resources};
use meetpoint_kernels::Interrupt;
use meetpoint_storage::Counters;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// An emulated device for the batches of one job.
pub struct EmulatedCsx {
    function: FunctionId,
    seed: u64,
    capacity: u64,
    used: u64,
    next_id: u64,
    shared: Arc<Mutex<Shared>>,
    executor: Box<dyn Preparer>,
}

/// Memory of the device that receives the result of a function.
struct Output {
    bytes: Vec<u8>,
}

impl BatchMemory for Output {
    fn kind(&self) -> MemoryKind {
        MemoryKind::Host
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl EmulatedCsx {
    /// A device with `memory_bytes` bytes of memory that executes the recipe of a job and reads
    /// storage through `resources.engine`.
    pub fn new(job: &Job, resources: Resources, memory_bytes: u64) -> Result<Self, Error> {
        let Resources { engine, decode_memory, cache } = resources;
        let shared = Arc::new(Mutex::new(Shared::new(engine)));
        let engine = Box::new(FunctionEngine::new(Arc::clone(&shared)));
        let resources = Resources { engine, decode_memory, cache };
        Ok(Self {
            function: FunctionId(job.recipe.hash()),
            seed: job.batching.seed(),
            capacity: memory_bytes,
            used: 0,
            next_id: 0,
            shared,
            executor: CpuPreparers::default().preparer(job, resources)?,
        })
    }

    /// Bytes of memory that are allocated.
    pub fn used(&self) -> u64 {
        self.used
    }
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Fails if a request exceeds its memory.
fn check_fits(bytes: u64, memory: Afdm) -> Result<(), CsxRefusal> {
    match bytes <= memory.bytes {
        true => Ok(()),
        false => Err(CsxRefusal::TooLong { bytes, allocated: memory.bytes }),
    }
}

impl Csx for EmulatedCsx {
    fn properties(&self) -> CsxProperties {
        CsxProperties {
            name: "emulated".to_owned(),
            memory_bytes: self.capacity,
            functions: vec![self.function],
        }
    }

    fn allocate(&mut self, bytes: u64) -> Result<Afdm, CsxError> {
        let free = self.capacity - self.used;
        let length = usize::try_from(bytes).ok().filter(|_| bytes <= free);
        let length = length.ok_or(CsxRefusal::NoMemory { needed: bytes, free })?;
        let id = self.next_id;
        self.next_id += 1;
        self.used += bytes;
        lock(&self.shared).memory.insert(id, Some(vec![0; length]));
        Ok(Afdm { id, bytes })
    }

    fn free(&mut self, memory: Afdm) {
        if lock(&self.shared).memory.remove(&memory.id).is_some() {
            self.used -= memory.bytes;
        }
    }

    fn load(&mut self, input: &Input, memory: Afdm) -> Result<Leg, CsxError> {
        let started = Instant::now();
        check_fits(input.bytes, memory)?;
        let mut shared = lock(&self.shared);
        if !shared.memory.contains_key(&memory.id) {
            return Err(CsxRefusal::NotAllocated { id: memory.id }.into());
        }
        let bytes = shared.load(input)?;
        let held = shared.memory.get_mut(&memory.id).and_then(Option::as_mut);
        let held = held.ok_or(CsxRefusal::NotAllocated { id: memory.id })?;
        held[..bytes.len()].copy_from_slice(&bytes);
        Ok(Leg { bytes: input.bytes, device_ns: nanoseconds(started) })
    }

    fn compute(
        &mut self,
        job: &PipelineJob,
        inputs: &[(Input, Afdm)],
        output: Afdm,
        pace: Pace<'_>,
    ) -> Result<Computed, CsxError> {
        let started = Instant::now();
        if job.function != self.function {
            return Err(CsxRefusal::UnknownFunction { function: job.function }.into());
        }
        if job.seed != self.seed {
            return Err(CsxRefusal::OtherSeed { own: self.seed, asked: job.seed }.into());
        }
        let missing = |id| CsxRefusal::NotAllocated { id };
        let bytes = {
            let mut shared = lock(&self.shared);
            for (input, memory) in inputs {
                check_fits(input.bytes, *memory)?;
                let held = shared.memory.get(&memory.id).is_some_and(Option::is_some);
                if !held || memory.id == output.id {
                    return Err(missing(memory.id).into());
                }
            }
            let taken = shared.memory.get_mut(&output.id).and_then(Option::take);
            shared.loaded = inputs.iter().map(|(it, memory)| (it.clone(), memory.id)).collect();
            shared.read_by_function = 0;
            taken.ok_or_else(|| missing(output.id))?
        };
        let mut memory = Output { bytes };
        let done = self.executor.prepare(job.epoch, job.batch, &mut memory, pace);
        let mut shared = lock(&self.shared);
        shared.memory.insert(output.id, Some(memory.bytes));
        shared.loaded.clear();
        let prepared = done.map_err(|error| CsxError::Function(Box::new(error)))?;
        let compute = Leg { bytes: prepared.layout.bytes(), device_ns: nanoseconds(started) };
        let load = Leg { bytes: shared.read_by_function, device_ns: 0 };
        Ok(Computed { prepared, compute, load })
    }

    fn copy(&mut self, memory: Afdm, into: &mut [u8]) -> Result<Leg, CsxError> {
        let started = Instant::now();
        let bytes = into.len() as u64;
        check_fits(bytes, memory)?;
        let shared = lock(&self.shared);
        let held = shared.memory.get(&memory.id).and_then(Option::as_ref);
        let held = held.ok_or(CsxRefusal::NotAllocated { id: memory.id })?;
        into.copy_from_slice(&held[..into.len()]);
        Ok(Leg { bytes, device_ns: nanoseconds(started) })
    }

    fn counters(&self) -> Counters {
        self.executor.counters()
    }

    fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.executor.set_interrupt(interrupt);
    }
}
