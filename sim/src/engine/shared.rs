//! A resource that its users share equally: a link, a drive, a set of cores.
//!
//! Processor sharing: of n users each gets capacity / n, and never more than `each_max` (one core
//! serves a thread, and no more). The model keeps a counter of the work that each user has received
//! since the resource was last idle; a user is done when the counter reaches its value at arrival
//! plus the user's work. So arrivals and departures cost O(log n) whatever n is.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use meetpoint_scheduler::Time;

/// Less work than this counts as none, because the counter is rounded.
const NOTHING: f64 = 1e-6;

#[derive(Debug)]
pub(super) struct Shared {
    /// Work per nanosecond, all users together.
    capacity: f64,
    /// Maximum work per nanosecond of one user.
    each_max: f64,
    users: u32,
    /// Work that all users have received since the beginning.
    served: f64,
    /// Work that a user has received if it has been present since the resource was last idle.
    given: f64,
    updated: Time,
    /// Counts arrivals and departures; an announced end is valid only until the next one.
    version: u32,
    ends: BinaryHeap<Reverse<End>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct End {
    at: f64,
    op: u32,
    serial: u32,
}

impl Eq for End {}

impl PartialOrd for End {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for End {
    fn cmp(&self, other: &Self) -> Ordering {
        let tie = (self.op, self.serial).cmp(&(other.op, other.serial));
        self.at.total_cmp(&other.at).then(tie)
    }
}

impl Shared {
    /// A leg of this bandwidth.
    pub(super) fn bandwidth(bytes_per_second: u64) -> Self {
        Self::new(bytes_per_second as f64 / 1e9, f64::INFINITY)
    }

    /// Core time on a given number of cores.
    pub(super) fn cores(cores: u32) -> Self {
        Self::new(f64::from(cores), 1.0)
    }

    fn new(capacity: f64, each_max: f64) -> Self {
        Self {
            capacity,
            each_max,
            users: 0,
            served: 0.0,
            given: 0.0,
            updated: 0,
            version: 0,
            ends: BinaryHeap::new(),
        }
    }

    /// Removes all users.
    pub(super) fn clear(&mut self) {
        self.users = 0;
        self.given = 0.0;
        self.version = self.version.wrapping_add(1);
        self.ends.clear();
    }

    /// A user arrives with an amount of work.
    pub(super) fn join(&mut self, now: Time, op: u32, serial: u32, work: f64) {
        self.advance(now);
        if self.users == 0 {
            self.given = 0.0;
        }
        self.users += 1;
        self.ends.push(Reverse(End { at: self.given + work, op, serial }));
        self.version = self.version.wrapping_add(1);
    }

    /// A user leaves before its work is done; its end is ignored later.
    pub(super) fn leave(&mut self, now: Time) {
        self.advance(now);
        self.users -= 1;
        self.version = self.version.wrapping_add(1);
    }

    /// The users that are done now; `is_live` is false for those that have left.
    pub(super) fn done(
        &mut self,
        now: Time,
        is_live: impl Fn(u32, u32) -> bool,
    ) -> Option<(u32, u32)> {
        self.advance(now);
        while let Some(Reverse(end)) = self.ends.peek().copied() {
            if is_live(end.op, end.serial) {
                if end.at > self.given + NOTHING {
                    return None;
                }
                self.ends.pop();
                self.users -= 1;
                self.version = self.version.wrapping_add(1);
                return Some((end.op, end.serial));
            }
            self.ends.pop();
        }
        None
    }

    /// When the next user is done if none arrives or leaves, and the version for which this holds.
    pub(super) fn next(&mut self, is_live: impl Fn(u32, u32) -> bool) -> Option<(Time, u32)> {
        while let Some(Reverse(end)) = self.ends.peek() {
            if is_live(end.op, end.serial) {
                let wait = ((end.at - self.given).max(0.0) / self.speed()).ceil();
                return Some((self.updated.saturating_add(wait as u64), self.version));
            }
            self.ends.pop();
        }
        None
    }

    /// Time from the beginning to `now` in which it would have done, at full capacity, the work
    /// that users received.
    pub(super) fn busy_ns(&self, now: Time) -> f64 {
        let since = now.saturating_sub(self.updated) as f64;
        let open = if self.users == 0 { 0.0 } else { since * self.speed() * f64::from(self.users) };
        (self.served + open) / self.capacity
    }

    pub(super) fn is_current(&self, version: u32) -> bool {
        self.version == version
    }

    fn speed(&self) -> f64 {
        (self.capacity / f64::from(self.users.max(1))).min(self.each_max)
    }

    fn advance(&mut self, now: Time) {
        if self.users > 0 {
            let each = now.saturating_sub(self.updated) as f64 * self.speed();
            self.given += each;
            self.served += each * f64::from(self.users);
        }
        self.updated = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(shared: &mut Shared) -> Vec<(Time, u32)> {
        let mut found = Vec::new();
        while let Some((at, _)) = shared.next(|_, _| true) {
            while let Some((op, _)) = shared.done(at, |_, _| true) {
                found.push((at, op));
            }
        }
        found
    }

    #[test]
    fn one_user_has_all_of_it() {
        let mut link = Shared::bandwidth(1_000_000_000);
        link.join(5, 0, 0, 100.0);
        assert_eq!(ends(&mut link), [(105, 0)]);
    }

    #[test]
    fn users_share_equally_in_any_order_of_arrival() {
        // Two of 100 bytes at 1 byte/ns, the second 50 ns later: the first has 50 left, which take
        // 100 ns at half speed; then the second has 50 left.
        let mut link = Shared::bandwidth(1_000_000_000);
        link.join(0, 0, 0, 100.0);
        link.join(50, 1, 0, 100.0);
        assert_eq!(ends(&mut link), [(150, 0), (200, 1)]);
    }

    #[test]
    fn a_thread_uses_one_core_at_the_most() {
        let mut cores = Shared::cores(2);
        (0..3).for_each(|op| cores.join(0, op, 0, 60.0));
        assert_eq!(ends(&mut cores), [(90, 0), (90, 1), (90, 2)]);
        cores.join(100, 9, 0, 60.0);
        assert_eq!(ends(&mut cores), [(160, 9)]);
    }

    #[test]
    fn a_user_that_leaves_frees_its_share() {
        let mut link = Shared::bandwidth(1_000_000_000);
        link.join(0, 0, 0, 100.0);
        link.join(0, 1, 0, 100.0);
        link.leave(100);
        let is_live = |op, _| op == 0;
        assert_eq!(link.next(is_live).map(|(at, _)| at), Some(150));
        assert_eq!(link.done(150, is_live), Some((0, 0)));
        assert_eq!(link.next(is_live), None);
    }
}
