//! The buffers that an engine lends: allocated from an arena, or separately while the arena is
//! full.

use crate::arena::Arena;
use crate::block::BLOCK_BYTES;
use crate::buffer::AlignedBuffer;
use crate::mapping::HUGE_BYTES;
use std::ptr::NonNull;
use std::sync::Arc;

/// Minimum size of the arena of an engine, in bytes.
pub const ARENA_BYTES_MIN: usize = 4 << 20;

/// Maximum size of the arena of an engine, in bytes.
pub const ARENA_BYTES_MAX: usize = 32 << 20;

/// Creates an arena when the first buffer is requested, and lends buffers from it.
#[derive(Default)]
pub(crate) struct BufferAllocator {
    arena: Option<Arc<Arena>>,
}

impl BufferAllocator {
    /// A buffer from the arena or, if it is full, a separate one. `register` is called for a new
    /// arena.
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
        AlignedBuffer::lend(arena, bytes).unwrap_or_else(|| AlignedBuffer::zeroed(bytes))
    }

    /// The arena, once a buffer was requested.
    pub(crate) fn arena(&self) -> Option<&Arc<Arena>> {
        self.arena.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1024;

    #[test]
    fn lent_buffers_do_not_overlap_and_a_full_arena_lends_nothing() {
        let arena = Arc::new(Arena::new(64 * KIB, |_, _| 20 * KIB));
        let mut lent: Vec<_> =
            std::iter::from_fn(|| AlignedBuffer::lend(&arena, 5 * KIB)).collect();
        assert_eq!(lent.len(), 8);
        assert!(AlignedBuffer::lend(&arena, 1).is_none());
        for (index, buffer) in lent.iter_mut().enumerate() {
            buffer.as_mut_slice().fill(index as u8 + 1);
        }
        for (index, buffer) in lent.iter().enumerate() {
            assert!(buffer.as_slice().iter().all(|&byte| byte == index as u8 + 1));
            assert_eq!(buffer.is_registered(), index < 2, "20 KiB hold two of 8 KiB");
        }
        drop(lent.remove(3));
        assert!(AlignedBuffer::lend(&arena, 8 * KIB).is_some());
    }

    #[test]
    fn an_arena_outlives_its_lender() {
        let mut lender = BufferAllocator::default();
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
        let mut lender = BufferAllocator::default();
        let large = lender.lend(ARENA_BYTES_MAX + 1, 1, |_, bytes| bytes);
        assert!(!large.is_registered());
        assert_eq!(large.capacity(), ARENA_BYTES_MAX + BLOCK_BYTES);
        assert!(lender.lend(1, 1, |_, _| unreachable!("there is one arena")).is_registered());
    }
}
