//! Retains small samples in memory: the contents of whole record batches, each read by one request.
//!
//! A direct read of a sample that is shorter than a block reads its neighbours too, and takes
//! longer than most recipes. Datasets of such samples are often small, so that record batches are
//! retained in the order in which they are first needed, as long as they fit in the granted bytes;
//! nothing is evicted, since an epoch needs every sample once. A record batch whose part has
//! changed since is read again, so that the change is detected as in other reads.

use meetpoint_storage::files::FileState;
use meetpoint_storage::{AlignedBuffer, BLOCK_BYTES};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Samples are small if their mean size in a record batch is at most this: the size of a block.
const MEAN_BYTES_MAX: u64 = 4096;
/// Longest content of a record batch that is read by one request.
const WHOLE_BYTES_MAX: u64 = 4 << 20;
/// Bytes of a buffer besides a record batch at any offset, which is read in whole blocks.
pub(crate) const BUFFER_EXTRA_BYTES: u64 = 2 * BLOCK_BYTES as u64;

/// The content of a record batch: its samples, stored consecutively.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    /// Index of its part, among those of all folders.
    pub part: usize,
    /// Byte range in the part.
    pub range: Range<u64>,
    /// Number of samples.
    pub rows: u64,
}

impl Content {
    /// Whether its samples are small and one request can read all of them.
    pub(crate) fn is_small(&self) -> bool {
        let bytes = self.range.end - self.range.start;
        (1..=WHOLE_BYTES_MAX).contains(&bytes) && bytes <= MEAN_BYTES_MAX.saturating_mul(self.rows)
    }
}

/// Whether a part of this length, with its tables, may have small samples.
pub(crate) fn may_be_small(part_bytes: u64, samples: u64) -> bool {
    // Tables and keys of a sample are shorter than a block.
    samples > 0 && part_bytes <= (2 * MEAN_BYTES_MAX).saturating_mul(samples)
}

/// The retained record batches of a dataset. Shareable among threads.
#[derive(Debug)]
pub(crate) struct SmallSamples {
    /// [`UNDECIDED`] before the first grant.
    granted: AtomicU64,
    held: Arc<AtomicU64>,
    /// By record batch; created by the first grant.
    batches: OnceLock<Vec<Mutex<Option<Arc<Retained>>>>>,
}

/// No bytes were granted or refused so far.
const UNDECIDED: u64 = u64::MAX;

impl Default for SmallSamples {
    fn default() -> Self {
        Self { granted: AtomicU64::new(UNDECIDED), held: Arc::default(), batches: OnceLock::new() }
    }
}

/// Memory that is counted until this is dropped.
#[derive(Debug)]
pub(crate) struct Room {
    held: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The content of a record batch in memory, as it was read.
#[derive(Debug)]
pub(crate) struct Retained {
    buffer: AlignedBuffer,
    /// First byte in the buffer.
    start: usize,
    /// Byte range in the part.
    range: Range<u64>,
    /// State of the part before it was read.
    state: FileState,
    _room: Room,
}

impl Retained {
    /// The content that begins at `start` in a buffer, whose memory is counted in `room`.
    pub(crate) fn new(
        (buffer, start): (AlignedBuffer, usize),
        range: Range<u64>,
        state: FileState,
        room: Room,
    ) -> Self {
        Self { buffer, start, range, state, _room: room }
    }

    /// All of it.
    pub(crate) fn content(&self) -> &[u8] {
        let bytes = usize::try_from(self.range.end - self.range.start).expect("it is in memory");
        &self.buffer.as_slice()[self.start..self.start + bytes]
    }

    /// The `bytes` at `offset` in the part, if they are in the content.
    pub(crate) fn get(&self, offset: u64, bytes: u64) -> Option<&[u8]> {
        let from = usize::try_from(offset.checked_sub(self.range.start)?).ok()?;
        self.content().get(from..from.checked_add(usize::try_from(bytes).ok()?)?)
    }
}

impl SmallSamples {
    /// Retains record batches from now on, in at most `bytes_max` bytes. A later grant can only
    /// raise an earlier one.
    pub(crate) fn grant(&self, bytes_max: u64, record_batches: usize) {
        let raise = |granted: u64| match granted {
            UNDECIDED => Some(bytes_max.min(UNDECIDED - 1)),
            granted => Some(granted.max(bytes_max.min(UNDECIDED - 1))),
        };
        let _ = self.granted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, raise);
        self.batches.get_or_init(|| (0..record_batches).map(|_| Mutex::default()).collect());
    }

    /// Whether memory was granted or refused.
    pub(crate) fn is_decided(&self) -> bool {
        self.granted.load(Ordering::Relaxed) != UNDECIDED
    }

    /// The granted bytes.
    fn granted(&self) -> u64 {
        match self.granted.load(Ordering::Relaxed) {
            UNDECIDED => 0,
            granted => granted,
        }
    }

    /// Whether some memory was granted.
    pub(crate) fn is_granted(&self) -> bool {
        self.granted() > 0
    }

    /// Bytes of memory of the retained record batches, and of those that are being read.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Memory for a record batch of `bytes` bytes, if it fits, and the bytes of a buffer for its
    /// read at any offset.
    pub(crate) fn room(&self, bytes: u64) -> Option<(Room, usize)> {
        let granted = self.granted();
        let bytes = bytes.checked_add(BUFFER_EXTRA_BYTES)?;
        let add = |held: u64| held.checked_add(bytes).filter(|held| *held <= granted);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        let room = Room { held: Arc::clone(&self.held), bytes };
        Some((room, usize::try_from(bytes).ok()?))
    }

    /// Retains a record batch. If another thread has retained the same one meanwhile, that is
    /// returned.
    pub(crate) fn retain(&self, record_batch: usize, retained: Retained) -> Arc<Retained> {
        let retained = Arc::new(retained);
        if let Some(mut slot) = self.slot(record_batch) {
            match &*slot {
                Some(other) if other.state == retained.state => return Arc::clone(other),
                Some(_) | None => *slot = Some(Arc::clone(&retained)),
            }
        }
        retained
    }

    /// The retained record batch, if it was read in this state of its part. One that was read in
    /// another state is dropped.
    pub(crate) fn get(&self, record_batch: usize, state: FileState) -> Option<Arc<Retained>> {
        let mut slot = self.slot(record_batch)?;
        if slot.as_ref().is_some_and(|retained| retained.state != state) {
            *slot = None;
        }
        slot.clone()
    }

    fn slot(&self, record_batch: usize) -> Option<MutexGuard<'_, Option<Arc<Retained>>>> {
        let slot = self.batches.get()?.get(record_batch)?;
        // A panic while the lock is held leaves a record batch or none.
        Some(slot.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(text: &str) -> FileState {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part");
        std::fs::write(&path, text).unwrap();
        FileState::of(&std::fs::File::open(path).unwrap()).unwrap()
    }

    /// A record batch of `bytes` equal bytes, from `start` on in its part.
    fn read(
        samples: &SmallSamples,
        (start, bytes, value): (u64, u64, u8),
        state: FileState,
    ) -> Option<Retained> {
        let (room, capacity) = samples.room(bytes)?;
        let mut buffer = AlignedBuffer::zeroed(capacity);
        buffer.as_mut_slice()[7..].fill(value);
        Some(Retained::new((buffer, 7), start..start + bytes, state, room))
    }

    #[test]
    fn record_batches_are_retained_as_long_as_they_fit() {
        let (samples, state) = (SmallSamples::default(), state("one"));
        assert!(read(&samples, (0, 10, 1), state).is_none());
        assert_eq!((samples.is_granted(), samples.is_decided()), (false, false));
        samples.grant(25 + 2 * BUFFER_EXTRA_BYTES, 3);
        let first = read(&samples, (100, 10, 1), state).unwrap();
        samples.retain(1, first);
        let again = read(&samples, (100, 10, 2), state).unwrap();
        // While it is read a second time, that memory counts as well.
        assert_eq!(samples.held(), 20 + 2 * BUFFER_EXTRA_BYTES);
        assert_eq!(samples.retain(1, again).get(100, 1), Some(&[1][..]));
        assert_eq!(samples.held(), 10 + BUFFER_EXTRA_BYTES);
        samples.retain(0, read(&samples, (50, 15, 3), state).unwrap());
        assert!(read(&samples, (0, 1, 4), state).is_none());
        assert_eq!(samples.held(), 25 + 2 * BUFFER_EXTRA_BYTES);
        let get = |batch, offset, bytes| {
            let retained = samples.get(batch, state)?;
            retained.get(offset, bytes).map(<[u8]>::to_vec)
        };
        assert_eq!(get(1, 108, 2), Some(vec![1, 1]));
        assert_eq!(get(0, 50, 15), Some(vec![3; 15]));
        for (batch, offset, bytes) in [(1, 109, 2), (1, 99, 1), (2, 0, 1), (9, 0, 0)] {
            assert_eq!(get(batch, offset, bytes), None, "{batch} {offset} {bytes}");
        }
    }

    #[test]
    fn a_record_batch_of_a_part_that_changed_is_dropped() {
        let (samples, before, after) = (SmallSamples::default(), state("one"), state("longer"));
        samples.grant(1 << 20, 1);
        samples.retain(0, read(&samples, (0, 10, 1), before).unwrap());
        assert!(samples.get(0, before).is_some());
        assert!(samples.get(0, after).is_none());
        assert_eq!(samples.held(), 0);
        samples.retain(0, read(&samples, (0, 10, 2), after).unwrap());
        assert_eq!(samples.get(0, after).unwrap().content(), [2; 10]);
    }

    #[test]
    fn a_grant_of_nothing_is_a_decision() {
        let samples = SmallSamples::default();
        samples.grant(0, 1);
        assert_eq!((samples.is_granted(), samples.is_decided()), (false, true));
        assert!(samples.room(1).is_none());
    }

    #[test]
    fn a_record_batch_is_small_by_the_mean_of_its_samples_and_by_its_length() {
        let content = |bytes: u64, rows| Content { part: 0, range: 64..64 + bytes, rows };
        assert!(content(4096 * 256, 256).is_small());
        assert!(!content(4096 * 256 + 1, 256).is_small());
        assert!(!content((4 << 20) + 1, 1 << 16).is_small());
        assert!(!content(0, 3).is_small());
    }
}
