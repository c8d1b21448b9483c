//! Stored samples without a copy: the parts of a dataset mapped into memory.
//!
//! A part is written once, synced and renamed, and no command of this program shortens one. Should
//! something else shorten a part that is mapped, the kernel answers the next access behind its new
//! end with SIGBUS, which ends the process: map only what nobody writes to, and use
//! [`SampleReader`](crate::SampleReader) for the rest.
#![expect(unsafe_code, reason = "maps files into memory")]

use crate::{Dataset, Error};
use meetpoint_format::dataset::SampleLocation;
use meetpoint_storage::files::open_regular;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

/// A file mapped for reading.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory is only read, and belongs to nobody else.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn of(path: &Path, bytes: u64) -> std::io::Result<Self> {
        let file = open_regular(path)?;
        let length = file.metadata()?.len();
        if length != bytes {
            let problem = format!("{length} bytes long, dataset.json says {bytes}");
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, problem));
        }
        let bytes = usize::try_from(bytes).map_err(std::io::Error::other)?;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe {
            mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, &file, 0)
        }?;
        let start = NonNull::new(start.cast()).expect("a mapping is never at address 0");
        Ok(Self { start, bytes })
    }

    fn advise(&self, advice: Advice) {
        // SAFETY: the range is this mapping's own; these pieces of advice change no content. One
        // that the kernel does not take costs speed alone.
        let _ = unsafe { madvise(self.start.as_ptr().cast(), self.bytes, advice) };
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is readable, so long, and lives as long as what is lent; nobody
        // writes through it. That nobody shortens the file is the caller's to know, see above.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is this mapping's own, and nothing lent outlives it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// A dataset whose parts are mapped into memory; takes address space, and memory only as the page
/// cache does. Shareable among threads.
#[derive(Debug)]
pub struct MappedDataset {
    dataset: Arc<Dataset>,
    parts: Vec<Mapping>,
}

impl MappedDataset {
    /// Maps the parts. `is_sequential` tells the kernel to read ahead, or not to.
    ///
    /// A dataset whose content stays in place is refused: its files may change.
    pub fn new(dataset: Arc<Dataset>, is_sequential: bool) -> Result<Self, Error> {
        if let Some(root) = dataset.content_root() {
            return Err(Error::NotMapped { root: root.to_path_buf() });
        }
        let entries = &dataset.manifest().parts;
        let parts = (0..entries.len())
            .map(|part| {
                let path = dataset.part_path(part);
                let mapping = Mapping::of(&path, entries[part].bytes)
                    .map_err(|source| Error::Content { path, source })?;
                mapping.advise(if is_sequential { Advice::Sequential } else { Advice::Random });
                Ok(mapping)
            })
            .collect::<Result<_, Error>>()?;
        Ok(Self { dataset, parts })
    }

    /// The dataset.
    pub fn dataset(&self) -> &Arc<Dataset> {
        &self.dataset
    }

    /// The stored bytes of a sample where they lie, compared with their checksum.
    pub fn sample(&self, sample: u64) -> Result<(SampleLocation, &[u8]), Error> {
        let location = self.dataset.locate(sample)?;
        let start = usize::try_from(location.offset).expect("in memory");
        let bytes = usize::try_from(location.bytes).expect("in memory");
        // The index has held offsets against the length of the part, as mapping has.
        let stored = &self.parts[location.part].bytes()[start..start + bytes];
        self.dataset.check_image(sample, &location, stored)?;
        Ok((location, stored))
    }
}
