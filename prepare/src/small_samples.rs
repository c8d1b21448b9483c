//! Retains small samples in memory: the contents of whole record batches, each read by one request.
//!
//! A direct read of a sample that is shorter than a block reads its neighbours too, and takes
//! longer than most recipes. Datasets of such samples are often small, so that record batches are
//! retained in the order in which they are first needed, as long as they fit in the granted bytes;
//! nothing is evicted, since an epoch needs every sample once.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Default limit of the memory for small samples, for all preparers of a dataset together.
pub const SMALL_SAMPLES_BYTES_MAX: u64 = 256 << 20;
/// A process uses at most 1 / `MEMORY_SHARE` of its memory for small samples.
const MEMORY_SHARE: u64 = 16;
/// Samples are small if their mean size in a record batch is at most this: the size of a block.
const MEAN_BYTES_MAX: u64 = 4096;
/// Longest content of a record batch that is read by one request.
const WHOLE_BYTES_MAX: u64 = 4 << 20;

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

/// The bytes that a process with `memory_bytes` of memory grants to small samples.
pub(crate) fn granted_of(memory_bytes: u64) -> u64 {
    (memory_bytes / MEMORY_SHARE).min(SMALL_SAMPLES_BYTES_MAX)
}

/// The retained record batches of a dataset. Shareable among threads.
#[derive(Debug, Default)]
pub(crate) struct SmallSamples {
    granted: AtomicU64,
    held: AtomicU64,
    /// By record batch; created by the first grant.
    batches: OnceLock<Vec<OnceLock<Retained>>>,
}

#[derive(Debug)]
struct Retained {
    /// First byte in the part.
    start: u64,
    bytes: Box<[u8]>,
}

impl SmallSamples {
    /// Retains record batches from now on, in at most `bytes_max` bytes.
    pub(crate) fn grant(&self, bytes_max: u64, record_batches: usize) {
        self.granted.fetch_max(bytes_max, Ordering::Relaxed);
        self.batches.get_or_init(|| (0..record_batches).map(|_| OnceLock::new()).collect());
    }

    /// Whether some memory was granted.
    pub(crate) fn is_granted(&self) -> bool {
        self.granted.load(Ordering::Relaxed) > 0
    }

    /// Bytes of the retained record batches.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Whether a record batch of `bytes` bytes fits.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        let granted = self.granted.load(Ordering::Relaxed);
        self.held().checked_add(bytes).is_some_and(|held| held <= granted)
    }

    /// Retains the content of a record batch, if it fits.
    pub(crate) fn retain(&self, record_batch: usize, start: u64, content: &[u8]) {
        let Some(slot) = self.batches.get().and_then(|all| all.get(record_batch)) else { return };
        let (bytes, granted) = (content.len() as u64, self.granted.load(Ordering::Relaxed));
        let add = |held: u64| held.checked_add(bytes).filter(|held| *held <= granted);
        if self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_err() {
            return;
        }
        // Another thread may have retained the same record batch.
        if slot.set(Retained { start, bytes: content.into() }).is_err() {
            self.held.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// The retained `bytes` at `offset` in the part, if they are in the retained record batch.
    pub(crate) fn get(&self, record_batch: usize, offset: u64, bytes: u64) -> Option<&[u8]> {
        let Retained { start, bytes: content } = self.batches.get()?.get(record_batch)?.get()?;
        let from = usize::try_from(offset.checked_sub(*start)?).ok()?;
        content.get(from..from.checked_add(usize::try_from(bytes).ok()?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_batches_are_retained_as_long_as_they_fit() {
        let samples = SmallSamples::default();
        samples.retain(0, 0, &[1; 10]);
        assert_eq!((samples.is_granted(), samples.get(0, 0, 1)), (false, None));
        samples.grant(25, 3);
        samples.retain(1, 100, &[1; 10]);
        samples.retain(1, 100, &[2; 10]);
        samples.retain(0, 50, &[3; 15]);
        samples.retain(2, 0, &[4]);
        assert_eq!(samples.held(), 25);
        assert_eq!(samples.get(1, 108, 2), Some(&[1, 1][..]));
        assert_eq!(samples.get(0, 50, 15), Some(&[3; 15][..]));
        for (batch, offset, bytes) in [(1, 109, 2), (1, 99, 1), (2, 0, 1), (9, 0, 0)] {
            assert_eq!(samples.get(batch, offset, bytes), None, "{batch} {offset} {bytes}");
        }
    }

    #[test]
    fn a_record_batch_is_small_by_the_mean_of_its_samples_and_by_its_length() {
        let content = |bytes: u64, rows| Content { part: 0, range: 64..64 + bytes, rows };
        assert!(content(4096 * 256, 256).is_small());
        assert!(!content(4096 * 256 + 1, 256).is_small());
        assert!(!content((4 << 20) + 1, 1 << 16).is_small());
        assert!(!content(0, 3).is_small());
    }

    #[test]
    fn a_process_with_little_memory_grants_little() {
        assert_eq!(granted_of(64 << 30), SMALL_SAMPLES_BYTES_MAX);
        assert_eq!(granted_of(512 << 20), 32 << 20);
    }
}
