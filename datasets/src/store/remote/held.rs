//! The state of the cache: cached objects, transfers in progress, and evictions. Only bookkeeping,
//! no files.

use super::RemoteError;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Objects that are fetched at the same time.
const FETCHING_MAX: usize = 16;
/// Bytes of objects that are fetched and not opened yet; one of them may be longer.
const AHEAD_BYTES: u64 = 256 << 20;

/// Where an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    Absent,
    Fetching,
    /// Here, since that time if it was opened.
    Held(Option<u64>),
}

/// What is to be done for room.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// There is room.
    Made,
    /// Another object goes first.
    After(usize),
    /// When others are through.
    Later,
    /// Never.
    None,
}

/// What is held of a list of objects.
#[derive(Debug)]
pub(super) struct Held {
    slots: Vec<Slot>,
    /// Length of each object.
    bytes_of: Vec<u64>,
    bytes_max: u64,
    /// Bytes that are held or on their way.
    bytes: u64,
    /// Transfers on their way.
    fetching: usize,
    /// Bytes of objects that nobody has opened yet, here or on their way.
    ahead_bytes: u64,
    /// Objects that were opened, by when that was last.
    used: BTreeMap<u64, usize>,
    /// Objects that nobody has opened yet.
    unused: BTreeSet<usize>,
    /// Goes up by one for each that is opened.
    clock: u64,
    /// Tags that transfers gave, where the listing has none.
    pub(super) tags: HashMap<usize, String>,
    /// What ended it.
    pub(super) failure: Option<RemoteError>,
    /// A transfer ahead failed: what is wanted is fetched when it is.
    pub(super) is_alone: bool,
}

impl Held {
    /// Nothing, of objects of these lengths.
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

    /// Whether no more may be fetched ahead than there is, with an object more.
    pub(super) fn is_full_ahead(&self, object: usize) -> bool {
        let bytes = self.bytes_of[object];
        self.fetching >= FETCHING_MAX
            || (self.ahead_bytes > 0 && self.ahead_bytes + bytes > AHEAD_BYTES)
            || self.is_alone
            || self.failure.is_some()
    }

    /// What makes room for an object; what nobody has opened yet goes only where somebody waits.
    pub(super) fn room(&self, object: usize, is_wanted: bool) -> Room {
        let bytes = self.bytes_of[object];
        if bytes > self.bytes_max {
            return Room::None;
        }
        if self.bytes + bytes <= self.bytes_max {
            return Room::Made;
        }
        let oldest = self.used.first_key_value().map(|(_, object)| *object);
        // The last in order is wanted last.
        let unused = || self.unused.last().copied().filter(|_| is_wanted);
        oldest.or_else(unused).map_or(Room::Later, Room::After)
    }

    /// An object is on its way.
    pub(super) fn begin(&mut self, object: usize) {
        let bytes = self.bytes_of[object];
        self.slots[object] = Slot::Fetching;
        self.bytes += bytes;
        self.ahead_bytes += bytes;
        self.fetching += 1;
    }

    /// An object that was on its way is here, or is not.
    pub(super) fn end(&mut self, object: usize, is_here: bool) {
        self.fetching -= 1;
        if is_here {
            self.slots[object] = Slot::Held(None);
            self.unused.insert(object);
        } else {
            let bytes = self.bytes_of[object];
            self.slots[object] = Slot::Absent;
            self.bytes -= bytes;
            self.ahead_bytes -= bytes;
        }
    }

    /// An object that is here is opened.
    pub(super) fn touch(&mut self, object: usize) {
        self.forget(object);
        self.clock += 1;
        self.used.insert(self.clock, object);
        self.slots[object] = Slot::Held(Some(self.clock));
    }

    /// An object that is here goes.
    pub(super) fn let_go(&mut self, object: usize) {
        self.forget(object);
        self.slots[object] = Slot::Absent;
        self.bytes -= self.bytes_of[object];
    }

    /// Takes an object that is here out of those that may go.
    fn forget(&mut self, object: usize) {
        match self.slots[object] {
            Slot::Held(Some(time)) => drop(self.used.remove(&time)),
            Slot::Held(None) => {
                self.unused.remove(&object);
                self.ahead_bytes -= self.bytes_of[object];
            }
            Slot::Absent | Slot::Fetching => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Held, Room, Slot};

    #[test]
    fn what_was_opened_longest_ago_makes_room_and_what_waits_to_be_opened_stays() {
        let mut held = Held::new(vec![4, 4, 4, 9, 11], 10);
        for object in [0, 1] {
            assert_eq!(held.room(object, true), Room::Made);
            held.begin(object);
            held.end(object, true);
        }
        assert_eq!(held.room(2, false), Room::Later, "neither was opened");
        assert_eq!(held.room(2, true), Room::After(1), "the last in order is wanted last");
        held.touch(1);
        held.touch(0);
        assert_eq!(held.room(2, false), Room::After(1));
        held.let_go(1);
        assert_eq!((held.room(2, false), held.slot(1)), (Room::Made, Slot::Absent));
        assert_eq!(held.room(3, true), Room::After(0));
        assert_eq!(held.room(4, true), Room::None, "longer than all that may be held");
        held.begin(2);
        held.end(2, false);
        held.let_go(0);
        assert_eq!(held.room(3, true), Room::Made);
    }
}
