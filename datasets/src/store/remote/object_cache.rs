//! The state of the cache: cached objects, transfers in progress, and evictions. Only bookkeeping,
//! no files.

use crate::error::RemoteError;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Maximum number of concurrent transfers.
const FETCHING_MAX: usize = 16;
/// Maximum bytes of prefetched objects that were not opened yet; a single one may be longer.
const AHEAD_BYTES: u64 = 256 << 20;

/// The state of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    Absent,
    Fetching,
    /// Cached; with the time of the last opening, if it was opened.
    Cached(Option<u64>),
}

/// How to free space for an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Eviction {
    /// There is enough space.
    NotNeeded,
    /// Evict this object first.
    After(usize),
    /// Wait until other transfers finish.
    Wait,
    /// The object is larger than the cache.
    Impossible,
}

/// The cached objects of a list.
#[derive(Debug)]
pub(super) struct ObjectCache {
    slots: Vec<Slot>,
    /// Length of each object.
    bytes_of: Vec<u64>,
    bytes_max: u64,
    /// Bytes that are cached or being transferred.
    bytes: u64,
    /// Number of transfers in progress.
    fetching: usize,
    /// Bytes of objects that were not opened yet, cached or being transferred.
    ahead_bytes: u64,
    /// Opened objects, by the time of the last opening.
    used: BTreeMap<u64, usize>,
    /// Cached objects that were not opened yet.
    unused: BTreeSet<usize>,
    /// Logical time: the number of openings.
    clock: u64,
    /// Tags from transfers, for objects without one in the listing.
    pub(super) tags: HashMap<usize, String>,
    /// The error that stopped all transfers.
    pub(super) failure: Option<RemoteError>,
    /// Set when a prefetch failed; from then on objects are fetched only when they are opened.
    pub(super) is_alone: bool,
}

impl ObjectCache {
    /// An empty cache for objects of these lengths.
    pub(super) fn new(bytes_of: Vec<u64>, bytes_max: u64) -> Self {
        Self {
            slots: vec![Slot::Absent; bytes_of.len()],
            bytes_of,
            bytes_max,
            bytes: 0,
            fetching: 0,
            ahead_bytes: 0,
            used: BTreeMap::new(),
            unused: BTreeSet::new(),
            clock: 0,
            tags: HashMap::new(),
            failure: None,
            is_alone: false,
        }
    }

    pub(super) fn slot(&self, object: usize) -> Slot {
        self.slots[object]
    }

    /// Whether the prefetch limits leave no space for an object.
    pub(super) fn is_full_ahead(&self, object: usize) -> bool {
        let bytes = self.bytes_of[object];
        self.fetching >= FETCHING_MAX
            || (self.ahead_bytes > 0 && self.ahead_bytes + bytes > AHEAD_BYTES)
            || self.is_alone
            || self.failure.is_some()
    }

    /// How to free space for an object; objects that were not opened yet are evicted only if a
    /// reader waits.
    pub(super) fn eviction_for(&self, object: usize, is_wanted: bool) -> Eviction {
        let bytes = self.bytes_of[object];
        if bytes > self.bytes_max {
            return Eviction::Impossible;
        }
        if self.bytes + bytes <= self.bytes_max {
            return Eviction::NotNeeded;
        }
        let oldest = self.used.first_key_value().map(|(_, object)| *object);
        // The last in order will be needed last.
        let unused = || self.unused.last().copied().filter(|_| is_wanted);
        oldest.or_else(unused).map_or(Eviction::Wait, Eviction::After)
    }

    /// Records the start of a transfer.
    pub(super) fn begin(&mut self, object: usize) {
        let bytes = self.bytes_of[object];
        self.slots[object] = Slot::Fetching;
        self.bytes += bytes;
        self.ahead_bytes += bytes;
        self.fetching += 1;
    }

    /// Records the end of a transfer, successful or not.
    pub(super) fn end(&mut self, object: usize, is_here: bool) {
        self.fetching -= 1;
        if is_here {
            self.slots[object] = Slot::Cached(None);
            self.unused.insert(object);
        } else {
            let bytes = self.bytes_of[object];
            self.slots[object] = Slot::Absent;
            self.bytes -= bytes;
            self.ahead_bytes -= bytes;
        }
    }

    /// Records the opening of a cached object.
    pub(super) fn touch(&mut self, object: usize) {
        self.forget(object);
        self.clock += 1;
        self.used.insert(self.clock, object);
        self.slots[object] = Slot::Cached(Some(self.clock));
    }

    /// Records the eviction of a cached object.
    pub(super) fn let_go(&mut self, object: usize) {
        self.forget(object);
        self.slots[object] = Slot::Absent;
        self.bytes -= self.bytes_of[object];
    }

    /// Removes a cached object from the candidates for eviction.
    fn forget(&mut self, object: usize) {
        match self.slots[object] {
            Slot::Cached(Some(time)) => drop(self.used.remove(&time)),
            Slot::Cached(None) => {
                self.unused.remove(&object);
                self.ahead_bytes -= self.bytes_of[object];
            }
            Slot::Absent | Slot::Fetching => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Eviction, ObjectCache, Slot};

    #[test]
    fn the_least_recently_opened_object_is_evicted_and_unopened_ones_stay() {
        let mut held = ObjectCache::new(vec![4, 4, 4, 9, 11], 10);
        for object in [0, 1] {
            assert_eq!(held.eviction_for(object, true), Eviction::NotNeeded);
            held.begin(object);
            held.end(object, true);
        }
        assert_eq!(held.eviction_for(2, false), Eviction::Wait, "neither was opened");
        assert_eq!(
            held.eviction_for(2, true),
            Eviction::After(1),
            "the last in order is wanted last"
        );
        held.touch(1);
        held.touch(0);
        assert_eq!(held.eviction_for(2, false), Eviction::After(1));
        held.let_go(1);
        assert_eq!(
            (held.eviction_for(2, false), held.slot(1)),
            (Eviction::NotNeeded, Slot::Absent)
        );
        assert_eq!(held.eviction_for(3, true), Eviction::After(0));
        assert_eq!(
            held.eviction_for(4, true),
            Eviction::Impossible,
            "longer than all that may be held"
        );
        held.begin(2);
        held.end(2, false);
        held.let_go(0);
        assert_eq!(held.eviction_for(3, true), Eviction::NotNeeded);
    }
}
