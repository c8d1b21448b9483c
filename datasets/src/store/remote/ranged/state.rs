//! Which blocks are in the cache: a word for each, in a file that all processes of a host map.
//!
//! ```text
//! word 0..8   magic, boot, number of blocks, blocks in use, 4 unused words
//! word 8 + b  generation of block b (48 bits) | owner (14 bits) | state (2 bits)
//!
//! ABSENT ──claim──► FETCHING ──put──► PRESENT ──begin_evict──► EVICTING ──end_evict──► ABSENT
//!    ▲                 │ give_up                                  │
//!    └─────────────────┘          take_over, if the owner died ◄──┘
//! ```
//!
//! A block counts as in use in every state but ABSENT. An owner holds the lock of a file with its
//! number, which the kernel releases if its process is killed. Nothing is trusted that an earlier
//! boot of the machine left, since its writes may be lost.

use super::super::cache::create_private;
use crate::error::RemoteError;
use meetpoint_storage::SharedWords;
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Identifies the layout above.
const MAGIC: u64 = u64::from_le_bytes(*b"mtpblk01");
/// Words before those of the blocks.
const HEADER_WORDS: u64 = 8;
const BOOT: usize = 1;
const BLOCKS: usize = 2;
const IN_USE: usize = 3;
/// Maximum number of owners at once.
const OWNERS_MAX: u64 = 1 << 14;
/// How long to wait for another process that opens the cache.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);
/// How long an owner that was found alive is not checked again.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

const ABSENT: u64 = 0;
const FETCHING: u64 = 1;
const PRESENT: u64 = 2;
const EVICTING: u64 = 3;

/// The state of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockState {
    /// Not in the cache.
    Absent,
    /// An owner fetches it.
    Fetching,
    /// In the cache.
    Present,
    /// An owner frees its space.
    Evicting,
}

fn state_of(word: u64) -> BlockState {
    match word & 3 {
        ABSENT => BlockState::Absent,
        FETCHING => BlockState::Fetching,
        PRESENT => BlockState::Present,
        _ => BlockState::Evicting,
    }
}

fn owner_of(word: u64) -> u64 {
    word >> 2 & (OWNERS_MAX - 1)
}

/// The word of the next generation.
fn next(word: u64, owner: u64, state: u64) -> u64 {
    (word >> 16).wrapping_add(1) << 16 | owner << 2 | state
}

/// The shared state, attached by one owner.
#[derive(Debug)]
pub(super) struct State {
    words: SharedWords,
    folder: PathBuf,
    owner: u64,
    /// When each other owner was last found alive.
    alive: Mutex<HashMap<u64, Instant>>,
    /// Locked while this lives.
    _owner_lock: File,
    /// Locked by all owners together.
    _users_lock: File,
}

/// Waits for an exclusive lock.
pub(super) fn lock_exclusive(path: &Path) -> io::Result<File> {
    let (file, started) = (create_private(path)?, Instant::now());
    while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        if started.elapsed() > OPEN_TIMEOUT {
            return Err(io::Error::other("another process has it locked for too long"));
        }
        std::thread::sleep(POLL);
    }
    Ok(file)
}

/// Whether no process uses the cache in a folder.
pub(super) fn is_idle(folder: &Path) -> bool {
    let users = create_private(&folder.join("users.lock"));
    users.is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok())
}

/// An identifier of this boot of the machine; 0 if the system has none.
fn boot() -> u64 {
    let id = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.iter().fold(0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What attaching found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing, or nothing that can be used: the file of blocks must be empty.
    Nothing,
    /// Blocks of this or other processes.
    Blocks,
}

impl State {
    /// Attaches to the state in a folder, which the caller has locked against others that attach.
    /// If no other process uses it, what killed processes left is repaired: `free` frees the space
    /// of a block that is not complete.
    pub(super) fn attach(
        folder: &Path,
        blocks: u64,
        free: &mut dyn FnMut(u64) -> io::Result<()>,
    ) -> Result<(Self, Found), RemoteError> {
        let failed = |error: io::Error| RemoteError::Cache {
            path: folder.to_path_buf(),
            problem: error.to_string(),
        };
        let users = create_private(&folder.join("users.lock")).map_err(failed)?;
        let is_alone = flock(&users, FlockOperation::NonBlockingLockExclusive).is_ok();
        let words = HEADER_WORDS.saturating_add(blocks);
        let file = open_private(&folder.join("state")).map_err(failed)?;
        let bytes = words.saturating_mul(8);
        let is_whole = file.metadata().is_ok_and(|metadata| metadata.len() == bytes);
        if !is_whole {
            if !is_alone {
                return Err(failed(io::Error::other("it is of another dataset and in use")));
            }
            file.set_len(0).map_err(failed)?;
        }
        // Allocated, since a store into a mapping of a full disk would be a fatal signal.
        fallocate(&file, FallocateFlags::empty(), 0, bytes).map_err(|it| failed(it.into()))?;
        let count =
            usize::try_from(words).map_err(|_| failed(io::ErrorKind::OutOfMemory.into()))?;
        let words = SharedWords::new(&file, count).map_err(failed)?;
        let (owner, lock) = own(folder).map_err(failed)?;
        let state = Self {
            words,
            folder: folder.to_path_buf(),
            owner,
            alive: Mutex::default(),
            _owner_lock: lock,
            _users_lock: users,
        };
        let found = match is_alone {
            true => state.repair(blocks, free).map_err(failed)?,
            false => Found::Blocks,
        };
        flock(&state._users_lock, FlockOperation::LockShared).map_err(|it| failed(it.into()))?;
        Ok((state, found))
    }

    /// Keeps the blocks of this boot, and forgets what was not finished.
    fn repair(
        &self,
        blocks: u64,
        free: &mut dyn FnMut(u64) -> io::Result<()>,
    ) -> io::Result<Found> {
        let header = &self.words.as_slice()[..HEADER_WORDS as usize];
        let load = |index: usize| header[index].load(Ordering::Acquire);
        let is_known = load(0) == MAGIC && load(BOOT) == boot() && load(BLOCKS) == blocks;
        let mut in_use = 0;
        for (block, word) in (0..).zip(self.block_words()) {
            let now = word.load(Ordering::Acquire);
            match state_of(now) {
                BlockState::Present if is_known => in_use += 1,
                BlockState::Absent if is_known => {}
                _ => {
                    if is_known {
                        free(block)?;
                    }
                    word.store(next(now, 0, ABSENT), Ordering::Release);
                }
            }
        }
        for (index, value) in [(0, MAGIC), (BOOT, boot()), (BLOCKS, blocks), (IN_USE, in_use)] {
            header[index].store(value, Ordering::Release);
        }
        Ok(if is_known && in_use > 0 { Found::Blocks } else { Found::Nothing })
    }

    fn block_words(&self) -> &[AtomicU64] {
        &self.words.as_slice()[HEADER_WORDS as usize..]
    }

    fn block(&self, block: u64) -> &AtomicU64 {
        &self.block_words()[usize::try_from(block).expect("a mapped block has an index")]
    }

    /// The word of a block, which changes whenever its content may have.
    pub(super) fn word(&self, block: u64) -> u64 {
        self.block(block).load(Ordering::Acquire)
    }

    /// The state of a block.
    pub(super) fn of(&self, block: u64) -> BlockState {
        state_of(self.word(block))
    }

    /// The blocks in the cache.
    pub(super) fn present(&self) -> impl Iterator<Item = u64> {
        let words = (0..).zip(self.block_words());
        words.filter_map(|(block, word)| {
            (state_of(word.load(Ordering::Acquire)) == BlockState::Present).then_some(block)
        })
    }

    /// Number of blocks in use.
    pub(super) fn in_use(&self) -> u64 {
        self.words.as_slice()[IN_USE].load(Ordering::Acquire)
    }

    /// Counts `blocks` more as in use, or returns by how many that would exceed the limit.
    pub(super) fn reserve(&self, blocks: u64, limit: u64) -> Result<(), u64> {
        let in_use = &self.words.as_slice()[IN_USE];
        let add = |now: u64| now.checked_add(blocks).filter(|after| *after <= limit);
        let reserved = in_use.fetch_update(Ordering::AcqRel, Ordering::Acquire, add);
        reserved.map(drop).map_err(|now| now.saturating_add(blocks).saturating_sub(limit))
    }

    /// Counts blocks as no longer in use.
    pub(super) fn free(&self, blocks: u64) {
        let sub = |now: u64| Some(now.saturating_sub(blocks));
        let in_use = &self.words.as_slice()[IN_USE];
        let _ = in_use.fetch_update(Ordering::AcqRel, Ordering::Acquire, sub);
    }

    /// Changes the state of a block, if it is in the given one.
    fn change(&self, block: u64, from: BlockState, to: u64) -> bool {
        let word = self.block(block);
        let now = word.load(Ordering::Acquire);
        let after = next(now, self.owner, to);
        state_of(now) == from
            && word.compare_exchange(now, after, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Claims an absent block that the caller has reserved; `false` if another owner was faster.
    pub(super) fn claim(&self, block: u64) -> bool {
        self.change(block, BlockState::Absent, FETCHING)
    }

    /// Claims a block whose owner died while it fetched or evicted it. It stays in use.
    pub(super) fn take_over(&self, block: u64) -> bool {
        let word = self.word(block);
        let is_unfinished = matches!(state_of(word), BlockState::Fetching | BlockState::Evicting);
        if !is_unfinished || owner_of(word) == self.owner || self.is_alive(owner_of(word)) {
            return false;
        }
        let after = next(word, self.owner, FETCHING);
        let claimed =
            self.block(block).compare_exchange(word, after, Ordering::AcqRel, Ordering::Acquire);
        claimed.is_ok()
    }

    /// Marks a block that this owner fetched as present.
    pub(super) fn put(&self, block: u64) {
        self.change(block, BlockState::Fetching, PRESENT);
    }

    /// Marks a block that this owner could not fetch as absent.
    pub(super) fn give_up(&self, block: u64) {
        if self.change(block, BlockState::Fetching, ABSENT) {
            self.free(1);
        }
    }

    /// Begins to evict a block; `false` if it is no longer present.
    pub(super) fn begin_evict(&self, block: u64) -> bool {
        self.change(block, BlockState::Present, EVICTING)
    }

    /// Ends an eviction, once the space is freed.
    pub(super) fn end_evict(&self, block: u64) {
        if self.change(block, BlockState::Evicting, ABSENT) {
            self.free(1);
        }
    }

    fn is_alive(&self, owner: u64) -> bool {
        let mut alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        if alive.get(&owner).is_some_and(|seen| seen.elapsed() < LOOK_AGAIN) {
            return true;
        }
        let lock = create_private(&owner_path(&self.folder, owner));
        let is_locked =
            |file: File| flock(&file, FlockOperation::NonBlockingLockExclusive).is_err();
        let is_alive = lock.map_or(true, is_locked);
        match is_alive {
            true => alive.insert(owner, Instant::now()),
            false => alive.remove(&owner),
        };
        is_alive
    }
}

fn owner_path(folder: &Path, owner: u64) -> PathBuf {
    folder.join(format!("owner-{owner}.lock"))
}

/// Takes the first free number of an owner, from 1.
fn own(folder: &Path) -> io::Result<(u64, File)> {
    for owner in 1..OWNERS_MAX {
        let file = create_private(&owner_path(folder, owner))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return Ok((owner, file));
        }
    }
    Err(io::Error::other("too many processes use it"))
}

/// Opens or creates a file that only the user can read and write, and that is not a link.
pub(super) fn open_private(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attach(folder: &Path, blocks: u64) -> (State, Found) {
        State::attach(folder, blocks, &mut |_| Ok(())).unwrap()
    }

    #[test]
    fn blocks_survive_their_process_and_unfinished_ones_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let (state, found) = attach(folder.path(), 5);
        assert_eq!((found, state.in_use()), (Found::Nothing, 0));
        assert_eq!(state.reserve(3, 3), Ok(()));
        assert_eq!(state.reserve(2, 3), Err(2));
        assert!(state.claim(1) && state.claim(2) && state.claim(4) && !state.claim(4));
        state.put(1);
        state.put(4);
        assert!(state.begin_evict(4) && !state.begin_evict(4));
        // As if it were killed: one block is there, one is being fetched, one evicted.
        drop(state);
        let mut freed = Vec::new();
        let mut free = |block| {
            freed.push(block);
            Ok(())
        };
        let (state, found) = State::attach(folder.path(), 5, &mut free).unwrap();
        assert_eq!((found, state.in_use(), freed), (Found::Blocks, 1, vec![2, 4]));
        assert_eq!(state.present().collect::<Vec<_>>(), [1]);
        drop(state);
        let (_, found) = attach(folder.path(), 6);
        assert_eq!(found, Found::Nothing, "other blocks");
    }

    #[test]
    fn an_owner_takes_over_only_from_a_dead_one() {
        let folder = tempfile::tempdir().unwrap();
        let (first, _) = attach(folder.path(), 2);
        let (second, found) = attach(folder.path(), 2);
        assert_eq!(found, Found::Blocks, "in use by another");
        first.reserve(1, 2).unwrap();
        assert!(first.claim(0));
        assert!(!second.claim(0));
        drop(first);
        assert!(second.take_over(0));
        second.put(0);
        assert_eq!((second.of(0), second.in_use()), (BlockState::Present, 1));
    }

    #[test]
    fn a_block_that_changed_has_another_word() {
        let folder = tempfile::tempdir().unwrap();
        let (state, _) = attach(folder.path(), 1);
        let mut words = vec![state.word(0)];
        for _ in 0..2 {
            state.reserve(1, 1).unwrap();
            assert!(state.claim(0));
            state.put(0);
            words.push(state.word(0));
            assert!(state.begin_evict(0));
            state.end_evict(0);
        }
        words.dedup();
        assert_eq!((words.len(), state.in_use()), (3, 0));
    }
}
