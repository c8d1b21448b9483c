//! How the faults of a device slow it down, and when it is silent.

use meetpoint_scheduler::Time;

use crate::scenario::{Fault, FaultKind, When};

/// The pending faults of a device, and its state.
#[derive(Debug, Clone, Default)]
pub(super) struct Faults {
    /// Those with a time, by time.
    timed: Vec<(Time, FaultKind)>,
    /// Those with a batch, from 1.
    by_batch: Vec<(u64, FaultKind)>,
    /// Silences that began with a batch: from, to.
    silences: Vec<(Time, Time)>,
    /// Slow-down factor since a batch.
    slower: Option<f64>,
    dead_since: Option<Time>,
    misreports_since: Option<Time>,
}

/// The effect of faults on a batch that the device begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FaultEffect {
    /// Its end; `None` if it never ends.
    pub(super) ends: Option<Time>,
    /// The published batch is damaged.
    pub(super) corrupt: bool,
    /// The link of the device breaks during this batch.
    pub(super) drops_link: bool,
}

impl Faults {
    pub(super) fn new(faults: &[Fault]) -> Self {
        let mut found = Self::default();
        for fault in faults {
            match fault.when {
                When::Time(at) => found.timed.push((at.0, fault.kind)),
                When::Batch(batch) => found.by_batch.push((batch, fault.kind)),
            }
        }
        found.timed.sort_by_key(|(at, _)| *at);
        found
    }

    /// When the link breaks, if a timed fault breaks it.
    pub(super) fn link_breaks_at(&self) -> Option<Time> {
        let breaks = |(at, kind): &(Time, FaultKind)| (*kind == FaultKind::DropLink).then_some(*at);
        self.timed.iter().find_map(breaks)
    }

    /// The device begins its `nth` batch (from 1), which takes `work_ns` without faults.
    pub(super) fn begin(&mut self, now: Time, nth: u64, work_ns: u64) -> FaultEffect {
        let mut effect = FaultEffect::default();
        let mut stalls_for_ever = false;
        for at in 0..self.by_batch.len() {
            let (batch, kind) = self.by_batch[at];
            if batch != nth {
                continue;
            }
            match kind {
                FaultKind::Die | FaultKind::Stall(None) => stalls_for_ever = true,
                FaultKind::DropLink => effect.drops_link = true,
                FaultKind::Stall(Some(time)) => {
                    self.silences.push((now, now.saturating_add(time.0)));
                }
                FaultKind::Slow(factor) => self.slower = Some(factor),
                FaultKind::Corrupt => effect.corrupt = true,
                FaultKind::Lie => self.misreports_since = Some(now),
            }
        }
        if stalls_for_ever || effect.drops_link {
            self.dead_since = Some(now);
        }
        effect.ends = self.finish(now, work_ns);
        effect
    }

    /// When work that begins now is complete, including stalls and slow-downs.
    pub(super) fn finish(&self, now: Time, work_ns: u64) -> Option<Time> {
        if self.dead_since.is_some() || self.misreports_since.is_some() {
            return None;
        }
        if self.timed.is_empty() && self.silences.is_empty() {
            let factor = self.slower.unwrap_or(1.0);
            return Some(now.saturating_add((work_ns as f64 * factor).round() as u64));
        }
        let (mut at, mut left) = (now, work_ns as f64);
        loop {
            if self.is_dead(at) || self.misreports(at) {
                return None;
            }
            if let Some(until) = self.silent_until(at) {
                at = until?;
                continue;
            }
            let factor = self.factor(at);
            let end = at.saturating_add((left * factor).round() as u64);
            match self.next_change(at) {
                Some(change) if change < end => {
                    left -= (change - at) as f64 / factor;
                    at = change;
                }
                _ => return Some(end),
            }
        }
    }

    /// Whether it reports progress at this time.
    pub(super) fn speaks(&self, now: Time) -> bool {
        !self.is_dead(now) && self.silent_until(now).is_none()
    }

    /// When it reports progress again, if it is silent now and recovers.
    pub(super) fn recovers_at(&self, now: Time) -> Option<Time> {
        if self.is_dead(now) { None } else { self.silent_until(now).flatten() }
    }

    /// Whether it is dead.
    pub(super) fn is_dead(&self, now: Time) -> bool {
        let dead = |(at, kind): &(Time, FaultKind)| {
            *at <= now
                && matches!(kind, FaultKind::Die | FaultKind::DropLink | FaultKind::Stall(None))
        };
        self.dead_since.is_some() || self.timed.iter().any(dead)
    }

    fn misreports(&self, now: Time) -> bool {
        let misreports = |(at, kind): &(Time, FaultKind)| *at <= now && *kind == FaultKind::Lie;
        self.misreports_since.is_some() || self.timed.iter().any(misreports)
    }

    /// The end of the silence; `Some(None)` if it never ends.
    fn silent_until(&self, now: Time) -> Option<Option<Time>> {
        let timed = self.timed.iter().filter_map(|(at, kind)| match kind {
            FaultKind::Stall(Some(time)) => Some((*at, at.saturating_add(time.0))),
            FaultKind::Stall(None)
            | FaultKind::Die
            | FaultKind::DropLink
            | FaultKind::Slow(_)
            | FaultKind::Corrupt
            | FaultKind::Lie => None,
        });
        let within = |(from, to): (Time, Time)| (from <= now && now < to).then_some(Some(to));
        timed.chain(self.silences.iter().copied()).find_map(within)
    }

    /// The factor of the latest slow-down.
    fn factor(&self, now: Time) -> f64 {
        let timed = self.timed.iter().rev().find_map(|(at, kind)| match kind {
            FaultKind::Slow(factor) => (*at <= now).then_some(*factor),
            FaultKind::Die
            | FaultKind::DropLink
            | FaultKind::Stall(_)
            | FaultKind::Corrupt
            | FaultKind::Lie => None,
        });
        timed.or(self.slower).unwrap_or(1.0)
    }

    fn next_change(&self, now: Time) -> Option<Time> {
        let timed = self.timed.iter().map(|(at, _)| *at);
        timed.chain(self.silences.iter().map(|(from, _)| *from)).filter(|at| *at > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(texts: &[&str]) -> Faults {
        let read: Vec<Fault> = texts.iter().map(|text| text.parse().unwrap()).collect();
        Faults::new(&read)
    }

    #[test]
    fn faults_delay_the_work_in_progress() {
        assert_eq!(faults(&[]).finish(5, 100), Some(105));
        let found = faults(&["stall@50ns:20ns", "slow@100ns:x3"]);
        // 50 before the stall, 30 after it, the other 20 three times as slow.
        assert_eq!(found.finish(0, 100), Some(160));
        assert_eq!(found.finish(60, 10), Some(80));
        assert!(!found.speaks(60) && found.speaks(70) && found.recovers_at(60) == Some(70));
        assert_eq!(faults(&["die@50ns"]).finish(0, 100), None);
        assert_eq!(faults(&["die@50ns"]).finish(0, 50), Some(50));
        assert_eq!(faults(&["lie@50ns"]).finish(0, 100), None);
        assert!(faults(&["lie@50ns"]).speaks(60));
    }

    #[test]
    fn faults_of_a_batch_come_with_it() {
        let mut found = faults(&["slow@2:x2", "corrupt@3", "stall@4:50ns", "die@5"]);
        assert_eq!(found.begin(0, 1, 10).ends, Some(10));
        assert_eq!(found.begin(10, 2, 10).ends, Some(30));
        let corrupt = FaultEffect { ends: Some(50), corrupt: true, drops_link: false };
        assert_eq!(found.begin(30, 3, 10), corrupt);
        assert_eq!(found.begin(50, 4, 10).ends, Some(120));
        assert_eq!(found.begin(120, 5, 10).ends, None);
        assert!(!found.speaks(121));
    }
}
