//! Tensors that stay on the device between their preparation and the delivery of their batch.
//!
//! A batch borrows memory of a [`TensorPool`] and returns it when it is dropped, in any thread.
//! Memory is overwritten only after the work that used it: the device waits for that work, the host
//! does not. The pool never exceeds its limit. Once it has memory for as many batches as exist at a
//! time, it allocates no more.

use crate::{Compute, DeviceMemory, Error, Fence};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Memory for tensors, shared by all preparers of a loader.
#[derive(Debug)]
pub struct TensorPool {
    limit_bytes: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// In the order of return.
    free: VecDeque<Free>,
    usage: PoolUsage,
}

#[derive(Debug)]
struct Free {
    memory: DeviceMemory,
    /// Work that must end before it is overwritten.
    after: Vec<Fence>,
}

/// Statistics of the memory of a [`TensorPool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolUsage {
    /// Bytes allocated, borrowed or not.
    pub bytes: u64,
    /// Peak of `bytes`.
    pub bytes_max: u64,
    /// Number of allocations.
    pub allocations: u64,
}

impl TensorPool {
    /// An empty pool with a limit in bytes.
    pub fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, state: Mutex::default() }
    }

    /// The limit in bytes.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Its statistics so far.
    pub fn usage(&self) -> PoolUsage {
        self.lock().usage
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while it is held leaves the state consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Borrows memory of at least `bytes` bytes, which later work of `compute` may overwrite;
    /// `None` if batches have borrowed too much of the limit.
    pub fn take(
        self: &Arc<Self>,
        bytes: usize,
        compute: &mut dyn Compute,
    ) -> Result<Option<TensorMemory>, Error> {
        let mut state = self.lock();
        if let Some(at) = state.free.iter().position(|free| free.memory.bytes() >= bytes) {
            let Free { memory, after } = state.free.remove(at).expect("it was just found");
            drop(state);
            let lent = TensorMemory::new(memory, after.clone(), self);
            after.iter().try_for_each(|fence| compute.wait_for_fence(fence))?;
            return Ok(Some(lent));
        }
        // Memory that is too small is freed to make room. Freeing it waits for the work on it.
        let room = |state: &State| self.limit_bytes.saturating_sub(state.usage.bytes);
        while room(&state) < bytes as u64
            && let Some(Free { memory, .. }) = state.free.pop_front()
        {
            state.usage.bytes -= memory.bytes() as u64;
        }
        let room = usize::try_from(room(&state)).unwrap_or(usize::MAX);
        if room < bytes {
            return Ok(None);
        }
        // The number of tensors that the GPU prepares varies from batch to batch.
        let wanted = bytes.saturating_add(bytes / 4).min(room);
        let usage = &mut state.usage;
        usage.bytes += wanted as u64;
        usage.bytes_max = usage.bytes_max.max(usage.bytes);
        usage.allocations += 1;
        drop(state);
        let allocated = compute.allocate(wanted).inspect_err(|_| {
            let usage = &mut self.lock().usage;
            usage.bytes -= wanted as u64;
            usage.allocations -= 1;
        });
        Ok(Some(TensorMemory::new(allocated?, Vec::new(), self)))
    }
}

/// Memory that is borrowed from a [`TensorPool`] and returned when this is dropped.
#[derive(Debug)]
pub struct TensorMemory {
    /// `None` only while it is dropped.
    memory: Option<DeviceMemory>,
    /// Work that must end before it is overwritten; `None` if that is not known.
    after: Mutex<Option<Vec<Fence>>>,
    pool: Arc<TensorPool>,
}

impl TensorMemory {
    fn new(memory: DeviceMemory, after: Vec<Fence>, pool: &Arc<TensorPool>) -> Self {
        let (memory, pool) = (Some(memory), Arc::clone(pool));
        Self { memory, after: Mutex::new(Some(after)), pool }
    }

    /// The memory.
    pub fn memory(&self) -> &DeviceMemory {
        self.memory.as_ref().expect("it has memory until it is dropped")
    }

    /// Records that the work so far of the `compute` that borrowed it overwrites it. Returns a
    /// fence at the end of this work.
    pub fn written_by(&self, compute: &mut (impl Compute + ?Sized)) -> Result<Fence, Error> {
        let fence = compute.fence();
        // The work waited for all earlier work on the memory.
        *self.lock() = fence.as_ref().ok().map(|fence| vec![fence.clone()]);
        fence
    }

    /// Records that the work so far of a `compute` reads it.
    fn read_by(&self, compute: &mut (impl Compute + ?Sized)) {
        let fence = compute.fence();
        let mut after = self.lock();
        match fence {
            Ok(fence) => after.iter_mut().for_each(|after| after.push(fence.clone())),
            Err(_) => *after = None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Fence>>> {
        self.after.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TensorMemory {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else { return };
        match self.lock().take() {
            Some(after) => self.pool.lock().free.push_back(Free { memory, after }),
            // Work of a device that failed may still use it, so it is never reused or freed.
            None => std::mem::forget(memory),
        }
    }
}

/// Tensors of some of the samples of a batch, on a device.
#[derive(Debug)]
pub struct ResidentTensors {
    memory: TensorMemory,
    /// After it, they are complete.
    ready: Fence,
    columns: Vec<ResidentColumn>,
    runs: Vec<Run>,
}

/// The tensors of a column of pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResidentColumn {
    /// Offset of the first tensor in the memory.
    pub offset: usize,
    /// Bytes of the tensors of a sample.
    pub sample_bytes: usize,
}

/// A column of [`ResidentTensors`].
#[derive(Debug, Clone, Copy)]
pub struct ResidentPart<'a> {
    tensors: &'a ResidentTensors,
    column: ResidentColumn,
}

/// Consecutive samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    /// Position of the first one in the batch.
    position: usize,
    /// Index of the first one in the memory.
    index: usize,
    count: usize,
}

impl ResidentTensors {
    /// The tensors of the samples at these positions of a batch, in ascending order, each at the
    /// same index in each column; complete after `ready`.
    pub fn new(
        memory: TensorMemory,
        ready: Fence,
        columns: Vec<ResidentColumn>,
        positions: impl IntoIterator<Item = usize>,
    ) -> Self {
        let runs = runs(positions.into_iter().map(|position| (position, position)));
        Self { memory, ready, columns, runs }
    }

    /// The tensors of a column, by its index among the columns of pictures of the batch.
    ///
    /// # Panics
    ///
    /// If there is no such column.
    pub fn column(&self, index: usize) -> ResidentPart<'_> {
        ResidentPart { tensors: self, column: self.columns[index] }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.runs.iter().map(|run| run.count).sum()
    }

    /// Removes all samples from the batch except those at the positions `kept`, which are in
    /// ascending order; later samples move up.
    pub fn close_up(&mut self, kept: &[usize]) {
        let index_of = |position: usize| {
            let run = self.runs.iter().find(|run| run.range().contains(&position))?;
            Some(run.index + position - run.position)
        };
        let kept = kept.iter().enumerate();
        self.runs = runs(kept.filter_map(|(to, from)| Some((to, index_of(*from)?))));
    }
}

impl ResidentPart<'_> {
    /// The ranges of tensors that are not on the device, among the `bytes` bytes of all tensors of
    /// the column.
    pub fn others(&self, bytes: usize) -> impl Iterator<Item = Range<usize>> {
        let (runs, each) = (&self.tensors.runs, self.column.sample_bytes);
        let starts = runs.iter().map(move |run| run.range().start * each);
        let ends = runs.iter().map(move |run| run.range().end * each);
        let between = std::iter::once(0).chain(ends).zip(starts.chain([bytes]));
        between.map(|(start, end)| start..end).filter(|range| !range.is_empty())
    }

    /// Starts copying them to their positions in `to`, memory of the same device in which the
    /// tensors of the column begin at `offset`. Returns the number of bytes.
    pub(crate) fn copy_to(
        &self,
        compute: &mut (impl Compute + ?Sized),
        to: &DeviceMemory,
        offset: usize,
    ) -> Result<usize, Error> {
        let ResidentTensors { memory, ready, runs, .. } = self.tensors;
        let ResidentColumn { offset: begin, sample_bytes } = self.column;
        compute.wait_for_fence(ready)?;
        let copied = runs.iter().try_for_each(|run| {
            let (from_offset, to_offset) =
                (begin + run.index * sample_bytes, offset + run.position * sample_bytes);
            compute.copy(memory.memory(), from_offset, to, to_offset, run.count * sample_bytes)
        });
        memory.read_by(compute);
        copied.map(|()| self.tensors.len() * sample_bytes)
    }
}

impl Run {
    fn range(&self) -> Range<usize> {
        self.position..self.position + self.count
    }
}

/// Joins tensors that are consecutive both in the batch and in the memory.
fn runs(tensors: impl Iterator<Item = (usize, usize)>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (position, index) in tensors {
        match runs.last_mut() {
            Some(Run { position: first, index: begin, count })
                if *first + *count == position && *begin + *count == index =>
            {
                *count += 1;
            }
            _ => runs.push(Run { position, index, count: 1 }),
        }
    }
    runs
}
