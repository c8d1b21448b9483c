//! The spool as its owner sees it: anonymous memory or a file without a name, cut into slots.
//!
//! Nothing of it has a name, so nothing of it is left behind, whoever dies. A slot that a device
//! published belongs to the host until it is released; a device writes to free slots only. That is
//! the trust boundary: host and device run under the same user, and a device that writes to a slot
//! which it gave away can change a batch after its checksum was checked.
#![expect(unsafe_code, reason = "maps the memory that it shares with the device")]

use crate::config::{SpoolConfig, SpoolKind};
use crate::job::free_bytes;
use crate::places::SpoolLimits;
use crate::{Error, clock};
use meetpoint_format::units::show_bytes;
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::ptr::NonNull;

/// Slots that a host and one device share.
#[derive(Debug)]
pub(crate) struct Spool {
    file: File,
    limits: SpoolLimits,
    /// Present where the slots are memory.
    mapping: Option<Mapping>,
    /// By which the device will know it.
    token: u64,
    /// What it had to do without, as sentences.
    notices: Vec<String>,
}

/// A read-only view of all slots: the host never writes to one.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is only read, and unmapped once, by whoever drops it last.
unsafe impl Send for Mapping {}

// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Spool {
    /// Makes a spool, all of it reserved.
    pub(crate) fn create(config: &SpoolConfig, limits: SpoolLimits) -> Result<Self, Error> {
        let bytes = limits.bytes();
        let mut notices = Vec::new();
        let place = match &config.kind {
            SpoolKind::Memory => "memory".to_owned(),
            SpoolKind::File { directory } => directory.display().to_string(),
        };
        let failed = |source| {
            let (place, remedy) = (place.clone(), remedy(&config.kind));
            Error::Spool { bytes, place, source, remedy }
        };
        let (file, mapping) = match &config.kind {
            SpoolKind::Memory => {
                let file = memory_file(bytes).map_err(failed)?;
                let mapping = Mapping::new(&file, bytes).map_err(failed)?;
                (file, Some(mapping))
            }
            SpoolKind::File { directory } => {
                let (file, notice) = unnamed_file(directory, bytes).map_err(failed)?;
                notices.extend(notice);
                (file, None)
            }
        };
        // Tokens tell spools of one device apart; the socket's permissions keep others out.
        let token = RandomState::new().hash_one((std::process::id(), clock::monotonic_ns()));
        Ok(Self { file, limits, mapping, token, notices })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn limits(&self) -> SpoolLimits {
        self.limits
    }

    pub(crate) fn token(&self) -> u64 {
        self.token
    }

    pub(crate) fn notices(&self) -> &[String] {
        &self.notices
    }

    /// First byte of a slot in the file.
    pub(crate) fn offset(&self, slot: u32) -> u64 {
        u64::from(slot) * self.limits.slot_bytes
    }

    /// A slot's bytes where they are memory. Only for slots that the device has given away.
    pub(crate) fn slot(&self, slot: u32) -> Option<&[u8]> {
        let mapping = self.mapping.as_ref()?;
        assert!(slot < self.limits.slots, "slot {slot} was checked when it was published");
        let bytes = usize::try_from(self.limits.slot_bytes).expect("a mapped slot fits");
        // SAFETY: the slot lies within the mapping, whose file cannot shrink (it is sealed), and
        // nobody writes to it: the host has no writable view, and the device gave the slot away.
        Some(unsafe {
            std::slice::from_raw_parts(mapping.start.add(slot as usize * bytes).as_ptr(), bytes)
        })
    }
}

impl Mapping {
    fn new(file: &File, bytes: u64) -> std::io::Result<Self> {
        let bytes = usize::try_from(bytes).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new mapping at an address of the kernel's choice touches nobody's memory.
        let start = unsafe {
            mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, file, 0)
        }?;
        let start = NonNull::new(start.cast()).expect("a mapping is not at address 0");
        Ok(Self { start, bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped; slices of it borrow the spool that owns this.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        unmapped.expect("the range is exactly what was mapped");
    }
}

/// What to do when a spool cannot be made.
fn remedy(kind: &SpoolKind) -> String {
    match kind {
        SpoolKind::Memory => {
            "set the spool's quota to less, or raise the limit of address space (ulimit -v)".into()
        }
        SpoolKind::File { directory } => {
            let free = free_bytes(directory)
                .map_or_else(String::new, |free| format!("{} are free there: ", show_bytes(free)));
            format!("{free}set the spool's quota to less, or its directory to another folder")
        }
    }
}

/// Anonymous memory whose length nobody can change.
fn memory_file(bytes: u64) -> std::io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(memfd_create("meetpoint-spool", flags)?);
    file.set_len(bytes)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// A file without a name, all of its blocks reserved.
fn unnamed_file(directory: &Path, bytes: u64) -> std::io::Result<(File, Option<String>)> {
    // Without the name that was tried, which says nothing to a user.
    let file = tempfile::tempfile_in(directory).map_err(|error| match error.raw_os_error() {
        Some(_) => error,
        None => error.kind().into(),
    })?;
    match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) => Ok((file, None)),
        Err(Errno::OPNOTSUPP) => {
            file.set_len(bytes)?;
            let notice = format!(
                "the file system of {} cannot reserve blocks: a full disk will show only while \
                 the device writes, and the host then prepares those batches",
                directory.display()
            );
            Ok((file, Some(notice)))
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileExt, MetadataExt};

    fn limits(slots: u32) -> SpoolLimits {
        SpoolLimits { slots, slot_bytes: 8192, slots_scheduled: slots }
    }

    #[test]
    fn what_the_other_side_writes_to_a_memory_slot_is_seen_in_place() {
        let config = SpoolConfig { kind: SpoolKind::Memory, quota_bytes: 1 << 20 };
        let spool = Spool::create(&config, limits(3)).unwrap();
        spool.file().write_all_at(&[9; 8192], spool.offset(1)).unwrap();
        assert!(spool.slot(1).unwrap().iter().all(|&byte| byte == 9));
        assert!(spool.slot(2).unwrap().iter().all(|&byte| byte == 0));
        assert!(spool.file().set_len(0).is_err(), "the other side cannot cut it short");
    }

    #[test]
    fn a_spool_file_has_no_name_and_is_reserved() {
        let directory = tempfile::tempdir().unwrap();
        let kind = SpoolKind::File { directory: directory.path().to_path_buf() };
        let config = SpoolConfig { kind, quota_bytes: 1 << 20 };
        let spool = Spool::create(&config, limits(3)).unwrap();
        let metadata = spool.file().metadata().unwrap();
        assert_eq!((metadata.len(), metadata.nlink()), (3 * 8192, 0));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        assert!(spool.slot(0).is_none());
        assert!(metadata.blocks() * 512 >= 3 * 8192 || !spool.notices().is_empty());
    }

    #[test]
    fn a_spool_where_there_is_no_directory_is_an_error_that_names_it() {
        let kind = SpoolKind::File { directory: "/nowhere/at/all".into() };
        let config = SpoolConfig { kind, quota_bytes: 1 << 20 };
        let error = Spool::create(&config, limits(1)).unwrap_err().to_string();
        assert!(error.contains("/nowhere/at/all"), "{error}");
    }
}
