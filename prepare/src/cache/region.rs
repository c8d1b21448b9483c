//! Samples in memory that several processes share without locks.
//!
//! ```text
//! words:  header (64) | an entry for each sample | blocks of member 0 | blocks of member 1 | …
//! entry:  generation (32 bits) | block + 1 (32 bits); 0: absent; BUSY: being written
//! block:  next block + 1 (32 bits) | unused (32 bits) | content, 8 bytes a word
//! content of a sample: CRC-32C (32 bits) | bytes (32 bits) | its bytes
//! ```
//!
//! Each member writes only its own blocks. A reader copies a sample, and then checks that its entry
//! is unchanged (a sequence lock) and that the checksum is correct. A process that is killed while
//! it writes leaves an entry that stays busy and is never read.

use super::{CacheError, Shape};
use meetpoint_format::checksum::crc32c;
use meetpoint_storage::SharedWords;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Bytes of a block.
pub(crate) const BLOCK_BYTES: usize = 4096;
/// Bytes of a block that hold content.
pub(crate) const BLOCK_CONTENT_BYTES: usize = BLOCK_BYTES - 8;
/// Maximum number of blocks of a region: 16 TiB.
pub(crate) const BLOCKS_MAX: u32 = u32::MAX - 2;
/// Bytes before the entries.
pub(crate) const HEADER_BYTES: usize = 8 * HEADER_WORDS;
/// Bytes before the content of a sample.
pub(crate) const ENTRY_BYTES: u32 = 8;

const HEADER_WORDS: usize = 64;
const BLOCK_WORDS: usize = BLOCK_BYTES / 8;
const MAGIC: u64 = u64::from_le_bytes(*b"mpcache1");
/// Words of the header: magic number, nonce, shape, and number of members.
const MAGIC_AT: usize = 0;
const NONCE_AT: usize = 1;
const SAMPLES_AT: usize = 2;
const MEMBERS_AT: usize = 3;
const BLOCKS_AT: usize = 4;
const ATTACHED_AT: usize = 5;

const ABSENT: u64 = 0;
/// The block of an entry that is being written.
const BUSY: u64 = u32::MAX as u64;

/// The memory of a cache.
pub(crate) struct Region {
    words: SharedWords,
    shape: Shape,
}

/// The free blocks of one member.
pub(crate) struct Segment {
    free: Vec<u32>,
    generation: u32,
}

fn failed(action: &'static str) -> impl Fn(std::io::Error) -> CacheError {
    move |source| CacheError::Io { action, path: "shared memory".into(), source }
}

fn total_words(shape: Shape) -> Option<usize> {
    let samples = usize::try_from(shape.samples).ok()?;
    let blocks = usize::try_from(shape.members * u64::from(shape.blocks)).ok()?;
    blocks.checked_mul(BLOCK_WORDS)?.checked_add(samples)?.checked_add(HEADER_WORDS)
}

impl Region {
    /// New memory without a name, private to this process.
    pub(crate) fn alone(shape: Shape) -> Result<Self, CacheError> {
        let (region, _) = Self::create(shape, 1)?;
        region.word(ATTACHED_AT).store(shape.members, Ordering::Release);
        Ok(region)
    }

    /// New memory without a name, and the file that other processes can map.
    pub(crate) fn create(shape: Shape, nonce: u64) -> Result<(Self, File), CacheError> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let create = failed("create");
        let file =
            File::from(memfd_create("meetpoint-cache", flags).map_err(|e| create(e.into()))?);
        let words =
            total_words(shape).ok_or_else(|| create(std::io::ErrorKind::OutOfMemory.into()))?;
        ftruncate(&file, words as u64 * 8).map_err(|errno| create(errno.into()))?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(|errno| create(errno.into()))?;
        let region = Self { words: SharedWords::new(&file, words).map_err(failed("map"))?, shape };
        for (at, value) in [
            (SAMPLES_AT, shape.samples),
            (MEMBERS_AT, shape.members),
            (BLOCKS_AT, shape.blocks.into()),
            (NONCE_AT, nonce),
        ] {
            region.word(at).store(value, Ordering::Relaxed);
        }
        region.word(MAGIC_AT).store(MAGIC, Ordering::Release);
        Ok((region, file))
    }

    /// The memory of another process; `None` if it is not a cache of this shape.
    pub(crate) fn attach(file: &File, shape: Shape, nonce: u64) -> Option<Self> {
        let words = total_words(shape)?;
        if file.metadata().ok()?.len() != words as u64 * 8 {
            return None;
        }
        let region = Self { words: SharedWords::new(file, words).ok()?, shape };
        let is = |at: usize, value: u64| region.word(at).load(Ordering::Acquire) == value;
        let is_same = is(MAGIC_AT, MAGIC)
            && is(NONCE_AT, nonce)
            && is(SAMPLES_AT, shape.samples)
            && is(MEMBERS_AT, shape.members)
            && is(BLOCKS_AT, shape.blocks.into());
        is_same.then_some(region)
    }

    /// Counts a member that has opened it; returns their number.
    pub(crate) fn count_member(&self) -> u64 {
        self.word(ATTACHED_AT).fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Number of members that have opened it.
    pub(crate) fn attached(&self) -> u64 {
        self.word(ATTACHED_AT).load(Ordering::Acquire)
    }

    pub(crate) fn members(&self) -> u64 {
        self.shape.members
    }

    /// Samples of the dataset.
    pub(crate) fn samples(&self) -> u64 {
        self.shape.samples
    }

    /// Whether all members have opened it, so that its name is not needed any more.
    pub(crate) fn is_complete(&self) -> bool {
        self.attached() >= self.shape.members
    }

    /// The blocks of a member.
    pub(crate) fn segment(&self, member: u64) -> Segment {
        let begin = u32::try_from(member * u64::from(self.shape.blocks)).expect("it was checked");
        Segment { free: (begin..begin + self.shape.blocks).rev().collect(), generation: 0 }
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        &self.words.as_slice()[at]
    }

    fn entry(&self, sample: u64) -> Option<&AtomicU64> {
        let at = usize::try_from(sample).ok().filter(|_| sample < self.shape.samples)?;
        Some(self.word(HEADER_WORDS + at))
    }

    fn block(&self, block: u32) -> &[AtomicU64] {
        let samples = usize::try_from(self.shape.samples).expect("it was mapped");
        let start = HEADER_WORDS + samples + block as usize * BLOCK_WORDS;
        &self.words.as_slice()[start..start + BLOCK_WORDS]
    }

    /// Whether a sample is cached or being written.
    pub(crate) fn holds(&self, sample: u64) -> bool {
        self.entry(sample).is_some_and(|entry| entry.load(Ordering::Relaxed) != ABSENT)
    }

    /// Copies the content of a sample; `false` if it is not cached.
    pub(crate) fn read(&self, sample: u64, into: &mut Vec<u8>) -> bool {
        let Some(entry) = self.entry(sample) else { return false };
        let found = entry.load(Ordering::Acquire);
        let first = found & u64::from(u32::MAX);
        if found == ABSENT || first == BUSY {
            return false;
        }
        let expected = self.copy(first, into);
        fence(Ordering::Acquire);
        let is_same = entry.load(Ordering::Relaxed) == found;
        is_same && expected.is_some_and(|expected| crc32c(into) == expected)
    }

    /// Follows the blocks of a sample, which may be overwritten concurrently; returns its checksum.
    fn copy(&self, first: u64, into: &mut Vec<u8>) -> Option<u32> {
        let blocks = self.shape.members * u64::from(self.shape.blocks);
        let words_of = |next: u64| {
            let block = next.checked_sub(1).filter(|block| *block < blocks)?;
            Some(self.block(u32::try_from(block).expect("below BLOCKS_MAX")))
        };
        let mut words = words_of(first)?;
        let head = words[1].load(Ordering::Relaxed);
        let bytes = usize::try_from(head >> 32).expect("32 bits");
        let most = usize::try_from(blocks).ok()?.saturating_mul(BLOCK_CONTENT_BYTES);
        if bytes + ENTRY_BYTES as usize > most {
            return None;
        }
        // What it holds is overwritten, and set to 0 only where it grows.
        into.resize(bytes.next_multiple_of(8), 0);
        let (mut at, mut left, mut start) = (2, bytes, 0);
        loop {
            let here = left.min((BLOCK_WORDS - at) * 8);
            let to = into[start..start + here.next_multiple_of(8)].as_chunks_mut::<8>().0;
            start += here;
            for (to, word) in to.iter_mut().zip(&words[at..]) {
                *to = word.load(Ordering::Relaxed).to_le_bytes();
            }
            (at, left) = (1, left - here);
            if left == 0 {
                into.truncate(bytes);
                return Some(u32::try_from(head & u64::from(u32::MAX)).expect("32 bits"));
            }
            words = words_of(words[0].load(Ordering::Relaxed) & u64::from(u32::MAX))?;
        }
    }

    /// Marks a sample as being written; `false` if it is cached, or if another process is writing
    /// it.
    pub(crate) fn begin(&self, sample: u64) -> bool {
        let Some(entry) = self.entry(sample) else { return false };
        entry.compare_exchange(ABSENT, BUSY, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Writes a sample after [`Self::begin`] to free blocks, of which there must be enough.
    pub(crate) fn write(&self, segment: &mut Segment, sample: u64, content: &[u8]) {
        let bytes = u32::try_from(content.len()).expect("a sample has less than 4 GiB");
        let head = u64::from(crc32c(content)) | u64::from(bytes) << 32;
        let first = segment.free.pop().expect("the policy has evicted enough");
        let (mut block, mut rest, mut at) = (first, content, 2);
        // Readers that saw an earlier entry of these blocks detect the change.
        fence(Ordering::Release);
        self.block(first)[1].store(head, Ordering::Relaxed);
        loop {
            let words = self.block(block);
            let here = rest.len().min((BLOCK_WORDS - at) * 8);
            let (now, later) = rest.split_at(here);
            let (whole, short) = now.as_chunks::<8>();
            for (word, bytes) in words[at..].iter().zip(whole) {
                word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
            }
            if !short.is_empty() {
                let mut eight = [0; 8];
                eight[..short.len()].copy_from_slice(short);
                words[at + whole.len()].store(u64::from_le_bytes(eight), Ordering::Relaxed);
            }
            (rest, at) = (later, 1);
            if rest.is_empty() {
                words[0].store(0, Ordering::Relaxed);
                break;
            }
            block = segment.free.pop().expect("the policy has evicted enough");
            words[0].store(u64::from(block) + 1, Ordering::Relaxed);
        }
        segment.generation = segment.generation.wrapping_add(1);
        let entry = u64::from(segment.generation) << 32 | (u64::from(first) + 1);
        self.entry(sample).expect("it was begun").store(entry, Ordering::Release);
    }

    /// Removes a sample of this segment; returns its number of bytes.
    pub(crate) fn remove(&self, segment: &mut Segment, sample: u64) -> u64 {
        let entry = self.entry(sample).expect("it was written");
        let first = entry.swap(ABSENT, Ordering::AcqRel) & u64::from(u32::MAX);
        let bytes = match first.checked_sub(1) {
            Some(block) => {
                self.block(u32::try_from(block).expect("a block"))[1].load(Ordering::Relaxed) >> 32
            }
            None => 0,
        };
        let mut next = first;
        while let Some(block) = next.checked_sub(1) {
            let block = u32::try_from(block).expect("a block");
            next = self.block(block)[0].load(Ordering::Relaxed) & u64::from(u32::MAX);
            segment.free.push(block);
        }
        bytes
    }
}
