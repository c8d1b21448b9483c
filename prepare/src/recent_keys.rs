//! The keys of the most recently requested record batches.
//!
//! A single key has no checksum: the index reads all tables of a record batch and compares them
//! with their checksum. A request for one key is usually followed by requests for its neighbours.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum bytes of cached keys; a record batch with more is not cached.
const BYTES_MAX: usize = 4 << 20;

/// Record batches with their keys, the most recently requested first.
#[derive(Debug, Default)]
pub(crate) struct RecentKeys(Mutex<RecentBatches>);

#[derive(Debug, Default)]
struct RecentBatches {
    batches: VecDeque<(u64, Arc<[String]>)>,
    bytes: usize,
}

/// Memory that keys occupy.
fn bytes_of(keys: &[String]) -> usize {
    keys.iter().map(|key| key.capacity() + size_of::<String>()).sum()
}

impl RecentKeys {
    /// The keys of the record batch with this first sample, read by `read` if they are not cached.
    pub(crate) fn of<E>(
        &self,
        first_sample: u64,
        read: impl FnOnce() -> Result<Vec<String>, E>,
    ) -> Result<Arc<[String]>, E> {
        if let Some(keys) = self.cached(first_sample) {
            return Ok(keys);
        }
        // Two threads may read the same keys; their results are equal.
        let keys: Arc<[String]> = read()?.into();
        self.keep(first_sample, &keys);
        Ok(keys)
    }

    fn cached(&self, first_sample: u64) -> Option<Arc<[String]>> {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = recent.batches.iter().position(|(number, _)| *number == first_sample)?;
        if at > 0 {
            let found = recent.batches.remove(at).expect("it was found there");
            recent.batches.push_front(found);
        }
        Some(Arc::clone(&recent.batches[0].1))
    }

    fn keep(&self, first_sample: u64, keys: &Arc<[String]>) {
        let bytes = bytes_of(keys);
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_there = recent.batches.iter().any(|(number, _)| *number == first_sample);
        if is_there || bytes > BYTES_MAX {
            return;
        }
        recent.batches.push_front((first_sample, Arc::clone(keys)));
        recent.bytes += bytes;
        while recent.bytes > BYTES_MAX {
            let (_, oldest) = recent.batches.pop_back().expect("what is recent has bytes");
            recent.bytes -= bytes_of(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(keys: &RecentKeys, batch: u64, bytes: usize) -> (String, bool) {
        let mut was_read = false;
        let read = || {
            was_read = true;
            Ok::<_, ()>(vec![format!("{batch}{}", " ".repeat(bytes))])
        };
        let got = keys.of(batch, read).unwrap();
        (got[0].trim().to_owned(), was_read)
    }

    #[test]
    fn the_most_recently_used_entry_is_retained_and_the_rest_is_evicted() {
        let keys = RecentKeys::default();
        let third = BYTES_MAX / 3 - 100;
        for batch in 0..3 {
            assert_eq!(ask(&keys, batch, third), (batch.to_string(), true));
        }
        assert_eq!(ask(&keys, 0, third), ("0".into(), false));
        // The fourth replaces the second, which is the least recently requested.
        assert_eq!(ask(&keys, 3, third), ("3".into(), true));
        assert_eq!(ask(&keys, 0, third), ("0".into(), false));
        assert_eq!(ask(&keys, 2, third), ("2".into(), false));
        assert_eq!(ask(&keys, 1, third), ("1".into(), true));
    }

    #[test]
    fn entries_beyond_the_limit_are_read_each_time_and_evict_nothing() {
        let keys = RecentKeys::default();
        ask(&keys, 0, 10);
        for _ in 0..2 {
            assert_eq!(ask(&keys, 1, BYTES_MAX), ("1".into(), true));
        }
        assert_eq!(ask(&keys, 0, 10), ("0".into(), false));
    }

    #[test]
    fn entries_that_could_not_be_read_are_requested_again() {
        let keys = RecentKeys::default();
        assert_eq!(keys.of(0, || Err::<Vec<String>, _>("damaged")).unwrap_err(), "damaged");
        assert_eq!(ask(&keys, 0, 3), ("0".into(), true));
    }
}
