//! The ends of parts, which contain their footers: fetched together, and held until the footers are
//! read.

use super::request::{Object, Requests};
use crate::error::RemoteError;
use futures_util::{StreamExt, TryStreamExt};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes at the end of each part that are fetched before its first sample is located: enough for
/// the footers of parts with about a thousand record batches.
const END_BYTES: u64 = 16 << 10;
/// Maximum number of concurrent requests for ends.
const REQUESTS_MAX: usize = 32;

/// The last bytes of a part.
#[derive(Debug)]
struct PartEnd {
    /// Offset of the first byte in the part.
    start: u64,
    bytes: Vec<u8>,
}

impl PartEnd {
    /// The bytes of a range of the part; `None` if it begins before or ends after these.
    fn get(&self, range: &Range<u64>) -> Option<&[u8]> {
        let first = usize::try_from(range.start.checked_sub(self.start)?).ok()?;
        let length = usize::try_from(range.end - range.start).ok()?;
        self.bytes.get(first..first.checked_add(length)?)
    }
}

/// The ends that are held, by part.
#[derive(Debug, Default)]
pub(super) struct PartEnds(Mutex<HashMap<usize, PartEnd>>);

impl PartEnds {
    fn lock(&self) -> MutexGuard<'_, HashMap<usize, PartEnd>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fetches the ends of parts, except those that are held; `objects` are all parts.
    pub(super) async fn fetch(
        &self,
        parts: &[usize],
        objects: &[Object],
        requests: &Requests,
    ) -> Result<(), RemoteError> {
        let missing: Vec<usize> = {
            let held = self.lock();
            parts.iter().copied().filter(|part| !held.contains_key(part)).collect()
        };
        let ends = missing.into_iter().map(|part| async move {
            let end = fetch_end(&objects[part], requests).await?;
            Ok::<_, RemoteError>((part, end))
        });
        let ends = futures_util::stream::iter(ends).buffer_unordered(REQUESTS_MAX);
        let ends: Vec<_> = ends.try_collect().await?;
        self.lock().extend(ends);
        Ok(())
    }

    /// Frees the ends of parts.
    pub(super) fn forget(&self, parts: &[usize]) {
        let mut held = self.lock();
        parts.iter().for_each(|part| drop(held.remove(part)));
    }

    /// Whether a range of a part is in the end that is held.
    pub(super) fn contain(&self, part: usize, range: &Range<u64>) -> bool {
        self.lock().get(&part).is_some_and(|end| end.get(range).is_some())
    }

    /// Copies a range of a part; `false` if the end that is held does not contain it.
    pub(super) fn read(&self, part: usize, range: &Range<u64>, into: &mut [u8]) -> bool {
        let held = self.lock();
        let found = held.get(&part).and_then(|end| end.get(range));
        found.map(|found| into.copy_from_slice(found)).is_some()
    }
}

async fn fetch_end(object: &Object, requests: &Requests) -> Result<PartEnd, RemoteError> {
    let length = object.bytes.unwrap_or(0);
    let start = length.saturating_sub(END_BYTES);
    let mut bytes = Vec::new();
    let mut sink = |_: u64, fetched: &[u8]| {
        bytes.extend_from_slice(fetched);
        Ok(())
    };
    if start < length {
        requests.range(object, start..length, &mut sink).await?;
    }
    Ok(PartEnd { start, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_gives_the_ranges_that_it_contains_whole() {
        let ends = PartEnds::default();
        ends.lock().insert(3, PartEnd { start: 100, bytes: (0..10).collect() });
        let mut bytes = [0; 4];
        assert!(ends.read(3, &(106..110), &mut bytes));
        assert_eq!(bytes, [6, 7, 8, 9]);
        assert!(ends.contain(3, &(100..110)) && ends.contain(3, &(110..110)));
        for range in [99..103, 107..111, 0..4] {
            assert!(!ends.contain(3, &range) && !ends.read(3, &range, &mut bytes), "{range:?}");
        }
        assert!(!ends.contain(2, &(106..110)));
        ends.forget(&[3]);
        assert!(!ends.contain(3, &(106..110)));
    }
}
