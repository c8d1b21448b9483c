//! The cached blocks of a dataset: a sparse file with each block at its place, and evictions.
//!
//! The space of an evicted block is freed by a hole in the file.

use super::blocks::{BLOCK_BYTES, Blocks};
use super::cache_folder::{BLOCKS_NAME, DatasetCacheFolder, not_written};
use super::state::{BlockState, Found, State, open_private};
use crate::error::RemoteError;
use meetpoint_format::split_mix::SplitMix64;
use meetpoint_prepare::NextUse;
use rustix::fs::{FallocateFlags, fallocate};
use std::collections::{BinaryHeap, HashMap};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of blocks among which those to evict are selected.
const CANDIDATES_MAX: usize = 1024;
/// Blocks that are evicted together.
const EVICTED_TOGETHER: u64 = 64;
/// Evictions without a candidate after which the blocks of other processes are looked for again.
const LOOK_AGAIN: u64 = 64;

/// The cache of a dataset.
#[derive(Debug)]
pub(super) struct BlockCache {
    blocks: Blocks,
    state: State,
    file: File,
    path: PathBuf,
    /// Maximum number of blocks in use.
    limit: u64,
    books: Mutex<Books>,
    evicted: AtomicU64,
}

/// What this process knows about blocks.
#[derive(Debug)]
struct Books {
    /// Blocks that readers need now, with the number of their reservations.
    pins: HashMap<u64, u32>,
    /// Blocks that may be evicted; some of them may be gone.
    held: Vec<u64>,
    /// Selects candidates. Their order does not affect what readers get.
    random: SplitMix64,
    uses: Option<Arc<dyn NextUse>>,
    /// Evictions without a candidate since the last look at the shared state.
    failed_looks: u64,
}

impl BlockCache {
    /// Opens the cache of a dataset in a cache folder, and removes those of other datasets that
    /// no process uses, as far as their bytes exceed the limit.
    pub(super) fn open(
        cache: Option<&Path>,
        (blocks, manifest_sha256): (Blocks, [u8; 32]),
        bytes_max: u64,
    ) -> Result<Self, RemoteError> {
        let limit = (bytes_max / BLOCK_BYTES).min(blocks.len());
        let others_bytes_max = bytes_max - limit * BLOCK_BYTES;
        let DatasetCacheFolder { path: folder, lock: _lock } =
            DatasetCacheFolder::create(cache, manifest_sha256, others_bytes_max)?;
        let path = folder.join(BLOCKS_NAME);
        let failed = |error: io::Error| not_written(&path, &error);
        let file = open_private(&path).map_err(failed)?;
        let mut free = |block: u64| punch(&file, block..block + 1);
        let (state, found) = State::attach(&folder, blocks.len(), &mut free)?;
        let prepare = || -> io::Result<()> {
            if found == Found::Nothing {
                file.set_len(0)?;
            }
            file.set_len(blocks.len().saturating_mul(BLOCK_BYTES))?;
            // Fails at once where the file system cannot free parts of a file.
            match blocks.len() {
                1.. if state.of(0) == BlockState::Absent => punch(&file, 0..1),
                _ => Ok(()),
            }
        };
        prepare().map_err(failed)?;
        let mut books = Books {
            pins: HashMap::new(),
            held: Vec::new(),
            random: SplitMix64::new(0),
            uses: None,
            failed_looks: 0,
        };
        if limit < blocks.len() {
            books.held = state.present().collect();
        }
        let cache = Self {
            blocks,
            state,
            file,
            path,
            limit,
            books: Mutex::new(books),
            evicted: AtomicU64::new(0),
        };
        // An earlier run may have had a higher limit.
        let excess = cache.state.in_use().saturating_sub(limit);
        cache.evict(&mut cache.lock(), excess, u64::MAX)?;
        Ok(cache)
    }

    pub(super) fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Maximum bytes.
    pub(super) fn limit_bytes(&self) -> u64 {
        self.limit.saturating_mul(BLOCK_BYTES)
    }

    /// Whether it is smaller than the dataset.
    pub(super) fn evicts(&self) -> bool {
        self.limit < self.blocks.len()
    }

    /// Evicts by this order from now on.
    pub(super) fn follow(&self, uses: Arc<dyn NextUse>) {
        self.lock().uses = Some(uses);
    }

    /// Bytes that were evicted.
    pub(super) fn evicted_bytes(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed) * BLOCK_BYTES
    }

    /// Reserves blocks for a reader. Returns how many of them are missing; `None` if readers have
    /// reserved their share, unless it is `forced`.
    pub(super) fn pin(&self, blocks: Range<u64>, forced: bool) -> Option<u64> {
        let mut books = self.lock();
        let count = blocks.end - blocks.start;
        let is_over_share = books.pins.len() as u64 + count > self.limit / 4;
        if !forced && self.evicts() && is_over_share {
            return None;
        }
        for block in blocks.clone() {
            *books.pins.entry(block).or_default() += 1;
        }
        let is_absent = |block: &u64| self.state.of(*block) == BlockState::Absent;
        Some(blocks.filter(is_absent).count() as u64)
    }

    /// Ends a reservation.
    pub(super) fn unpin(&self, blocks: Range<u64>) {
        let mut books = self.lock();
        for block in blocks {
            if let Some(pins) = books.pins.get_mut(&block) {
                *pins -= 1;
                if *pins == 0 {
                    books.pins.remove(&block);
                }
            }
        }
    }

    /// Whether blocks are in the cache.
    pub(super) fn has(&self, mut blocks: Range<u64>) -> bool {
        blocks.all(|block| self.state.of(block) == BlockState::Present)
    }

    /// Claims those of some blocks that are neither in the cache nor being fetched, and makes space
    /// for them. Stops at the first block for which there is no space; returns the number of blocks
    /// before it. The claimed ones are appended to `claimed`. If the blocks are not `demanded`,
    /// nothing is evicted that is needed before them.
    pub(super) fn claim(
        &self,
        blocks: Range<u64>,
        demanded: bool,
        claimed: &mut Vec<u64>,
    ) -> Result<u64, RemoteError> {
        let first = blocks.start;
        for block in blocks.clone() {
            match self.state.of(block) {
                BlockState::Present => continue,
                BlockState::Fetching | BlockState::Evicting => {
                    if self.state.take_over(block) {
                        claimed.push(block);
                    }
                    continue;
                }
                BlockState::Absent => {}
            }
            if self.state.reserve(1, self.limit).is_err() {
                let mut books = self.lock();
                let before =
                    if demanded { u64::MAX } else { next_use(&books, &self.blocks, block) };
                // The blocks after it will need space as well.
                let rest = (blocks.end - block).min(EVICTED_TOGETHER);
                self.evict(&mut books, rest, before)?;
                drop(books);
                if self.state.reserve(1, self.limit).is_err() {
                    return Ok(block - first);
                }
            }
            match self.state.claim(block) {
                true => claimed.push(block),
                false => self.state.free(1),
            }
        }
        Ok(blocks.end - first)
    }

    /// Writes bytes of a claimed block, or of several that follow each other.
    pub(super) fn write(&self, part: usize, offset: u64, bytes: &[u8]) -> Result<(), RemoteError> {
        let written = self.file.write_all_at(bytes, self.blocks.offset(part, offset));
        written.map_err(|error| self.failed(&error))
    }

    /// Makes claimed blocks available.
    pub(super) fn put(&self, run: Range<u64>) {
        if self.evicts() {
            self.lock().held.extend(run.clone());
        }
        run.for_each(|block| self.state.put(block));
    }

    /// Gives claimed blocks up.
    pub(super) fn give_up(&self, run: Range<u64>) {
        // Partly written blocks are freed as well.
        let _ = punch(&self.file, run.clone());
        run.for_each(|block| self.state.give_up(block));
    }

    /// Reads a range; `false` if some of it is not in the cache, or was evicted meanwhile.
    pub(super) fn read(
        &self,
        part: usize,
        range: &Range<u64>,
        into: &mut [u8],
    ) -> Result<bool, RemoteError> {
        let blocks = self.blocks.of(part, range);
        let before: Vec<u64> = self.words(blocks.clone()).collect();
        if !self.has(blocks.clone()) {
            return Ok(false);
        }
        let offset = self.blocks.offset(part, range.start);
        self.file.read_exact_at(into, offset).map_err(|error| self.failed(&error))?;
        Ok(self.words(blocks).eq(before))
    }

    fn words(&self, blocks: Range<u64>) -> impl Iterator<Item = u64> {
        blocks.map(|block| self.state.word(block))
    }

    /// Removes the blocks of a range; returns the number of their bytes.
    pub(super) fn discard(&self, part: usize, range: &Range<u64>) -> u64 {
        let blocks = self.blocks.of(part, range).collect();
        self.remove(blocks).unwrap_or(0) * BLOCK_BYTES
    }

    /// Removes those of the given blocks that are still in the cache; returns their number.
    fn remove(&self, mut blocks: Vec<u64>) -> io::Result<u64> {
        blocks.retain(|block| self.state.begin_evict(*block));
        blocks.sort_unstable();
        let mut freed = Ok(());
        // One call frees the space of consecutive blocks.
        for run in blocks.chunk_by(|one, next| one + 1 == *next) {
            freed = freed.and(punch(&self.file, run[0]..run[run.len() - 1] + 1));
            run.iter().for_each(|block| self.state.end_evict(*block));
        }
        freed.map(|()| blocks.len() as u64)
    }

    /// Evicts up to `wanted` blocks that are needed last, and after `before`.
    fn evict(&self, books: &mut Books, wanted: u64, before: u64) -> Result<(), RemoteError> {
        let mut evicted = 0;
        while evicted < wanted {
            let victims = self.victims(books, wanted - evicted, before);
            if victims.is_empty() {
                break;
            }
            evicted += self.remove(victims).map_err(|error| self.failed(&error))?;
        }
        self.evicted.fetch_add(evicted, Ordering::Relaxed);
        Ok(())
    }

    /// Selects blocks to evict among candidates, and removes them from the candidates.
    fn victims(&self, books: &mut Books, wanted: u64, before: u64) -> Vec<u64> {
        if books.held.is_empty() {
            // Blocks that other processes left. Looking at all of them takes long.
            books.failed_looks += 1;
            if !books.failed_looks.is_multiple_of(LOOK_AGAIN) && books.failed_looks > 1 {
                return Vec::new();
            }
            books.held = self.state.present().collect();
        } else {
            books.failed_looks = 0;
        }
        let is_sampled = books.held.len() > CANDIDATES_MAX;
        let mut ranked = BinaryHeap::new();
        let mut gone = Vec::new();
        for number in 0..books.held.len().min(CANDIDATES_MAX) {
            let index = if is_sampled { random_candidate(books) } else { number };
            let block = books.held[index];
            if self.state.of(block) != BlockState::Present {
                gone.push(index);
            } else if !books.pins.contains_key(&block) {
                let when = next_use(books, &self.blocks, block);
                // Without an order, a block that is not needed now may go.
                if before == u64::MAX || when > before {
                    ranked.push((when, index));
                }
            }
        }
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let mut chosen = Vec::new();
        while chosen.len() < wanted
            && let Some((_, index)) = ranked.pop()
        {
            chosen.push(index);
        }
        let mut indices: Vec<usize> = chosen.iter().copied().chain(gone).collect();
        chosen.sort_unstable();
        chosen.dedup();
        let victims = chosen.into_iter().map(|index| books.held[index]).collect();
        indices.sort_unstable();
        indices.dedup();
        for index in indices.into_iter().rev() {
            books.held.swap_remove(index);
        }
        victims
    }

    fn failed(&self, error: &io::Error) -> RemoteError {
        not_written(&self.path, error)
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn next_use(books: &Books, blocks: &Blocks, block: u64) -> u64 {
    let (part, range) = blocks.place(block);
    books.uses.as_ref().map_or(0, |uses| uses.next_use(part, range))
}

/// A random index of a candidate.
fn random_candidate(books: &mut Books) -> usize {
    let index = books.random.next_u64() % books.held.len() as u64;
    usize::try_from(index).expect("an index fits")
}

/// Frees the space of blocks.
fn punch(file: &File, blocks: Range<u64>) -> io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let bytes = (blocks.end - blocks.start) * BLOCK_BYTES;
    Ok(fallocate(file, flags, blocks.start * BLOCK_BYTES, bytes)?)
}

#[cfg(test)]
mod tests {
    use super::super::cache_folder::name_of;
    use super::*;
    use std::os::unix::fs::MetadataExt;

    const BLOCK: u64 = BLOCK_BYTES;

    fn open(folder: &Path, blocks: u64, limit: u64) -> BlockCache {
        let parts = Blocks::new(vec![blocks * BLOCK]);
        BlockCache::open(Some(folder), (parts, [7; 32]), limit * BLOCK).unwrap()
    }

    fn fill(cache: &BlockCache, block: u64) -> bool {
        let mut claimed = Vec::new();
        let taken = cache.claim(block..block + 1, true, &mut claimed).unwrap();
        if claimed.is_empty() {
            return false;
        }
        cache.write(0, block * BLOCK, &vec![block as u8 + 1; BLOCK as usize]).unwrap();
        cache.put(block..block + 1);
        taken == 1
    }

    /// A block is needed as late as its number.
    #[derive(Debug)]
    struct ByNumber;

    impl NextUse for ByNumber {
        fn next_use(&self, _: usize, range: Range<u64>) -> u64 {
            range.start / BLOCK
        }
    }

    fn allocated(folder: &Path) -> u64 {
        let path = folder.join(name_of([7; 32])).join(BLOCKS_NAME);
        path.metadata().unwrap().blocks() * 512
    }

    #[test]
    fn what_is_needed_last_goes_first_and_its_space_is_freed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(folder.path(), 10, 3);
        cache.follow(Arc::new(ByNumber));
        for block in [2, 9, 5] {
            assert!(fill(&cache, block));
        }
        assert!(fill(&cache, 4));
        let present: Vec<u64> = cache.state.present().collect();
        assert_eq!(present, [2, 4, 5]);
        assert!(allocated(folder.path()) <= 3 * BLOCK);
        assert_eq!(cache.evicted_bytes(), BLOCK);
        // A prefetch of what is needed later evicts nothing.
        let mut claimed = Vec::new();
        assert_eq!(cache.claim(8..9, false, &mut claimed).unwrap(), 0);
        assert_eq!(cache.claim(3..4, false, &mut claimed).unwrap(), 1);
        assert_eq!((claimed, cache.has(5..6)), (vec![3], false));
    }

    #[test]
    fn what_a_reader_reserved_stays() {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(folder.path(), 10, 2);
        assert_eq!(cache.pin(1..3, true), Some(2));
        assert_eq!(cache.pin(5..6, false), None, "more than its share");
        assert!(fill(&cache, 1) && fill(&cache, 2));
        assert!(!fill(&cache, 3), "both blocks are reserved");
        cache.unpin(1..3);
        assert!(fill(&cache, 3));
        assert_eq!(cache.state.in_use(), 2);
    }

    #[test]
    fn bytes_are_those_that_were_written_and_a_lower_limit_holds_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(folder.path(), 4, 4);
        (0..4).for_each(|block| assert!(fill(&cache, block)));
        let mut bytes = vec![0; 10];
        assert!(cache.read(0, &(BLOCK - 5..BLOCK + 5), &mut bytes).unwrap());
        assert_eq!(bytes, [1, 1, 1, 1, 1, 2, 2, 2, 2, 2]);
        assert_eq!(cache.discard(0, &(0..1)), BLOCK);
        assert!(!cache.read(0, &(0..10), &mut bytes).unwrap());
        drop(cache);
        let cache = open(folder.path(), 4, 2);
        assert_eq!(cache.state.in_use(), 2);
        assert!(allocated(folder.path()) <= 2 * BLOCK);
    }

    #[test]
    fn idle_caches_of_other_datasets_go_when_the_limit_needs_it() {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(folder.path(), 4, 4);
        (0..4).for_each(|block| assert!(fill(&cache, block)));
        let other = |limit: u64| {
            let parts = Blocks::new(vec![2 * BLOCK]);
            BlockCache::open(Some(folder.path()), (parts, [8; 32]), limit * BLOCK).unwrap()
        };
        let path = folder.path().join(name_of([7; 32]));
        drop(other(2));
        assert!(path.exists(), "it is in use");
        drop(cache);
        drop(other(6));
        assert!(path.exists(), "there is space for both");
        drop(other(5));
        assert!(!path.exists());
    }
}
