//! Memory for batches on the device, reused after the work of their consumers.
//!
//! Any thread may release a batch. Its memory is reused together with the events after which it may
//! be overwritten.

use super::limits::DeliveryError;
use super::streams::{Consumers, Event};
use crate::{DeviceMemory, Error};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Sizes are rounded up to a multiple of this, a page of the GPU.
const PAGE_BYTES: usize = 2 << 20;

/// Released memory, and the work after which it may be overwritten.
#[derive(Debug)]
pub(super) struct Release<E> {
    pub(super) memory: DeviceMemory,
    /// Events of the consumers.
    pub(super) after: Vec<Arc<E>>,
    /// Whether unknown work may still use it, so that all work on the device must end first.
    pub(super) is_unknown: bool,
}

/// Memory of batches, up to a limit.
#[derive(Debug)]
pub(super) struct Pool<E> {
    limit_bytes: u64,
    /// From this number of allocations on, more are made only if no memory is free.
    buffers: usize,
    state: Mutex<State<E>>,
    released: Condvar,
}

#[derive(Debug)]
struct State<E> {
    /// In the order of release.
    free: Vec<Release<E>>,
    /// Bytes allocated, free or in use.
    bytes: u64,
    bytes_max: u64,
    /// Number of allocations in use.
    lent: u32,
    allocations: u64,
}

fn rounded(bytes: usize) -> usize {
    bytes.max(1).div_ceil(PAGE_BYTES) * PAGE_BYTES
}

/// Memory that [`Pool::take`] grants: free memory, or permission to allocate.
pub(super) enum PoolSlot<E> {
    Free(Release<E>),
    /// This number of bytes was reserved.
    Allocate(usize),
}

/// Statistics of the memory of batches.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    pub(super) bytes: u64,
    pub(super) bytes_max: u64,
    pub(super) lent: u32,
    pub(super) allocations: u64,
}

impl<E: Event> Release<E> {
    /// Whether all work on it is done. If the device failed, the next call reports it.
    fn is_done(&self) -> bool {
        !self.is_unknown && self.after.iter().all(|event| event.is_done().unwrap_or(true))
    }
}

impl<E: Event> Pool<E> {
    pub(super) fn new(limit_bytes: u64, buffers: usize) -> Self {
        let state = State { free: Vec::new(), bytes: 0, bytes_max: 0, lent: 0, allocations: 0 };
        Self { limit_bytes, buffers, state: Mutex::new(state), released: Condvar::new() }
    }

    /// Whether memory for a batch is available without waiting for a consumer.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        let state = self.lock();
        let is_free = |it: &Release<E>| it.memory.bytes() >= bytes && it.is_done();
        state.free.iter().any(is_free) || self.may_allocate(&state, rounded(bytes))
    }

    fn may_allocate(&self, state: &State<E>, rounded: usize) -> bool {
        let count = state.lent as usize + state.free.len();
        let is_wanted = count < self.buffers || state.free.is_empty();
        is_wanted && state.bytes + rounded as u64 <= self.limit_bytes
    }

    fn lock(&self) -> MutexGuard<'_, State<E>> {
        // A panic while it is held leaves the state consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn usage(&self) -> Usage {
        let State { bytes, bytes_max, lent, allocations, .. } = *self.lock();
        Usage { bytes, bytes_max, lent, allocations }
    }

    /// Grants memory of at least `bytes` bytes. If the limit is reached, waits for a release.
    pub(super) fn take(
        &self,
        bytes: usize,
        is_stopped: &dyn Fn() -> bool,
        limit: Duration,
    ) -> Result<PoolSlot<E>, DeliveryError> {
        let rounded = rounded(bytes);
        if rounded as u64 > self.limit_bytes {
            let (bytes, limit_bytes) = (rounded as u64, self.limit_bytes);
            return Err(DeliveryError::TooLarge { bytes, limit_bytes });
        }
        let since = Instant::now();
        let mut state = self.lock();
        loop {
            let is_enough = |it: &Release<E>| it.memory.bytes() >= bytes;
            let done = state.free.iter().position(|it| is_enough(it) && it.is_done());
            // The memory released first is expected to be unused first.
            let pending = || match self.may_allocate(&state, rounded) {
                true => None,
                false => state.free.iter().position(is_enough),
            };
            if let Some(at) = done.or_else(pending) {
                let release = state.free.remove(at);
                state.lent += 1;
                return Ok(PoolSlot::Free(release));
            }
            // Memory that is too small is freed to make room.
            while state.bytes + rounded as u64 > self.limit_bytes
                && let Some(too_small) = state.free.pop()
            {
                state.bytes -= too_small.memory.bytes() as u64;
                // Freeing it waits for the work that uses it.
                drop(too_small);
            }
            if state.bytes + rounded as u64 <= self.limit_bytes {
                state.bytes += rounded as u64;
                state.bytes_max = state.bytes_max.max(state.bytes);
                state.lent += 1;
                state.allocations += 1;
                return Ok(PoolSlot::Allocate(rounded));
            }
            if is_stopped() {
                return Err(DeliveryError::Stopped);
            }
            if state.lent == 0 || since.elapsed() >= limit {
                let (limit_bytes, lent) = (self.limit_bytes, state.lent);
                return Err(DeliveryError::NoMemory { bytes: rounded as u64, limit_bytes, lent });
            }
            let waited = self.released.wait_timeout(state, Duration::from_millis(20));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Call when the allocation of granted memory fails.
    pub(super) fn not_allocated(&self, bytes: usize) {
        let mut state = self.lock();
        state.bytes -= bytes as u64;
        state.lent -= 1;
        state.allocations -= 1;
    }

    /// Waits for the consumers' work on returned memory; [`Error::Hung`] after `limit`.
    pub(super) fn wait_until_unused(
        &self,
        consumers: &impl Consumers<Event = E>,
        limit: Duration,
    ) -> Result<(), Error> {
        let start = Instant::now();
        let state = self.lock();
        if state.free.iter().any(|it| it.is_unknown) {
            return consumers.settle(limit, &|| false);
        }
        state.free.iter().flat_map(|it| &it.after).try_for_each(|event| {
            event.wait_unless(limit.saturating_sub(start.elapsed()), &|| false)
        })
    }

    /// Returns the memory of a batch that is no longer used.
    pub(super) fn give_back(&self, release: Release<E>) {
        let mut state = self.lock();
        state.lent -= 1;
        state.free.push(release);
        drop(state);
        self.released.notify_one();
    }
}
