//! Further columns of the record batches that were read lately.
//!
//! A column of a record batch is read, checked and decoded as a whole, and samples of a shuffled
//! batch come from many record batches: without a cache each sample would cost all of that.

use arrow_array::{Array, ArrayRef};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Most bytes of columns in the cache, for all preparers of a dataset together.
const BYTES_MAX: usize = 128 << 20;

/// Index of a record batch, and of a further column.
type Place = (usize, usize);

/// Columns by record batch. What was not used for longest is dropped first.
#[derive(Debug, Default)]
pub(crate) struct ColumnCache(Mutex<Cached>);

#[derive(Debug, Default)]
struct Cached {
    arrays: HashMap<Place, Entry>,
    bytes: usize,
    /// Counts uses.
    now: u64,
}

#[derive(Debug)]
struct Entry {
    array: ArrayRef,
    bytes: usize,
    used: u64,
}

impl ColumnCache {
    /// A column of a record batch, read by `read` where it is not in the cache.
    pub(crate) fn of<E>(
        &self,
        place: Place,
        read: impl FnOnce() -> Result<ArrayRef, E>,
    ) -> Result<ArrayRef, E> {
        {
            let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            cached.now += 1;
            let now = cached.now;
            if let Some(entry) = cached.arrays.get_mut(&place) {
                entry.used = now;
                return Ok(Arc::clone(&entry.array));
            }
        }
        // Two threads may read the same; what they read is equal.
        let array = read()?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(place, &array);
        Ok(array)
    }
}

impl Cached {
    fn add(&mut self, place: Place, array: &ArrayRef) {
        let bytes = array.get_array_memory_size();
        if bytes > BYTES_MAX || self.arrays.contains_key(&place) {
            return;
        }
        while self.bytes + bytes > BYTES_MAX {
            let oldest = self.arrays.iter().min_by_key(|(_, entry)| entry.used);
            let Some(place) = oldest.map(|(place, _)| *place) else { break };
            if let Some(entry) = self.arrays.remove(&place) {
                self.bytes -= entry.bytes;
            }
        }
        self.bytes += bytes;
        self.arrays.insert(place, Entry { array: Arc::clone(array), bytes, used: self.now });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::UInt8Array;

    fn ask(cache: &ColumnCache, place: Place, bytes: usize) -> bool {
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
    fn a_column_that_is_larger_than_the_cache_is_read_every_time() {
        let cache = ColumnCache::default();
        assert!(ask(&cache, (0, 0), 8));
        assert!(ask(&cache, (1, 0), BYTES_MAX + 1));
        assert!(ask(&cache, (1, 0), BYTES_MAX + 1));
        assert!(!ask(&cache, (0, 0), 8));
    }
}
