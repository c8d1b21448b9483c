//! Lets the ranks of a machine find the memory of one cache.
//!
//! The first rank creates memory without a name, and writes its location to a small private file;
//! the others open it there. The last rank removes the file. Nothing is cached before that, so a
//! group that is killed at any time leaves at most that file behind, and no memory.

use super::region::Region;
use super::{CacheError, Shape};
use crate::job::Job;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use rustix::process::{geteuid, getppid};
use rustix::time::{ClockId, clock_gettime};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest wait for another rank to unlock the file; while it holds the lock, it only maps memory.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
/// Time between two attempts to lock it.
const LOCK_PAUSE: Duration = Duration::from_millis(5);
/// Longest content of the file.
const FILE_BYTES_MAX: u64 = 256;

/// One process's part in a group.
#[derive(Debug)]
pub(crate) struct Member {
    /// The memory, which others open by this descriptor's number; only the creator has it.
    _memory: Option<File>,
    /// The file that names it, if this process wrote it.
    named: Option<PathBuf>,
}

impl Member {
    /// A member with memory that no other process shares.
    pub(crate) fn alone() -> Self {
        Self { _memory: None, named: None }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // If the group was complete, the file is already removed.
        let Some(path) = &self.named else { return };
        let own = format!("{} ", std::process::id());
        if std::fs::read_to_string(path).is_ok_and(|text| text.starts_with(&own)) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// What the ranks of one job, and no others, share: dataset, cached operations, budget, and the
/// process that started them.
pub(crate) fn key(job: &Job, operations: usize, bytes: u64) -> String {
    let mut hash = Sha256::new();
    hash.update(job.dataset.manifest_sha256());
    hash.update(job.recipe.beginning(operations).hash().to_string());
    hash.update(job.batching.sampling().checksum());
    let parent = getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
    for number in [
        bytes,
        job.batching.seed(),
        u64::from(job.batching.rank().ranks),
        u64::from(job.batching.batch_size()),
        u64::from(parent.unsigned_abs()),
    ] {
        hash.update(number.to_le_bytes());
    }
    let hash = hash.finalize();
    hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect()
}

/// The folder for the file: a private folder of this user, if there is one.
fn folder() -> PathBuf {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    own.filter(|path| path.is_dir()).unwrap_or_else(std::env::temp_dir)
}

/// Creates or opens the memory of a group; also returns the number of this member.
pub(crate) fn join(
    key: &str,
    rank: u64,
    shape: Shape,
) -> Result<(Region, Member, u64), CacheError> {
    let name = format!("meetpoint-cache-{}-{key}", geteuid().as_raw());
    join_at(&folder().join(name), rank, shape)
}

/// The same with the file at this path.
pub(crate) fn join_at(
    path: &Path,
    rank: u64,
    shape: Shape,
) -> Result<(Region, Member, u64), CacheError> {
    let mut file = lock(path)?;
    let failed = |action: &'static str| {
        let path = path.to_path_buf();
        move |source| CacheError::Io { action, path, source }
    };
    let mut text = String::new();
    (&mut file).take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(failed("read"))?;
    if let Some(region) = existing(&text, shape).filter(|region| !region.is_complete()) {
        if region.count_member() == shape.members {
            std::fs::remove_file(path).map_err(failed("remove"))?;
        }
        return Ok((region, Member::alone(), rank));
    }
    // The file of a killed group is overwritten.
    let nonce = nonce();
    let (region, memory) = Region::create(shape, nonce)?;
    let text = format!("{} {} {nonce}\n", std::process::id(), memory.as_raw_fd());
    file.set_len(0).map_err(failed("write"))?;
    file.rewind().map_err(failed("write"))?;
    file.write_all_at(text.as_bytes(), 0).map_err(failed("write"))?;
    file.flush().map_err(failed("write"))?;
    region.count_member();
    let member = Member { _memory: Some(memory), named: Some(path.to_path_buf()) };
    Ok((region, member, rank))
}

/// Distinguishes memory from that of an earlier process with the same process id.
fn nonce() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let mut hash = Sha256::new();
    hash.update(std::process::id().to_le_bytes());
    hash.update(time.tv_sec.to_le_bytes());
    hash.update(time.tv_nsec.to_le_bytes());
    let hash = hash.finalize();
    u64::from_le_bytes(*hash.first_chunk().expect("32 bytes"))
}

/// The memory that a file names; `None` if its process has ended or it is something else.
fn existing(text: &str, shape: Shape) -> Option<Region> {
    let mut words = text.split_whitespace();
    let mut number = || words.next()?.parse::<u64>().ok();
    let (process, descriptor, nonce) = (number()?, number()?, number()?);
    // The file belongs to a discarded loader of this process.
    if process == u64::from(std::process::id()) {
        return None;
    }
    let memory = format!("/proc/{process}/fd/{descriptor}");
    let memory = File::options().read(true).write(true).open(memory).ok()?;
    Region::attach(&memory, shape, nonce)
}

/// Opens the file, which must be private to this user, and locks it.
fn lock(path: &Path) -> Result<File, CacheError> {
    let failed = |action, errno: Errno| CacheError::Io {
        action,
        path: path.to_path_buf(),
        source: errno.into(),
    };
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mode = Mode::RUSR | Mode::WUSR;
    let mut waited = Duration::ZERO;
    loop {
        let opened = rustix::fs::open(path, flags, mode).map_err(|errno| failed("open", errno))?;
        let file = File::from(opened);
        let metadata = file.metadata().map_err(|source| CacheError::Io {
            action: "open",
            path: path.to_path_buf(),
            source,
        })?;
        let is_private = metadata.uid() == geteuid().as_raw() && metadata.mode() & 0o077 == 0;
        if !is_private || !metadata.is_file() {
            return Err(CacheError::NotPrivate { path: path.to_path_buf() });
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // Another rank may have removed it in the meantime.
            Ok(()) if file.metadata().is_ok_and(|metadata| metadata.nlink() == 1) => {
                return Ok(file);
            }
            Ok(()) => continue,
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(errno) => return Err(failed("lock", errno)),
        }
        if waited >= LOCK_PATIENCE {
            return Err(CacheError::Locked { path: path.to_path_buf() });
        }
        std::thread::sleep(LOCK_PAUSE);
        waited += LOCK_PAUSE;
    }
}
