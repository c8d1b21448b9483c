//! The spool on the host's side: anonymous memory or a file without a name, divided into slots.
//!
//! It has no name, so a killed process leaves nothing behind. A slot that a device published
//! belongs to the host until it is released; a device writes only to free slots. This is the trust
//! boundary: host and device run under the same user, and a device that writes to a slot that it
//! published can change a batch after its checksum was checked.
//!
//! A slot in memory is mapped writable and shared, so that the owner of the batch may write to it
//! in place. A private mapping would keep showing the first batch that was written to in that slot.

use crate::config::{SpoolConfig, SpoolKind};
use crate::job::free_bytes;
use crate::limits::SpoolLimits;
use crate::notice::Notice;
use crate::page_locks::PageLocks;
use crate::{Error, clock};
use meetpoint_diagnose::{Change, Remedy, Setting};
use meetpoint_format::units::show_bytes;
use meetpoint_storage::{MemoryLimit, SharedMapping, open_files_limit};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, memfd_create};
use rustix::io::{Errno, retry_on_intr};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::ptr::NonNull;

/// Bytes of memory that are reserved per call.
const RESERVED_AT_ONCE: u64 = 64 << 20;

/// Slots that a host and one device share.
#[derive(Debug)]
pub(crate) struct Spool {
    file: File,
    limits: SpoolLimits,
    /// Declared before the mapping: pages are unlocked before they are unmapped.
    page_locks: PageLocks,
    /// The mapping, if the slots are in memory.
    mapping: Option<SharedMapping>,
    /// Identifies the spool to the device.
    token: u64,
    /// Features that it lacks.
    notices: Vec<Notice>,
}

impl Spool {
    /// Creates a spool and reserves all of it.
    pub(crate) fn create(config: &SpoolConfig, limits: SpoolLimits) -> Result<Self, Error> {
        let bytes = limits.bytes();
        let mut notices = Vec::new();
        let place = match &config.kind {
            SpoolKind::Memory => "memory".to_owned(),
            SpoolKind::File { directory } => directory.display().to_string(),
        };
        let failed = |source| {
            let (place, remedy) = (place.clone(), remedy(&config.kind, &source));
            Error::Spool { bytes, place, source, remedy }
        };
        let (file, mapping) = match &config.kind {
            SpoolKind::Memory => {
                check_memory(bytes, MemoryLimit::of_this_process())?;
                let file = memory_file(bytes).map_err(failed)?;
                let mapping = SharedMapping::new(&file, bytes).map_err(failed)?;
                (file, Some(mapping))
            }
            SpoolKind::File { directory } => {
                let (file, notice) = unnamed_file(directory, bytes).map_err(failed)?;
                notices.extend(notice);
                (file, None)
            }
        };
        // Tokens distinguish the spools of one device; the socket's permissions keep other users
        // out.
        let token = RandomState::new().hash_one((std::process::id(), clock::monotonic_ns()));
        let page_locks = PageLocks::default();
        Ok(Self { file, limits, page_locks, mapping, token, notices })
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

    pub(crate) fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// First byte of a slot in the file.
    pub(crate) fn offset(&self, slot: u32) -> u64 {
        u64::from(slot) * self.limits.slot_bytes
    }

    /// Which of its slots are page-locked.
    pub(crate) fn page_locks(&self) -> &PageLocks {
        &self.page_locks
    }

    /// A slot's bytes, if they are in memory: initialised, and mapped readable and writable while
    /// this spool lives. Only the holder of the slot's lease may access them.
    pub(crate) fn slot(&self, slot: u32) -> Option<NonNull<[u8]>> {
        let mapping = self.mapping.as_ref()?;
        assert!(slot < self.limits.slots, "slot {slot} was checked when it was published");
        let bytes = usize::try_from(self.limits.slot_bytes).expect("a mapped slot fits");
        Some(mapping.range(slot as usize * bytes, bytes))
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        // A fetching thread, or a device that is stopped, may have a descriptor of the file for
        // longer, which would keep the disk space from the next spool.
        if self.mapping.is_none() {
            let _ = self.file.set_len(0);
        }
    }
}

/// The remedy if a spool cannot be created.
fn remedy(kind: &SpoolKind, source: &std::io::Error) -> Remedy {
    if let Some(limit) = open_files_limit(source) {
        return limit.into();
    }
    let lower = Remedy::set(Setting::SpoolQuota, Change::Lower);
    match (Errno::from_io_error(source), kind) {
        (Some(Errno::FBIG), _) => lower.or("raise the limit of file size (ulimit -f)"),
        (Some(Errno::NOMEM), _) => lower.or("raise the limit of address space (ulimit -v)"),
        (_, SpoolKind::Memory) => lower.or("keep the spool in a file"),
        (_, SpoolKind::File { directory }) => {
            let free = free_bytes(directory)
                .map_or_else(String::new, |free| format!(" ({} are free there)", show_bytes(free)));
            lower.or(format!("keep the spool in another folder{free}"))
        }
    }
}

/// Refuses a spool that exceeds the available memory: reserving it would kill the process.
fn check_memory(bytes: u64, limit: MemoryLimit) -> Result<(), Error> {
    if bytes > limit.available_bytes {
        return Err(Error::SpoolTooLarge { bytes, limit });
    }
    Ok(())
}

/// Anonymous memory, fully reserved, whose length is sealed. Without the reservation, an access to
/// memory that the kernel cannot provide is a fatal signal.
fn memory_file(bytes: u64) -> std::io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(memfd_create("meetpoint-spool", flags)?);
    file.set_len(bytes)?;
    let mut begin = 0;
    while begin < bytes {
        // A signal undoes the interrupted call, so each call reserves only a part.
        let part = (bytes - begin).min(RESERVED_AT_ONCE);
        retry_on_intr(|| fallocate(&file, FallocateFlags::empty(), begin, part))?;
        begin += part;
    }
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// A file without a name, with all of its blocks reserved.
fn unnamed_file(directory: &Path, bytes: u64) -> std::io::Result<(File, Option<Notice>)> {
    // Without the name that was tried, which means nothing to a user.
    let file = tempfile::tempfile_in(directory).map_err(|error| match error.raw_os_error() {
        Some(_) => error,
        None => error.kind().into(),
    })?;
    match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) => Ok((file, None)),
        Err(Errno::OPNOTSUPP) => {
            file.set_len(bytes)?;
            let notice = Notice::SpoolNotReserved { directory: directory.to_path_buf() };
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
    #[expect(unsafe_code, reason = "borrows slots")]
    fn what_the_other_side_writes_to_a_memory_slot_is_seen_in_place() {
        let config = SpoolConfig { kind: SpoolKind::Memory, quota_bytes: 1 << 20 };
        let spool = Spool::create(&config, limits(3)).unwrap();
        spool.file().write_all_at(&[9; 8192], spool.offset(1)).unwrap();
        let bytes = |slot| {
            // SAFETY: nothing writes to the spool while the slice is used.
            unsafe { spool.slot(slot).unwrap().as_ref() }
        };
        assert!(bytes(1).iter().all(|&byte| byte == 9));
        assert!(bytes(2).iter().all(|&byte| byte == 0));
        assert!(spool.file().set_len(0).is_err(), "the other side cannot cut it short");
    }

    #[test]
    fn a_memory_spool_is_reserved() {
        let config = SpoolConfig { kind: SpoolKind::Memory, quota_bytes: 1 << 20 };
        let spool = Spool::create(&config, limits(3)).unwrap();
        assert_eq!(spool.file().metadata().unwrap().blocks() * 512, 3 * 8192);
    }

    #[test]
    fn a_memory_spool_beyond_what_is_available_is_refused() {
        let limit = MemoryLimit { bytes: 1 << 30, available_bytes: 4096, file: None };
        assert!(check_memory(4096, limit.clone()).is_ok());
        let refused = check_memory(4097, limit);
        assert!(matches!(refused, Err(Error::SpoolTooLarge { bytes: 4097, .. })));
    }

    #[test]
    fn the_remedy_names_the_limit_that_was_met() {
        let shown = |kind: &SpoolKind, error: &std::io::Error| {
            remedy(kind, error).spelled(meetpoint_diagnose::Surface::CommandLine)
        };
        for kind in [SpoolKind::Memory, SpoolKind::File { directory: "/".into() }] {
            for (error, limit) in [
                (Errno::FBIG, "ulimit -f"),
                (Errno::NOMEM, "ulimit -v"),
                (Errno::MFILE, "ulimit -n"),
            ] {
                assert!(shown(&kind, &error.into()).contains(limit));
            }
            assert!(!shown(&kind, &Errno::NOSPC.into()).contains("ulimit"));
        }
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
    fn a_dropped_spool_file_takes_no_space_although_another_descriptor_is_open() {
        let directory = tempfile::tempdir().unwrap();
        let kind = SpoolKind::File { directory: directory.path().to_path_buf() };
        let config = SpoolConfig { kind, quota_bytes: 1 << 20 };
        let spool = Spool::create(&config, limits(3)).unwrap();
        let descriptor = spool.file().try_clone().unwrap();
        descriptor.write_all_at(&[9; 8192], spool.offset(1)).unwrap();
        drop(spool);
        let metadata = descriptor.metadata().unwrap();
        assert_eq!((metadata.len(), metadata.blocks()), (0, 0));
    }

    #[test]
    fn a_spool_where_there_is_no_directory_is_an_error_that_names_it() {
        let kind = SpoolKind::File { directory: "/nowhere/at/all".into() };
        let config = SpoolConfig { kind, quota_bytes: 1 << 20 };
        let error = Spool::create(&config, limits(1)).unwrap_err().to_string();
        assert!(error.contains("/nowhere/at/all"), "{error}");
    }
}
