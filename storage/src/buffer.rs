//! Memory that any engine can use: aligned to a block, and a whole number of blocks long.
#![expect(unsafe_code, reason = "shows raw memory, which the kernel also writes to, as slices")]

use crate::arena::Arena;
use crate::block::{BLOCK_BYTES, Block};
use std::ptr::NonNull;
use std::sync::Arc;

/// A buffer aligned to [`BLOCK_BYTES`] whose capacity is a multiple of it.
///
/// Its memory keeps its address when the buffer moves. Buffers of at least 2 MiB are on huge pages
/// if the kernel supports them. Dropping a buffer that an engine lent ([`crate::Engine::buffer`])
/// returns it to the engine.
pub struct AlignedBuffer {
    start: NonNull<u8>,
    capacity: usize,
    backing: Backing,
}

// SAFETY: only the buffer has access to its memory, and the owner to which it returns the memory is
// `Send` as well.
unsafe impl Send for AlignedBuffer {}

// SAFETY: a shared reference only allows reading the bytes.
unsafe impl Sync for AlignedBuffer {}

/// The owner to which the memory returns.
enum Backing {
    /// The buffer itself, which frees it.
    Own { _block: Block },
    /// The engine that lent it, which identifies it by its offset.
    Lent { arena: Arc<Arena>, offset: usize },
    /// An owner outside of this crate, which is dropped.
    Foreign { _owner: Box<dyn Send> },
}

impl AlignedBuffer {
    /// A zeroed buffer of at least `bytes` bytes, rounded up to whole blocks.
    pub fn zeroed(bytes: usize) -> Self {
        let block = Block::zeroed(bytes);
        let (start, capacity) = (block.start(), block.capacity());
        Self { start, capacity, backing: Backing::Own { _block: block } }
    }

    /// A buffer in memory that belongs to `owner`, which is dropped when the buffer is.
    ///
    /// # Panics
    /// If `start` or `capacity` is not a multiple of [`BLOCK_BYTES`].
    ///
    /// # Safety
    /// The `capacity` bytes from `start` must be initialised, stay readable and writable wherever
    /// `owner` moves to, and not be used by any other code, until `owner` is dropped.
    pub unsafe fn from_owner(start: NonNull<u8>, capacity: usize, owner: Box<dyn Send>) -> Self {
        assert!(start.addr().get().is_multiple_of(BLOCK_BYTES), "a buffer begins at a block");
        assert!(capacity.is_multiple_of(BLOCK_BYTES), "a buffer is a whole number of blocks");
        Self { start, capacity, backing: Backing::Foreign { _owner: owner } }
    }

    /// A buffer of at least `bytes` bytes in an arena; `None` if the arena has no free range of
    /// this size.
    pub(crate) fn lend(arena: &Arc<Arena>, bytes: usize) -> Option<Self> {
        let capacity = bytes.next_multiple_of(BLOCK_BYTES);
        let offset = arena.take(capacity)?;
        // SAFETY: the range is within the arena's allocation.
        let start = unsafe { arena.start().add(offset) };
        let backing = Backing::Lent { arena: Arc::clone(arena), offset };
        Some(Self { start, capacity, backing })
    }

    /// Whether an engine has registered its memory with the kernel.
    pub fn is_registered(&self) -> bool {
        match &self.backing {
            Backing::Lent { arena, offset } => arena.is_registered(*offset, self.capacity),
            Backing::Own { .. } | Backing::Foreign { .. } => false,
        }
    }

    /// Whether it is registered by the engine that has this arena.
    pub(crate) fn is_registered_in(&self, own: Option<&Arc<Arena>>) -> bool {
        match (&self.backing, own) {
            (Backing::Lent { arena, .. }, Some(own)) => {
                Arc::ptr_eq(arena, own) && self.is_registered()
            }
            _ => false,
        }
    }

    /// Capacity in bytes, a multiple of [`BLOCK_BYTES`].
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// All of it.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `capacity` initialised bytes at `start` belong to this buffer alone.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.capacity) }
    }

    /// All of it.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.capacity) }
    }

    /// Address of the first byte, for the kernel.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        if let Backing::Lent { arena, offset } = &self.backing {
            arena.give_back(*offset, self.capacity);
        }
    }
}

impl std::fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AlignedBuffer({} bytes)", self.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_zeroed_aligned_and_whole_blocks_long() {
        let sizes = [(0, 0), (1, 4096), (4096, 4096), (4097, 8192), (2_500_000, 2_502_656)];
        for (bytes, capacity) in sizes {
            let mut buffer = AlignedBuffer::zeroed(bytes);
            assert_eq!(buffer.capacity(), capacity);
            assert!(buffer.as_slice().as_ptr().addr().is_multiple_of(BLOCK_BYTES));
            assert!(buffer.as_slice().iter().all(|&byte| byte == 0));
            buffer.as_mut_slice().fill(7);
            assert!(buffer.as_slice().iter().all(|&byte| byte == 7));
        }
    }

    #[test]
    fn a_buffer_in_foreign_memory_drops_its_owner_with_it() {
        let dropped = Arc::new(());
        let block = Block::zeroed(BLOCK_BYTES);
        let start = block.start();
        let owner = Box::new((block, Arc::clone(&dropped)));
        // SAFETY: the owner holds the block, which no other code can access.
        let mut buffer = unsafe { AlignedBuffer::from_owner(start, BLOCK_BYTES, owner) };
        buffer.as_mut_slice()[17] = 3;
        assert_eq!(buffer.as_slice()[17], 3);
        assert_eq!(Arc::strong_count(&dropped), 2);
        drop(buffer);
        assert_eq!(Arc::strong_count(&dropped), 1);
    }

    #[test]
    fn only_the_engine_that_registered_a_buffer_takes_it_for_registered() {
        let arena = Arc::new(Arena::new(BLOCK_BYTES, |_, bytes| bytes));
        let other = Arc::new(Arena::new(BLOCK_BYTES, |_, bytes| bytes));
        let buffer = AlignedBuffer::lend(&arena, 1).unwrap();
        assert!(buffer.is_registered() && buffer.is_registered_in(Some(&arena)));
        assert!(!buffer.is_registered_in(Some(&other)) && !buffer.is_registered_in(None));
        assert!(!AlignedBuffer::zeroed(1).is_registered_in(Some(&arena)));
    }
}
