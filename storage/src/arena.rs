//! The buffers that an engine lends: carved from one piece of memory on huge pages.

use crate::block::{Block, HUGE_BYTES};
use crate::{AlignedBuffer, BLOCK_BYTES};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

/// Least memory that an engine carves its buffers from.
pub const ARENA_BYTES_MIN: usize = 4 << 20;

/// Most memory that an engine carves its buffers from.
pub const ARENA_BYTES_MAX: usize = 32 << 20;

/// Memory that buffers are carved from. It lives until the last of them is dropped.
pub(crate) struct Arena {
    block: Block,
    /// So many bytes from the start are registered with the kernel.
    registered_bytes: usize,
    /// Free ranges (offset, bytes), in order, no two of them adjacent.
    free: Mutex<Vec<(usize, usize)>>,
}

impl Arena {
    /// `register` is given the memory and says how much of it, from the start, it registered.
    pub(crate) fn new(bytes: usize, register: impl FnOnce(NonNull<u8>, usize) -> usize) -> Self {
        let block = Block::zeroed(bytes);
        let registered_bytes = register(block.start(), block.capacity());
        let free = Mutex::new(vec![(0, block.capacity())]);
        Self { block, registered_bytes, free }
    }

    /// A buffer of at least `bytes`, where there is room.
    pub(crate) fn lend(self: &Arc<Self>, bytes: usize) -> Option<AlignedBuffer> {
        let bytes = bytes.next_multiple_of(BLOCK_BYTES);
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        // The first that fits, for the registered part comes first.
        let place = free.iter().position(|&(_, there)| there >= bytes)?;
        let (offset, there) = free[place];
        if there == bytes {
            free.remove(place);
        } else {
            free[place] = (offset + bytes, there - bytes);
        }
        drop(free);
        Some(AlignedBuffer::lent(Arc::clone(self), offset, bytes))
    }

    /// Takes back a range that was lent.
    pub(crate) fn give_back(&self, offset: usize, bytes: usize) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut begin, mut end) = (offset, offset + bytes);
        let mut place = free.partition_point(|&(other, _)| other < offset);
        if free.get(place).is_some_and(|&(after, _)| after == end) {
            end += free.remove(place).1;
        }
        if place > 0 && free[place - 1].0 + free[place - 1].1 == begin {
            place -= 1;
            begin = free.remove(place).0;
        }
        free.insert(place, (begin, end - begin));
    }

    /// Where it begins.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.block.start()
    }

    /// Whether a range lies in what is registered.
    pub(crate) fn is_registered(&self, offset: usize, bytes: usize) -> bool {
        offset + bytes <= self.registered_bytes
    }
}

/// Makes an arena when the first buffer is asked for, and lends from it.
#[derive(Default)]
pub(crate) struct Lender {
    arena: Option<Arc<Arena>>,
}

impl Lender {
    /// A buffer from the arena, else one of its own. `register` is called for a fresh arena.
    pub(crate) fn lend(
        &mut self,
        bytes: usize,
        depth: usize,
        register: impl FnOnce(NonNull<u8>, usize) -> usize,
    ) -> AlignedBuffer {
        if bytes == 0 {
            return AlignedBuffer::zeroed(0);
        }
        let arena = self.arena.get_or_insert_with(|| {
            let whole = bytes.next_multiple_of(BLOCK_BYTES).saturating_mul(depth);
            let bytes = whole.clamp(ARENA_BYTES_MIN, ARENA_BYTES_MAX);
            Arc::new(Arena::new(bytes.next_multiple_of(HUGE_BYTES), register))
        });
        arena.lend(bytes).unwrap_or_else(|| AlignedBuffer::zeroed(bytes))
    }

    /// What it lends from.
    pub(crate) fn arena(&self) -> Option<&Arc<Arena>> {
        self.arena.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1024;

    fn free(arena: &Arena) -> Vec<(usize, usize)> {
        arena.free.lock().unwrap().clone()
    }

    #[test]
    fn ranges_that_come_back_join_again_in_any_order() {
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        for order in orders {
            let arena = Arc::new(Arena::new(64 * KIB, |_, bytes| bytes));
            let mut lent: Vec<_> = (0..3).map(|_| arena.lend(10 * KIB)).collect();
            assert_eq!(free(&arena), [(36 * KIB, 28 * KIB)]);
            for place in order {
                lent[place] = None;
            }
            assert_eq!(free(&arena), [(0, 64 * KIB)], "{order:?}");
        }
    }

    #[test]
    fn lent_buffers_do_not_overlap_and_a_full_arena_lends_nothing() {
        let arena = Arc::new(Arena::new(64 * KIB, |_, _| 20 * KIB));
        let mut lent: Vec<_> = std::iter::from_fn(|| arena.lend(5 * KIB)).collect();
        assert_eq!(lent.len(), 8);
        assert!(arena.lend(1).is_none());
        for (index, buffer) in lent.iter_mut().enumerate() {
            buffer.as_mut_slice().fill(index as u8 + 1);
        }
        for (index, buffer) in lent.iter().enumerate() {
            assert!(buffer.as_slice().iter().all(|&byte| byte == index as u8 + 1));
            assert_eq!(buffer.is_registered(), index < 2, "20 KiB hold two of 8 KiB");
        }
        drop(lent.remove(3));
        assert!(arena.lend(8 * KIB).is_some());
    }

    #[test]
    fn an_arena_outlives_whoever_lent_from_it() {
        let mut lender = Lender::default();
        let mut buffer = lender.lend(1000, 4, |_, _| 0);
        let arena = Arc::downgrade(lender.arena().unwrap());
        drop(lender);
        buffer.as_mut_slice().fill(1);
        assert_eq!(buffer.as_slice(), [1; 4096]);
        drop(buffer);
        assert!(arena.upgrade().is_none());
    }

    #[test]
    fn what_does_not_fit_is_memory_of_its_own() {
        let mut lender = Lender::default();
        let large = lender.lend(ARENA_BYTES_MAX + 1, 1, |_, bytes| bytes);
        assert!(!large.is_registered());
        assert_eq!(large.capacity(), ARENA_BYTES_MAX + BLOCK_BYTES);
        assert!(lender.lend(1, 1, |_, _| unreachable!("there is one arena")).is_registered());
    }
}
