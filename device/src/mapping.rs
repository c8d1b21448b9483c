//! Shared memory that a host handed over: bytes are copied into it, never borrowed from it.
#![expect(unsafe_code, reason = "maps memory that another process shares")]

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::os::fd::AsFd;
use std::ptr::NonNull;

/// A shared mapping of a memory file that cannot shrink.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to no thread; access goes through `&mut self`.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the first `bytes` of a file for writing.
    ///
    /// The caller must ensure that the file is sealed against shrinking: an access past the end of
    /// a file is a fatal signal.
    pub(crate) fn new(file: impl AsFd, bytes: usize) -> std::io::Result<Self> {
        // SAFETY: the kernel chooses the place, so nothing of ours is mapped over.
        let start = unsafe {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, file, 0)?
        };
        let start = NonNull::new(start.cast()).expect("a mapping is not at address zero");
        Ok(Self { start, bytes })
    }

    /// Copies bytes in. Panics when they do not fit.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let offset = usize::try_from(offset).expect("an offset in a mapping fits");
        let end = offset.checked_add(bytes.len()).expect("an offset in a mapping fits");
        assert!(end <= self.bytes, "a slot lies within the spool");
        // SAFETY: the range lies in the mapping, as was just checked, and our own memory is not
        // shared, so the two do not overlap. No reference to the mapping exists, so a host that
        // reads at the same time sees some bytes, and its checksum tells whether the right ones.
        unsafe {
            let into = self.start.as_ptr().add(offset);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), into, bytes.len());
        }
        // The message that announces the bytes passes the kernel; this keeps the compiler from
        // moving the header before the payload.
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `new` mapped exactly this range, and its address was not shared.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "a mapping that was made can be unmapped");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    #[test]
    fn what_is_written_to_the_mapping_is_in_the_memory_file() {
        let file = File::from(memfd_create("spool", MemfdFlags::CLOEXEC).unwrap());
        ftruncate(&file, 3 * 4096).unwrap();
        let mut mapping = Mapping::new(&file, 3 * 4096).unwrap();
        mapping.write(4096, b"header");
        mapping.write(3 * 4096 - 1, b"!");
        let mut got = [0; 6];
        file.read_exact_at(&mut got, 4096).unwrap();
        assert_eq!(&got, b"header");
        file.read_exact_at(&mut got[..1], 3 * 4096 - 1).unwrap();
        assert_eq!(got[0], b'!');
    }

    #[test]
    #[should_panic(expected = "a slot lies within the spool")]
    fn a_write_beyond_the_mapping_is_a_broken_invariant() {
        let file = memfd_create("spool", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, 4096).unwrap();
        Mapping::new(&file, 4096).unwrap().write(4090, b"1234567");
    }
}
