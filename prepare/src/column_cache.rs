//! A cache of further columns of recently read record batches.
//!
//! A column of a record batch is read, checked and decoded as a whole, and samples of a shuffled
//! batch come from many record batches: without a cache, each sample would require all of that.

use arrow_array::{Array, ArrayRef};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Default for the maximum bytes of columns in the cache, for all preparers of a dataset together.
const BYTES_MAX: usize = 128 << 20;

/// First sample of a record batch, and index of a further column.
type ColumnKey = (u64, usize);

/// Statistics of columns that were read again, because the cache was too small for the requested
/// columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnsReadAgain {
    /// Number of columns of record batches that were read again.
    pub reads: u64,
    /// Bytes that were read again.
    pub bytes: u64,
    /// Bytes of all requested columns.
    pub needed_bytes: u64,
    /// Maximum bytes in the cache.
    pub cache_bytes: u64,
}

/// Columns by record batch. The least recently used is dropped first.
#[derive(Debug, Default)]
pub(crate) struct ColumnCache(Mutex<Cached>);

#[derive(Debug)]
struct Cached {
    arrays: HashMap<ColumnKey, Entry>,
    bytes: usize,
    bytes_max: usize,
    /// Columns that were read or found in the cache since the last reset of the counts.
    seen: HashSet<ColumnKey>,
    seen_bytes: usize,
    reads_again: u64,
    read_again_bytes: usize,
    is_reported: bool,
    /// Counts uses.
    now: u64,
}

#[derive(Debug)]
struct Entry {
    array: ArrayRef,
    bytes: usize,
    used: u64,
}

impl Default for Cached {
    fn default() -> Self {
        Self {
            arrays: HashMap::new(),
            bytes: 0,
            bytes_max: BYTES_MAX,
            seen: HashSet::new(),
            seen_bytes: 0,
            reads_again: 0,
            read_again_bytes: 0,
            is_reported: false,
            now: 0,
        }
    }
}

impl ColumnCache {
    fn lock(&self) -> MutexGuard<'_, Cached> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Limits the cache to a given number of bytes from now on.
    pub(crate) fn set_bytes_max(&self, bytes_max: usize) {
        let mut cached = self.lock();
        cached.bytes_max = bytes_max;
        cached.make_room(0);
    }

    /// Resets the counts of reads.
    pub(crate) fn reset_counts(&self) {
        self.lock().reset_counts();
    }

    /// The columns that were read again since the last reset, if they exceed the requested columns,
    /// and only once. Resets the counts.
    pub(crate) fn take_read_again(&self) -> Option<ColumnsReadAgain> {
        let mut cached = self.lock();
        let again = ColumnsReadAgain {
            reads: cached.reads_again,
            bytes: cached.read_again_bytes as u64,
            needed_bytes: cached.seen_bytes as u64,
            cache_bytes: cached.bytes_max as u64,
        };
        cached.reset_counts();
        let is_first = again.bytes > again.needed_bytes && !cached.is_reported;
        cached.is_reported |= is_first;
        is_first.then_some(again)
    }

    /// A column of a record batch, read by `read` if it is not in the cache.
    pub(crate) fn of<E>(
        &self,
        place: ColumnKey,
        read: impl FnOnce() -> Result<ArrayRef, E>,
    ) -> Result<ArrayRef, E> {
        {
            let mut cached = self.lock();
            cached.now += 1;
            let now = cached.now;
            if let Some(entry) = cached.arrays.get_mut(&place) {
                entry.used = now;
                return Ok(Arc::clone(&entry.array));
            }
        }
        // Two threads may read the same column; their results are equal.
        let array = read()?;
        self.lock().add(place, &array);
        Ok(array)
    }
}

impl Cached {
    fn add(&mut self, place: ColumnKey, array: &ArrayRef) {
        let bytes = array.get_array_memory_size();
        if self.arrays.contains_key(&place) {
            return;
        }
        if self.seen.insert(place) {
            self.seen_bytes += bytes;
        } else {
            self.reads_again += 1;
            self.read_again_bytes += bytes;
        }
        if bytes > self.bytes_max {
            return;
        }
        self.make_room(bytes);
        self.bytes += bytes;
        self.arrays.insert(place, Entry { array: Arc::clone(array), bytes, used: self.now });
    }

    /// Drops the least recently used columns until a given number of bytes fits.
    fn make_room(&mut self, bytes: usize) {
        while self.bytes + bytes > self.bytes_max {
            let oldest = self.arrays.iter().min_by_key(|(_, entry)| entry.used);
            let Some(place) = oldest.map(|(place, _)| *place) else { break };
            if let Some(entry) = self.arrays.remove(&place) {
                self.bytes -= entry.bytes;
            }
        }
    }

    fn reset_counts(&mut self) {
        self.seen = self.arrays.keys().copied().collect();
        self.seen_bytes = self.bytes;
        (self.reads_again, self.read_again_bytes) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::UInt8Array;

    fn ask(cache: &ColumnCache, place: ColumnKey, bytes: usize) -> bool {
        let mut was_read = false;
        let read = || {
            was_read = true;
            Ok::<_, ()>(Arc::new(UInt8Array::from(vec![7; bytes])) as ArrayRef)
        };
        assert_eq!(cache.of(place, read).unwrap().len(), bytes);
        was_read
    }

    #[test]
    fn a_column_is_read_once_until_others_take_its_memory() {
        let cache = ColumnCache::default();
        let third = BYTES_MAX / 3 - 4096;
        assert!(ask(&cache, (0, 0), third));
        assert!(ask(&cache, (0, 1), third));
        assert!(ask(&cache, (1, 0), third));
        assert!(!ask(&cache, (0, 0), third));
        assert!(ask(&cache, (2, 0), third), "the least recently used one is dropped");
        assert!(!ask(&cache, (0, 0), third));
        assert!(ask(&cache, (0, 1), third));
    }

    #[test]
    fn columns_that_are_read_again_and_again_are_counted_and_reported_once() {
        let cache = ColumnCache::default();
        let read = |places: &[u64]| places.iter().filter(|it| ask(&cache, (**it, 0), 4000)).count();
        let array = UInt8Array::from(vec![7; 4000]);
        let bytes = Array::get_array_memory_size(&array);
        cache.set_bytes_max(2 * bytes);
        // In sequential order, each is read once.
        assert_eq!(read(&[0, 0, 0, 1, 1, 2, 2, 3, 3]), 4);
        assert_eq!(cache.take_read_again(), None);
        cache.reset_counts();
        let shuffled = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0];
        assert_eq!(read(&shuffled), 10);
        // Columns 2 and 3 were in the cache when counting began.
        let expected = ColumnsReadAgain {
            reads: 8,
            bytes: 8 * bytes as u64,
            needed_bytes: 4 * bytes as u64,
            cache_bytes: 2 * bytes as u64,
        };
        assert_eq!(cache.take_read_again(), Some(expected));
        read(&shuffled);
        assert_eq!(cache.take_read_again(), None, "it was reported before");
    }

    #[test]
    fn a_column_that_is_larger_than_the_cache_is_read_every_time() {
        let cache = ColumnCache::default();
        assert!(ask(&cache, (0, 0), 8));
        assert!(ask(&cache, (1, 0), BYTES_MAX + 1));
        assert!(ask(&cache, (1, 0), BYTES_MAX + 1));
        assert!(!ask(&cache, (0, 0), 8));
    }
}
