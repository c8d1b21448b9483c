//! One allocation on huge pages, from which ranges are allocated and freed.

use crate::block::Block;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// Memory that buffers are allocated from. It lives until the last of them is dropped.
pub(crate) struct Arena {
    block: Block,
    /// The number of bytes from the start that are registered with the kernel.
    registered_bytes: usize,
    /// Free ranges (offset, bytes), in order, no two of them adjacent.
    free: Mutex<Vec<(usize, usize)>>,
}

impl Arena {
    /// Calls `register` with the memory; it returns the number of bytes, from the start, that it
    /// registered.
    pub(crate) fn new(bytes: usize, register: impl FnOnce(NonNull<u8>, usize) -> usize) -> Self {
        let block = Block::zeroed(bytes);
        let registered_bytes = register(block.start(), block.capacity());
        let free = Mutex::new(vec![(0, block.capacity())]);
        Self { block, registered_bytes, free }
    }

    /// Takes a free range of `bytes`, whole blocks, and returns its offset; `None` if no free
    /// range is large enough.
    pub(crate) fn take(&self, bytes: usize) -> Option<usize> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        // The first range that fits, because the registered part is at the start.
        let index = free.iter().position(|&(_, there)| there >= bytes)?;
        let (offset, there) = free[index];
        if there == bytes {
            free.remove(index);
        } else {
            free[index] = (offset + bytes, there - bytes);
        }
        Some(offset)
    }

    /// Frees a range that [`Arena::take`] returned.
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

    /// Address of the first byte.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.block.start()
    }

    /// Whether a range is within the registered part.
    pub(crate) fn is_registered(&self, offset: usize, bytes: usize) -> bool {
        offset + bytes <= self.registered_bytes
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
            let arena = Arena::new(64 * KIB, |_, bytes| bytes);
            let taken: Vec<_> = (0..3).map(|_| arena.take(12 * KIB).unwrap()).collect();
            assert_eq!(free(&arena), [(36 * KIB, 28 * KIB)]);
            for index in order {
                arena.give_back(taken[index], 12 * KIB);
            }
            assert_eq!(free(&arena), [(0, 64 * KIB)], "{order:?}");
        }
    }
}
