//! Recycled memory for batches: a fixed number of slots cut from one mapping.
//!
//! Fresh memory for every batch costs a page fault per 4 KiB; a slot is faulted in once, with huge
//! pages if the kernel has them, and then reused. The most recently returned slot is reused first,
//! so the resident memory is at most the maximum that was in use at one time.
#![expect(unsafe_code, reason = "lends disjoint parts of one mapping")]

use crate::Error;
use crate::page_locks::{LockBudget, PageLocks, Unlocked};
use meetpoint_gpu::Compute;
use meetpoint_prepare::{BatchMemory, MemoryKind};
use meetpoint_storage::{AlignedBuffer, HugeMemory};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Slots are rounded up to this size in bytes: a huge page of x86-64 and of aarch64 with 4 KiB
/// pages.
pub(crate) const HUGE_PAGE_BYTES: u64 = 2 << 20;

/// Maximum number of slots, for any budget.
const RING_SLOTS_MAX: u64 = 1 << 16;

/// The slots of one loader. Clones share them.
#[derive(Debug, Clone)]
pub struct Ring {
    memory: Arc<Memory>,
}

/// The mapping, and which of its slots are lent.
#[derive(Debug)]
struct Memory {
    /// Declared first: pages are unlocked before they are unmapped.
    page_locks: PageLocks,
    /// All slots, one after the other.
    mapped: HugeMemory,
    ring_slot_bytes: usize,
    batch_bytes: usize,
    slots: usize,
    lent: Mutex<SlotStates>,
    given_back: Condvar,
}

#[derive(Debug)]
struct SlotStates {
    /// Free slots; the last one is taken next.
    free: Vec<usize>,
    /// Whether a slot was ever lent.
    is_faulted: Vec<bool>,
}

impl Ring {
    /// Reserves as many slots for batches of `batch_bytes` as `budget_bytes` holds.
    ///
    /// It is an error if fewer than `least` fit. Nothing is resident before it is used.
    pub fn new(batch_bytes: u64, budget_bytes: u64, least: u64) -> Result<Self, Error> {
        let ring_slot_bytes = ring_slot_bytes(batch_bytes);
        let slots = (budget_bytes / ring_slot_bytes).min(RING_SLOTS_MAX);
        if slots < least.max(1) {
            return Err(Error::BudgetTooSmall {
                budget_bytes,
                small_samples_bytes: 0,
                ring_slot_bytes,
                least: least.max(1),
            });
        }
        let refused = |source| Error::RingMemory { bytes: slots * ring_slot_bytes, source };
        let too_large = || refused(std::io::ErrorKind::OutOfMemory.into());
        let ring_slot_bytes = usize::try_from(ring_slot_bytes).map_err(|_| too_large())?;
        let slots = usize::try_from(slots).expect("at most RING_SLOTS_MAX");
        let bytes = slots.checked_mul(ring_slot_bytes).ok_or_else(too_large)?;
        let mapped = HugeMemory::reserved(bytes).map_err(refused)?;
        let lent = SlotStates { free: (0..slots).rev().collect(), is_faulted: vec![false; slots] };
        Ok(Self {
            memory: Arc::new(Memory {
                page_locks: PageLocks::default(),
                mapped,
                ring_slot_bytes,
                batch_bytes: usize::try_from(batch_bytes).expect("no larger than its slot"),
                slots,
                lent: Mutex::new(lent),
                given_back: Condvar::new(),
            }),
        })
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.memory.slots
    }

    /// Bytes of a slot, a multiple of 2 MiB.
    pub fn ring_slot_bytes(&self) -> usize {
        self.memory.ring_slot_bytes
    }

    /// Number of free slots.
    pub fn free(&self) -> usize {
        self.memory.lent().free.len()
    }

    /// A slot, if one is free. Its content is unspecified.
    pub fn take(&self) -> Option<RingSlot> {
        let mut lent = self.memory.lent();
        let index = lent.free.pop()?;
        let is_first_use = !std::mem::replace(&mut lent.is_faulted[index], true);
        drop(lent);
        let mut slot = RingSlot { memory: Arc::clone(&self.memory), index };
        if is_first_use {
            slot.fault_in();
        }
        Some(slot)
    }

    /// A slot, waiting at most `limit` for one to be returned.
    pub fn wait(&self, limit: Duration) -> Option<RingSlot> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(slot) = self.take() {
                return Some(slot);
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            let lent = self.memory.lent();
            if lent.free.is_empty() {
                let waited = self.memory.given_back.wait_timeout(lent, left);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
        }
    }
}

impl Memory {
    fn lent(&self) -> MutexGuard<'_, SlotStates> {
        // A panic while it is held leaves the state consistent.
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One slot: memory for a batch, returned to the ring when dropped.
#[derive(Debug)]
pub struct RingSlot {
    memory: Arc<Memory>,
    index: usize,
}

impl RingSlot {
    fn start(&self) -> NonNull<u8> {
        let Memory { mapped, ring_slot_bytes, .. } = &*self.memory;
        mapped.range(self.index * ring_slot_bytes, *ring_slot_bytes).cast()
    }

    /// Faults in the memory of a batch with one call.
    fn fault_in(&mut self) {
        let Memory { mapped, ring_slot_bytes, batch_bytes, .. } = &*self.memory;
        let bytes = batch_bytes.next_multiple_of(meetpoint_storage::BLOCK_BYTES);
        mapped.populate(self.index * ring_slot_bytes, bytes);
    }

    /// Page-locks the slot until the ring is dropped, so that a GPU copies from and to it directly.
    pub fn lock_pages(
        &self,
        compute: &mut (impl Compute + ?Sized),
        budget: &mut LockBudget,
    ) -> Result<(), Unlocked> {
        self.memory.page_locks.lock(self.index, self, compute, budget)
    }

    /// The slot as a buffer that a storage engine can fill; dropping the buffer returns the slot.
    pub fn into_buffer(self) -> AlignedBuffer {
        let (start, bytes) = (self.start(), self.memory.ring_slot_bytes);
        // SAFETY: the slot owns these bytes, which are aligned to a huge page, mapped (so
        // initialised) and do not move with it, and nothing else accesses the boxed slot.
        unsafe { AlignedBuffer::from_owner(start, bytes, Box::new(self)) }
    }
}

impl Deref for RingSlot {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: these `ring_slot_bytes` of the mapping belong only to this slot; a mapping is
        // initialised memory.
        unsafe { std::slice::from_raw_parts(self.start().as_ptr(), self.memory.ring_slot_bytes) }
    }
}

impl DerefMut for RingSlot {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and the exclusive borrow prevents any other access.
        unsafe {
            std::slice::from_raw_parts_mut(self.start().as_ptr(), self.memory.ring_slot_bytes)
        }
    }
}

impl BatchMemory for RingSlot {
    fn kind(&self) -> MemoryKind {
        MemoryKind::Host
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl Drop for RingSlot {
    fn drop(&mut self) {
        self.memory.lent().free.push(self.index);
        self.memory.given_back.notify_one();
    }
}

/// Bytes of a slot for batches of `batch_bytes`.
pub(crate) fn ring_slot_bytes(batch_bytes: u64) -> u64 {
    batch_bytes.max(1).checked_next_multiple_of(HUGE_PAGE_BYTES).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use meetpoint_diagnose::{Change, Diagnose, Remedy, Setting};

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_budget_bounds_the_slots() {
        let ring = Ring::new(3 * MIB, 17 * MIB, 1).unwrap();
        assert_eq!((ring.slots(), ring.ring_slot_bytes() as u64), (4, 4 * MIB));
        let taken: Vec<RingSlot> = std::iter::from_fn(|| ring.take()).collect();
        assert_eq!((taken.len(), ring.free()), (4, 0));
        assert!(ring.wait(Duration::from_millis(1)).is_none());
    }

    #[test]
    fn a_budget_that_is_too_small_names_what_is_needed() {
        let error = Ring::new(3 * MIB, 7 * MIB, 2).unwrap_err();
        let least = Remedy::set(Setting::MemoryBudget, Change::AtLeast("8 MiB".to_owned()));
        assert_eq!(error.remedy(), Some(least.or_set(Setting::BatchSize, Change::Lower)));
        assert!(matches!(Ring::new(u64::MAX, u64::MAX - 1, 1), Err(Error::BudgetTooSmall { .. })));
    }

    #[test]
    fn the_slot_used_last_is_lent_first() {
        let ring = Ring::new(MIB, 8 * MIB, 1).unwrap();
        let (first, second) = (ring.take().unwrap(), ring.take().unwrap());
        let address = first.as_ptr();
        drop(first);
        assert_eq!(ring.take().unwrap().as_ptr(), address);
        drop(second);
    }

    #[test]
    fn a_retained_slot_is_never_lent_again_and_outlives_the_ring() {
        let ring = Ring::new(MIB, 6 * MIB, 1).unwrap();
        let mut kept = ring.take().unwrap();
        kept.fill(7);
        for round in 0..20 {
            let mut others: Vec<RingSlot> = std::iter::from_fn(|| ring.take()).collect();
            assert_eq!(others.len(), 2);
            others.iter_mut().for_each(|slot| slot.fill(round));
        }
        drop(ring);
        assert!(kept.iter().all(|&byte| byte == 7));
    }

    #[test]
    fn a_slot_that_became_a_buffer_is_returned_when_that_is_dropped() {
        let ring = Ring::new(MIB, 2 * MIB, 1).unwrap();
        let mut buffer = ring.take().unwrap().into_buffer();
        assert_eq!((buffer.capacity() as u64, ring.free()), (2 * MIB, 0));
        buffer.as_mut_slice().fill(3);
        drop(buffer);
        assert_eq!(ring.free(), 1);
    }

    #[test]
    fn a_waiting_thread_gets_the_slot_that_another_returns() {
        let ring = Ring::new(MIB, 2 * MIB, 1).unwrap();
        let slot = ring.take().unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| ring.wait(Duration::from_secs(60)).is_some());
            drop(slot);
            assert!(waiting.join().unwrap());
        });
    }

    #[test]
    fn a_slot_is_locked_once_and_within_the_limit() {
        let sources = env!("CARGO_MANIFEST_DIR").replace('/', "-");
        let folder = std::env::temp_dir().join(format!("meetpoint-shim{sources}"));
        let mut compute = meetpoint_gpu::Shim::start(&folder).unwrap();
        let mut budget = LockBudget::new(3 * MIB);
        let ring = Ring::new(MIB, 4 * MIB, 1).unwrap();
        let (first, second) = (ring.take().unwrap(), ring.take().unwrap());
        first.lock_pages(&mut compute, &mut budget).unwrap();
        let limit = Unlocked::Limit { limit_bytes: 3 * MIB };
        assert_eq!(second.lock_pages(&mut compute, &mut budget), Err(limit));
        // Already locked, which costs no budget.
        first.lock_pages(&mut compute, &mut LockBudget::new(0)).unwrap();
        assert_eq!(budget.locked_bytes(), 2 * MIB);
    }

    #[test]
    fn slots_do_not_overlap() {
        let ring = Ring::new(5 * MIB / 2, 12 * MIB, 1).unwrap();
        let mut slots: Vec<RingSlot> = std::iter::from_fn(|| ring.take()).collect();
        for (number, slot) in (0u8..).zip(&mut slots) {
            slot.fill(number);
        }
        for (number, slot) in (0u8..).zip(&slots) {
            assert!(slot.iter().all(|&byte| byte == number));
        }
    }
}
