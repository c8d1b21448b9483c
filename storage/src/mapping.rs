//! Memory that is mapped into the address space: files for reading, files shared with another
//! process, and new memory on huge pages. No other file of the workspace maps memory.
//!
//! Functions return pointers to ranges, which are checked to be within the mapping. The caller
//! ensures that a range may be read or written.
#![expect(unsafe_code, reason = "maps memory")]

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Usual size and alignment of a huge page; on machines with another size, only speed suffers.
pub(crate) const HUGE_BYTES: usize = 2 << 20;

/// A mapped address range, unmapped when it is dropped.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it holds an address, which is unmapped once, by its only owner.
unsafe impl Send for Mapping {}

// SAFETY: as above; a shared mapping exposes only its address.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn of_file(file: impl AsFd, bytes: u64, protection: ProtFlags) -> std::io::Result<Self> {
        let bytes = usize::try_from(bytes).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new mapping at an address that the kernel selects overlaps no other memory.
        let start =
            unsafe { mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, file, 0) }?;
        let start = NonNull::new(start.cast()).expect("a mapping is not at address 0");
        Ok(Self { start, bytes })
    }

    fn range(&self, offset: usize, bytes: usize) -> NonNull<[u8]> {
        let end = offset.checked_add(bytes).expect("the end of a range fits");
        assert!(end <= self.bytes, "{offset}..{end} lies within the mapping of {}", self.bytes);
        // SAFETY: the range is within the mapping, as checked above.
        let start = unsafe { self.start.add(offset) };
        NonNull::slice_from_raw_parts(start, bytes)
    }

    /// Passes advice to the kernel. If the kernel refuses, only speed is lost.
    fn advise(&self, range: NonNull<[u8]>, advice: Advice) {
        // SAFETY: `range` is part of this mapping, and no advice that this file uses changes its
        // content.
        let _ = unsafe { madvise(range.as_ptr().cast(), range.len(), advice) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the mapped range; returned pointers are used only during the lifetime of
        // this value.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "a mapping can be unmapped");
    }
}

/// A file mapped for reading.
///
/// Map only files that no process truncates: an access past the end of a file ends the process with
/// SIGBUS.
#[derive(Debug)]
pub struct ReadMapping {
    mapping: Mapping,
}

impl ReadMapping {
    /// Maps the first `bytes` of a file.
    pub fn new(file: impl AsFd, bytes: u64) -> std::io::Result<Self> {
        Ok(Self { mapping: Mapping::of_file(file, bytes, ProtFlags::READ)? })
    }

    /// Advises the kernel to read ahead, or not to.
    pub fn advise_order(&self, is_sequential: bool) {
        let advice = if is_sequential { Advice::Sequential } else { Advice::Random };
        self.mapping.advise(self.mapping.range(0, self.mapping.bytes), advice);
    }

    /// The bytes of the file.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the mapping is readable, has this length, and lives as long as the borrow; it
        // cannot be written to.
        unsafe { self.mapping.range(0, self.mapping.bytes).as_ref() }
    }
}

/// A file mapped for reading and writing, shared with every other process that maps it.
///
/// The file must be sealed against shrinking: an access past its end is a fatal signal.
#[derive(Debug)]
pub struct SharedMapping {
    mapping: Mapping,
}

impl SharedMapping {
    /// Maps the first `bytes` of a file.
    pub fn new(file: impl AsFd, bytes: u64) -> std::io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        Ok(Self { mapping: Mapping::of_file(file, bytes, protection)? })
    }

    /// A range: initialised, readable and writable while the mapping lives.
    ///
    /// # Panics
    ///
    /// If the range is not within the mapping.
    pub fn range(&self, offset: usize, bytes: usize) -> NonNull<[u8]> {
        self.mapping.range(offset, bytes)
    }

    /// Copies bytes into the mapping.
    ///
    /// # Panics
    ///
    /// If they do not fit.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        let offset = usize::try_from(offset).expect("an offset in a mapping fits");
        let into = self.mapping.range(offset, bytes.len());
        // SAFETY: the range is within the mapping, as checked above, and the source is not shared,
        // so the two do not overlap. No reference to the mapping exists, so a process that reads at
        // the same time sees some bytes, and its checksum detects wrong ones.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), into.as_ptr().cast(), bytes.len());
        }
        // The message that announces the bytes goes through the kernel; this keeps the compiler
        // from moving the header before the payload.
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }
}

/// A file mapped as words that several processes load and store atomically.
///
/// The file must be sealed against shrinking: an access past its end is a fatal signal.
#[derive(Debug)]
pub struct SharedWords {
    mapping: Mapping,
}

impl SharedWords {
    /// Maps the first `words` words of a file.
    pub fn new(file: impl AsFd, words: usize) -> std::io::Result<Self> {
        let bytes = (words as u64).checked_mul(8).ok_or(std::io::ErrorKind::OutOfMemory)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        Ok(Self { mapping: Mapping::of_file(file, bytes, protection)? })
    }

    /// The words. Stores by another process are visible as those of another thread are.
    pub fn as_slice(&self) -> &[AtomicU64] {
        let words = self.mapping.bytes / size_of::<AtomicU64>();
        let start = self.mapping.start.as_ptr().cast::<AtomicU64>();
        // SAFETY: the mapping is readable and writable, begins at a page, has this length and lives
        // as long as the borrow; atomic words of shared memory may be changed by others.
        unsafe { std::slice::from_raw_parts(start, words) }
    }
}

/// Zeroed memory that is aligned to huge pages, and uses them if the kernel supports them. It
/// becomes resident when it is used.
#[derive(Debug)]
pub struct HugeMemory {
    mapping: Mapping,
}

impl HugeMemory {
    /// Memory of `bytes` bytes, a multiple of [`BLOCK_BYTES`](crate::BLOCK_BYTES), which the kernel
    /// commits immediately.
    pub fn zeroed(bytes: usize) -> std::io::Result<Self> {
        Self::map(bytes, MapFlags::PRIVATE)
    }

    /// Memory that the kernel does not commit, for allocations that may be used only in part.
    pub fn reserved(bytes: usize) -> std::io::Result<Self> {
        Self::map(bytes, MapFlags::PRIVATE | MapFlags::NORESERVE)
    }

    fn map(bytes: usize, flags: MapFlags) -> std::io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let mapped_bytes = bytes.checked_add(HUGE_BYTES).ok_or(std::io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new mapping at an address that the kernel selects overlaps no other memory.
        let mapped =
            unsafe { mmap_anonymous(std::ptr::null_mut(), mapped_bytes, protection, flags) }?;
        let before = mapped.addr().next_multiple_of(HUGE_BYTES) - mapped.addr();
        let after = HUGE_BYTES - before;
        let start = mapped.wrapping_byte_add(before);
        for (end, surplus) in [(mapped, before), (start.wrapping_byte_add(bytes), after)] {
            if surplus > 0 {
                // SAFETY: both ends belong to the new mapping and are not used.
                unsafe { munmap(end, surplus) }.expect("the ends of a mapping can be unmapped");
            }
        }
        let start = NonNull::new(start.cast()).expect("a mapping is not at address 0");
        let mapping = Mapping { start, bytes };
        mapping.advise(mapping.range(0, bytes), Advice::LinuxHugepage);
        Ok(Self { mapping })
    }

    /// A range: initialised, readable and writable while the memory lives.
    ///
    /// # Panics
    ///
    /// If the range is not within the memory.
    pub fn range(&self, offset: usize, bytes: usize) -> NonNull<[u8]> {
        self.mapping.range(offset, bytes)
    }

    /// Makes a range resident with one call. Kernels before 5.14 do not support this; pages then
    /// become resident at the first write to each.
    ///
    /// # Panics
    ///
    /// If the range is not within the memory.
    pub fn populate(&self, offset: usize, bytes: usize) {
        self.mapping.advise(self.mapping.range(offset, bytes), Advice::LinuxPopulateWrite);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    fn memory_file(bytes: u64) -> File {
        let file = File::from(memfd_create("test", MemfdFlags::CLOEXEC).unwrap());
        ftruncate(&file, bytes).unwrap();
        file
    }

    #[test]
    fn written_bytes_are_in_the_file_and_in_every_mapping_of_it() {
        let file = memory_file(3 * 4096);
        let read = ReadMapping::new(&file, 3 * 4096).unwrap();
        let mut mapping = SharedMapping::new(&file, 3 * 4096).unwrap();
        mapping.write(4096, b"header");
        mapping.write(3 * 4096 - 1, b"!");
        let mut got = [0; 6];
        file.read_exact_at(&mut got, 4096).unwrap();
        assert_eq!(&got, b"header");
        read.advise_order(true);
        assert_eq!(&read.as_slice()[4096..4102], b"header");
        assert_eq!(read.as_slice()[3 * 4096 - 1], b'!');
    }

    #[test]
    #[should_panic(expected = "4090..4097 lies within the mapping of 4096")]
    fn a_write_behind_the_end_is_a_broken_invariant() {
        SharedMapping::new(memory_file(4096), 4096).unwrap().write(4090, b"1234567");
    }

    #[test]
    fn fresh_memory_begins_at_a_huge_page() {
        for bytes in [4096, HUGE_BYTES, 3 * HUGE_BYTES + 4096] {
            let memory = HugeMemory::reserved(bytes).unwrap();
            memory.populate(0, bytes);
            let range = memory.range(0, bytes);
            assert!(range.cast::<u8>().addr().get().is_multiple_of(HUGE_BYTES));
            assert_eq!(range.len(), bytes);
        }
        assert!(HugeMemory::zeroed(usize::MAX - 4095).is_err());
    }
}
