//! The untouched batches: two ends that approach each other, once per part.
//!
//! A part is the set of batches that one device holds (or all batches, if every device can prepare
//! every batch). Batches of a part are numbered 0..count in ascending order. A batch at or above
//! `front` is untouched unless it is in a stretch, a run of batches that was claimed above the
//! front.
//!
//! ```text
//! 0 ········ front            back                      count
//! claimed    │ untouched …    │ claimed (a stretch)     │
//! ```
//!
//! There is one stretch if claims come only from the back, one per window if they come from the
//! back of windows, and a few more if batches were prepared in an earlier epoch.

use std::collections::VecDeque;

use crate::terms::{Holders, Terms};
use crate::types::{BatchIndex, DeviceId};

/// Initial capacity for stretches.
const STRETCHES: usize = 4;

/// Initial capacity for returned batches of a part.
const FREED: usize = 32;

#[derive(Debug, Clone)]
pub(crate) struct Part {
    count: u32,
    front: u32,
    /// `start..end`, ascending, neither adjacent to each other nor to the front.
    stretches: VecDeque<(u32, u32)>,
    untouched: u32,
    /// Claimed by the host while untouched.
    host_claimed: u32,
    /// Returned and not claimed since, ascending.
    freed: VecDeque<u32>,
    noticed: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Parts {
    holders: Holders,
    parts: Vec<Part>,
    batches: u32,
    untouched: u32,
    freed: u32,
    /// Parts that changed since the strategy last read them.
    notices: Vec<u16>,
}

impl Parts {
    pub(crate) fn new(terms: &Terms) -> Self {
        let part = |count| Part {
            count,
            front: 0,
            stretches: VecDeque::with_capacity(STRETCHES),
            untouched: count,
            host_claimed: 0,
            freed: VecDeque::with_capacity((count as usize).min(FREED)),
            noticed: false,
        };
        let parts: Vec<Part> = match &terms.holders {
            Holders::Interleaved(interleave) => {
                (0..interleave.devices()).map(|d| part(interleave.count(DeviceId(d)))).collect()
            }
            Holders::Shared => vec![part(terms.batches)],
        };
        let mut made = Self {
            holders: terms.holders.clone(),
            batches: terms.batches,
            untouched: terms.batches,
            freed: 0,
            notices: Vec::with_capacity(parts.len()),
            parts,
        };
        (0..made.len()).for_each(|part| made.notice(part));
        made
    }

    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    pub(crate) fn part(&self, part: usize) -> &Part {
        &self.parts[part]
    }

    /// Whether all devices take batches from the same part.
    pub(crate) fn shared(&self) -> bool {
        matches!(self.holders, Holders::Shared)
    }

    /// The part from which a device takes batches.
    pub(crate) fn of(&self, device: DeviceId) -> usize {
        if self.shared() { 0 } else { usize::from(device.0) }
    }

    /// The part of a batch, and its index in the part.
    pub(crate) fn locate(&self, batch: BatchIndex) -> (usize, u32) {
        match &self.holders {
            Holders::Shared => (0, batch.0),
            Holders::Interleaved(interleave) => {
                let (device, n) = interleave.holder(batch);
                (usize::from(device.0), n)
            }
        }
    }

    /// The n-th batch of a part.
    pub(crate) fn batch(&self, part: usize, n: u32) -> BatchIndex {
        match &self.holders {
            Holders::Shared => BatchIndex(n),
            Holders::Interleaved(interleave) => {
                let device = DeviceId(u16::try_from(part).expect("devices are counted by a u16"));
                interleave.nth(device, n)
            }
        }
    }

    /// Number of batches of a part below a batch.
    pub(crate) fn below(&self, part: usize, batch: u32) -> u32 {
        if self.shared() {
            return batch.min(self.batches);
        }
        let (mut low, mut high) = (0, self.parts[part].count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.batch(part, middle).0 < batch {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    pub(crate) fn untouched(&self) -> u32 {
        self.untouched
    }

    /// Number of returned batches that were not claimed since.
    pub(crate) fn freed(&self) -> u32 {
        self.freed
    }

    pub(crate) fn is_untouched(&self, batch: BatchIndex) -> bool {
        let (part, n) = self.locate(batch);
        self.parts[part].is_untouched(n)
    }

    /// Whether a part has an untouched batch below a batch.
    pub(crate) fn any_untouched_below(&self, part: usize, batch: BatchIndex) -> bool {
        let of = &self.parts[part];
        of.untouched > 0 && self.batch(part, of.front) < batch
    }

    /// Claims an untouched batch.
    pub(crate) fn take(&mut self, batch: BatchIndex, by_host: bool) {
        let (at, n) = self.locate(batch);
        let part = &mut self.parts[at];
        assert!(part.is_untouched(n), "batch {} was claimed before", batch.0);
        part.take(n);
        part.untouched -= 1;
        part.host_claimed += u32::from(by_host);
        self.untouched -= 1;
        self.notice(at);
    }

    /// Returns a claimed batch.
    pub(crate) fn free(&mut self, batch: BatchIndex) {
        let (at, n) = self.locate(batch);
        let freed = &mut self.parts[at].freed;
        let place = freed.partition_point(|&other| other < n);
        freed.insert(place, n);
        self.freed += 1;
        self.notice(at);
    }

    /// Claims a returned batch.
    pub(crate) fn reclaim(&mut self, batch: BatchIndex) {
        let (at, n) = self.locate(batch);
        let freed = &mut self.parts[at].freed;
        let place = freed.partition_point(|&other| other < n);
        let gone = freed.remove(place);
        assert_eq!(gone, Some(n), "batch {} was not returned", batch.0);
        self.freed -= 1;
        self.notice(at);
    }

    /// Marks a part as changed.
    pub(crate) fn notice(&mut self, part: usize) {
        if !self.parts[part].noticed {
            self.parts[part].noticed = true;
            self.notices.push(u16::try_from(part).expect("parts are counted by a u16"));
        }
    }

    /// Returns a part that changed since the last call.
    pub(crate) fn next_notice(&mut self) -> Option<usize> {
        let part = usize::from(self.notices.pop()?);
        self.parts[part].noticed = false;
        Some(part)
    }
}

impl Part {
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// The lowest untouched batch, or `count`.
    pub(crate) fn front(&self) -> u32 {
        self.front
    }

    pub(crate) fn untouched(&self) -> u32 {
        self.untouched
    }

    pub(crate) fn host_claimed(&self) -> u32 {
        self.host_claimed
    }

    /// The lowest and the highest returned batch.
    pub(crate) fn freed_ends(&self) -> Option<(u32, u32)> {
        Some((*self.freed.front()?, *self.freed.back()?))
    }

    pub(crate) fn is_freed(&self, n: u32) -> bool {
        self.freed.binary_search(&n).is_ok()
    }

    pub(crate) fn is_untouched(&self, n: u32) -> bool {
        let above = n >= self.front && n < self.count;
        above && !self.stretches.iter().any(|&(start, end)| (start..end).contains(&n))
    }

    /// The lowest batch claimed above the front; `count` if there is none.
    pub(crate) fn back(&self) -> u32 {
        self.stretches.front().map_or(self.count, |&(start, _)| start)
    }

    /// The highest run of untouched batches in `floor..end`, as (first, past the last).
    pub(crate) fn highest_run(&self, floor: u32, end: u32) -> (u32, u32) {
        let floor = floor.max(self.front);
        let mut end = end.min(self.count);
        for &(start, stretch_end) in self.stretches.iter().rev() {
            if start >= end {
                continue;
            }
            if stretch_end < end {
                return (floor.max(stretch_end).min(end), end);
            }
            end = start;
        }
        (floor.min(end), end)
    }

    /// The run of untouched batches at the front, as (first, past the last).
    pub(crate) fn lowest_run(&self) -> (u32, u32) {
        (self.front, self.back())
    }

    fn take(&mut self, n: u32) {
        if n == self.front {
            self.front += 1;
        } else {
            // The stretch that begins above it, if any.
            let above = self.stretches.partition_point(|&(start, _)| start <= n);
            let joins_above = self.stretches.get(above).is_some_and(|&(start, _)| start == n + 1);
            let joins_below = above > 0 && self.stretches[above - 1].1 == n;
            match (joins_below, joins_above) {
                (true, true) => {
                    self.stretches[above - 1].1 = self.stretches[above].1;
                    self.stretches.remove(above);
                }
                (true, false) => self.stretches[above - 1].1 = n + 1,
                (false, true) => self.stretches[above].0 = n,
                (false, false) => self.stretches.insert(above, (n, n + 1)),
            }
        }
        while self.stretches.front().is_some_and(|&(start, _)| start == self.front) {
            let (_, end) = self.stretches.pop_front().expect("the stretch exists");
            self.front = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part(count: u32) -> Part {
        Part {
            count,
            front: 0,
            stretches: VecDeque::new(),
            untouched: count,
            host_claimed: 0,
            freed: VecDeque::new(),
            noticed: false,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn a_part_behaves_as_a_set_of_claims(
            count in 1_u32..60, picks in proptest::collection::vec(any::<u32>(), 1..80),
            bounds in (0_u32..60, 0_u32..70),
        ) {
            let mut part = part(count);
            let mut taken = vec![false; count as usize];
            for pick in picks {
                let n = pick % count;
                if !taken[n as usize] {
                    part.take(n);
                    taken[n as usize] = true;
                }
                for other in 0..count {
                    prop_assert_eq!(part.is_untouched(other), !taken[other as usize]);
                }
                let first = (0..count).find(|&n| !taken[n as usize]).unwrap_or(count);
                prop_assert_eq!(part.front(), first);
                let (floor, end) = bounds;
                let free = |n: u32| n >= floor && n < end.min(count) && !taken[n as usize];
                let (from, to) = part.highest_run(floor, end);
                let highest = (0..count).rev().find(|&n| free(n));
                prop_assert_eq!(highest.map(|n| n + 1), (from < to).then_some(to));
                prop_assert!((from..to).all(free));
                prop_assert!(from >= to || from == 0 || !free(from - 1));
            }
        }
    }
}
