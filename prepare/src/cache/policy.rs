//! The eviction policy: evicts the cached sample whose next use is last, unless that of the new
//! sample is later.
//!
//! This is Belady's policy with bypass. It is a value: it reads no clock and contains no samples.

use std::collections::{BTreeSet, HashMap};

/// The samples in one process's part of a cache, ordered by their next use.
#[derive(Debug)]
pub(crate) struct Policy {
    by_use: BTreeSet<(u32, u64)>,
    entries: HashMap<u64, Entry>,
    free: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    next: u32,
    blocks: u32,
}

impl Policy {
    /// An empty part with a given number of free blocks.
    pub(crate) fn new(blocks: u32) -> Self {
        Self { by_use: BTreeSet::new(), entries: HashMap::new(), free: blocks }
    }

    /// The samples to evict in order to add one with the given next use and number of blocks;
    /// `None` if it should not be added, because it is needed later than the samples that would be
    /// evicted.
    pub(crate) fn victims(&self, next: u32, blocks: u32) -> Option<Vec<u64>> {
        let (mut victims, mut free) = (Vec::new(), self.free);
        let mut last = self.by_use.iter().rev();
        while free < blocks {
            let &(later, sample) = last.next()?;
            if later <= next {
                return None;
            }
            free += self.entries[&sample].blocks;
            victims.push(sample);
        }
        Some(victims)
    }

    /// Adds a sample. There must be enough free blocks.
    pub(crate) fn add(&mut self, sample: u64, next: u32, blocks: u32) {
        self.remove(sample);
        self.free = self.free.checked_sub(blocks).expect("the caller has evicted enough");
        self.by_use.insert((next, sample));
        self.entries.insert(sample, Entry { next, blocks });
    }

    /// Removes a sample, if it is cached.
    pub(crate) fn remove(&mut self, sample: u64) {
        if let Some(Entry { next, blocks }) = self.entries.remove(&sample) {
            self.by_use.remove(&(next, sample));
            self.free += blocks;
        }
    }

    /// A sample was used; `next` is its next use.
    pub(crate) fn touch(&mut self, sample: u64, next: u32) {
        if let Some(entry) = self.entries.get_mut(&sample) {
            self.by_use.remove(&(entry.next, sample));
            entry.next = next;
            self.by_use.insert((next, sample));
        }
    }

    /// Other ranks have used the samples of all earlier positions; `after` returns the next use of
    /// the sample at a position.
    pub(crate) fn advance(&mut self, position: u64, after: impl Fn(u64) -> u32) {
        while let Some(&(next, sample)) = self.by_use.first() {
            let later = after(next.into());
            if u64::from(next) >= position || later <= next {
                break;
            }
            self.touch(sample, later);
        }
    }

    /// A new epoch has begun.
    pub(crate) fn rekey(&mut self, first: impl Fn(u64) -> u32) {
        self.by_use.clear();
        for (&sample, entry) in &mut self.entries {
            entry.next = first(sample);
            self.by_use.insert((entry.next, sample));
        }
    }
}
