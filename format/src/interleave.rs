//! Which device holds batch b: a seeded, even interleave of the batches of several holders.
//!
//! Devices that hold the same number of batches form a group and take turns in a seeded order. In a
//! group of C batches, the j-th has the value (j + phase) / C from 0 to 1, with a seeded phase, and
//! the batches of an epoch are those of all groups sorted by these values. No table of batches is
//! needed: the position of a batch is computed by counting, and the batch at a position is searched
//! for among a few candidates, in time and memory proportional to the number of groups.

use crate::random::{INTERLEAVE_DOMAIN, halves, philox4x32_10};
use std::collections::BTreeMap;

/// Maximum number of batches of all devices together: positions are compared in 128 bits.
pub const INTERLEAVED_MAX: u64 = 1 << 47;

/// Maximum number of devices.
pub const DEVICES_MAX: usize = 1 << 16;

/// Maximum number of groups whose batches are iterated without a search.
const GROUPS_FOLLOWED: usize = 8;

/// Counts that cannot be interleaved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InterleaveError {
    /// More batches than can be counted.
    #[error("the devices hold more than 2^47 batches together: make batches larger")]
    TooManyBatches,
    /// More devices than device numbers.
    #[error("{devices} devices: there are at most 65536")]
    TooManyDevices {
        /// The given number.
        devices: usize,
    },
}

/// A bijection between the batches of an epoch and (device, ordinal among its batches).
///
/// A device's batches keep their order. Of the first b batches, a device that holds c of N batches
/// has b·c/N, plus or minus 2 and its share of the number of different counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interleave {
    /// By device: its group and its turn in it; `None` for a device without batches.
    places: Vec<Option<(u32, u32)>>,
    /// In the order in which ties are broken.
    groups: Vec<Group>,
    len: u64,
}

/// Devices that hold the same number of batches.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    /// In the order of their turns.
    devices: Vec<u16>,
    /// Batches of each.
    count: u64,
    /// Phase, in units of 2^-32.
    phase: u32,
}

/// Maximum number of candidate batches of a search that allocates nothing.
const NEAR_FEW: usize = 64;

/// A batch: the number of its group and its ordinal in it.
type Member = (usize, u64);

impl Group {
    /// Batches of the whole group.
    fn len(&self) -> u64 {
        self.count * self.devices.len() as u64
    }

    /// The value of batch `j`, times 2^32 times the group's batches.
    fn numerator(&self, j: u64) -> u128 {
        u128::from(j) << 32 | u128::from(self.phase)
    }

    /// Batches with a numerator below `limit`.
    fn below(&self, limit: u128) -> u64 {
        let phase = u128::from(self.phase);
        let count = limit.checked_sub(phase + 1).map_or(0, |rest| (rest >> 32) + 1);
        u64::try_from(count).map_or(self.len(), |count| count.min(self.len()))
    }
}

impl Interleave {
    /// Interleaves devices that hold `counts` batches each.
    pub fn new(counts: &[u64], seed: u64) -> Result<Self, InterleaveError> {
        if counts.len() > DEVICES_MAX {
            return Err(InterleaveError::TooManyDevices { devices: counts.len() });
        }
        let len = counts.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count));
        let len = len.filter(|len| *len <= INTERLEAVED_MAX);
        let len = len.ok_or(InterleaveError::TooManyBatches)?;
        let words =
            |device: u16| philox4x32_10([device.into(), 0, 0, INTERLEAVE_DOMAIN], halves(seed));
        let mut by_count: BTreeMap<u64, Vec<u16>> = BTreeMap::new();
        for (device, count) in (0..=u16::MAX).zip(counts).filter(|(_, count)| **count > 0) {
            by_count.entry(*count).or_default().push(device);
        }
        let mut groups = Vec::with_capacity(by_count.len());
        for (count, mut devices) in by_count {
            let [_, phase, ..] = words(devices[0]);
            devices.sort_by_key(|device| (words(*device)[0], *device));
            groups.push(Group { devices, count, phase });
        }
        let mut places = vec![None; counts.len()];
        for (group, number) in groups.iter().zip(0_u32..) {
            for (device, turn) in group.devices.iter().zip(0_u32..) {
                places[usize::from(*device)] = Some((number, turn));
            }
        }
        Ok(Self { places, groups, len })
    }

    /// Batches of all devices.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of devices, those without batches included.
    pub fn devices(&self) -> usize {
        self.places.len()
    }

    /// Batches that a device holds; 0 if the device does not exist.
    pub fn count(&self, device: u16) -> u64 {
        let place = self.places.get(usize::from(device)).copied().flatten();
        place.map_or(0, |(group, _)| self.groups[group as usize].count)
    }

    /// The device that holds a batch, and the ordinal of the batch among that device's batches.
    /// Panics when `batch >= len()`.
    pub fn holder(&self, batch: u64) -> (u16, u64) {
        assert!(batch < self.len, "{batch} is not below the {} batches", self.len);
        let (group, j) = match &self.groups[..] {
            [_] => (0, batch),
            _ => self.find(batch),
        };
        let Group { devices, .. } = &self.groups[group];
        let turns = devices.len() as u64;
        (devices[(j % turns) as usize], j / turns)
    }

    /// The n-th batch of a device, counted from 0: the inverse of [`Self::holder`]. Panics when
    /// `n >= count(device)`.
    pub fn nth(&self, device: u16, n: u64) -> u64 {
        assert!(n < self.count(device), "device {device} has {} batches", self.count(device));
        let place = self.places[usize::from(device)];
        let (group, turn) = place.expect("a device with batches is in a group");
        let group = group as usize;
        self.rank((group, n * self.groups[group].devices.len() as u64 + u64::from(turn)))
    }

    /// How many batches precede this one.
    fn rank(&self, (own, j): Member) -> u64 {
        (0..self.groups.len()).map(|other| self.before(other, (own, j))).sum()
    }

    /// How many batches of a group precede this one.
    fn before(&self, other: usize, (own, j): Member) -> u64 {
        if other == own {
            return j;
        }
        let (at, len) = (self.groups[own].numerator(j), u128::from(self.groups[own].len()));
        let group = &self.groups[other];
        // Counts the batches of the other group with a value below at / len, in units of that
        // group's batches; of equal values, that of the earlier group comes first.
        let scaled = at * u128::from(group.len());
        group.below(if other < own { scaled / len + 1 } else { scaled.div_ceil(len) })
    }

    /// The batch that is preceded by this number of batches.
    ///
    /// More than t·N - groups and fewer than t·N + groups batches have a value below t. So the
    /// batch lies between two such values, and only the batches between them are examined.
    fn find(&self, batch: u64) -> Member {
        let spread = self.groups.len() as u64;
        let (from, to) = (batch.saturating_sub(spread), batch + spread + 1);
        let scaled = |group: &Group, t: u64| (u128::from(t) * u128::from(group.len())) << 32;
        let len = u128::from(self.len);
        // Rounded outwards, so that the search includes a batch at the edge of the range.
        let near = |group: &Group| {
            let first = group.below(scaled(group, from) / len);
            (first, group.below(scaled(group, to).div_ceil(len)))
        };
        let (before, count) = self.groups.iter().fold((0, 0), |(before, count), group| {
            let (first, last) = near(group);
            (before + first, count + (last - first))
        });
        // Allocates nothing, unless there are many groups.
        let mut few = [(0, 0); NEAR_FEW];
        let mut many = Vec::new();
        let count = usize::try_from(count).expect("few are near");
        let found = match few.get_mut(..count) {
            Some(few) => few,
            None => {
                many.resize(count, (0, 0));
                &mut many[..]
            }
        };
        let members = (0..).zip(&self.groups).flat_map(|(number, group)| {
            let (first, last) = near(group);
            (first..last).map(move |j| (number, j))
        });
        for (found, member) in found.iter_mut().zip(members) {
            *found = member;
        }
        let wanted = usize::try_from(batch - before).expect("few are near");
        let (_, found, _) = found.select_nth_unstable_by(wanted, |a, b| self.compare(*a, *b));
        *found
    }

    /// The holders of the batches from `first` on, as [`Self::holder`] returns them. Only the first
    /// is searched for.
    pub(crate) fn from(&self, first: u64) -> From<'_> {
        let mut next = [0; GROUPS_FOLLOWED];
        let is_followed = first < self.len && self.groups.len() <= GROUPS_FOLLOWED;
        if is_followed && self.groups.len() > 1 {
            let (own, j) = self.find(first);
            for (number, next) in next.iter_mut().enumerate().take(self.groups.len()) {
                *next = self.before(number, (own, j));
            }
        }
        From { interleave: self, batch: first, next }
    }

    fn compare(&self, a: Member, b: Member) -> std::cmp::Ordering {
        let ((group_a, j_a), (group_b, j_b)) = (a, b);
        let (of_a, of_b) = (&self.groups[group_a], &self.groups[group_b]);
        let left = of_a.numerator(j_a) * u128::from(of_b.len());
        let right = of_b.numerator(j_b) * u128::from(of_a.len());
        left.cmp(&right).then(group_a.cmp(&group_b))
    }
}

/// The holders of successive batches.
pub(crate) struct From<'i> {
    interleave: &'i Interleave,
    batch: u64,
    /// By group, if there are few: its first batch that was not returned yet.
    next: [u64; GROUPS_FOLLOWED],
}

impl Iterator for From<'_> {
    type Item = (u16, u64);

    fn next(&mut self) -> Option<(u16, u64)> {
        let Self { interleave, batch, next } = self;
        let groups = &interleave.groups;
        if *batch >= interleave.len {
            return None;
        }
        *batch += 1;
        if groups.len() == 1 || groups.len() > GROUPS_FOLLOWED {
            return Some(interleave.holder(*batch - 1));
        }
        let open = (0..groups.len()).filter(|group| next[*group] < groups[*group].len());
        let first =
            open.reduce(
                |a, b| {
                    if interleave.compare((a, next[a]), (b, next[b])).is_lt() { a } else { b }
                },
            );
        let group = first.expect("a batch is left");
        let (turns, j) = (groups[group].devices.len() as u64, next[group]);
        next[group] += 1;
        let (round, turn) = if turns == 1 { (j, 0) } else { (j / turns, j % turns) };
        Some((groups[group].devices[turn as usize], round))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn interleave(counts: &[u64], seed: u64) -> Interleave {
        Interleave::new(counts, seed).unwrap()
    }

    /// Holds every batch both ways, each device's order, and evenness.
    fn check(counts: &[u64], seed: u64) {
        let all = interleave(counts, seed);
        let len: u64 = counts.iter().sum();
        assert_eq!((all.len(), all.devices(), all.is_empty()), (len, counts.len(), len == 0));
        let mut seen = vec![0; counts.len()];
        for first in [0, len / 3, len.saturating_sub(1), len] {
            let from: Vec<(u16, u64)> = all.from(first).collect();
            assert_eq!(from, (first..len).map(|batch| all.holder(batch)).collect::<Vec<_>>());
        }
        for batch in 0..len {
            let (device, n) = all.holder(batch);
            let count = &mut seen[usize::from(device)];
            assert_eq!(n, *count, "batch {batch} of {counts:?}");
            assert_eq!(all.nth(device, n), batch, "{counts:?}");
            *count += 1;
            for (seen, count) in seen.iter().zip(counts) {
                let share = *count as f64 / len as f64;
                let off = *seen as f64 - (batch + 1) as f64 * share;
                let bound = 2.0 + share * all.groups.len() as f64;
                assert!(off.abs() <= bound, "{off} at {batch} of {counts:?}");
            }
        }
        assert_eq!(seen, counts);
        assert_eq!(all.count(u16::MAX), 0);
    }

    #[test]
    fn the_interleave_equals_the_one_computed_from_the_documentation() {
        for (key, holders) in golden::lines("interleave") {
            let seed = key[0].parse().unwrap();
            let counts: Vec<u64> = key[1..].iter().map(|word| word.parse().unwrap()).collect();
            let all = interleave(&counts, seed);
            for (batch, holder) in holders.into_iter().map(golden::pair) {
                let device = u16::try_from(holder).unwrap();
                assert_eq!(all.holder(batch).0, device, "{key:?}, batch {batch}");
            }
        }
    }

    #[test]
    fn devices_without_batches_and_no_devices_are_allowed() {
        for counts in [&[][..], &[0], &[0, 0], &[5], &[0, 5, 0], &[0, 3, 0, 3], &[1, 0, 1000]] {
            check(counts, 1);
        }
    }

    #[test]
    fn devices_with_equally_many_take_turns() {
        let all = interleave(&[7; 5], 3);
        let turns: Vec<u16> = (0..35).map(|batch| all.holder(batch).0).collect();
        let mut first = turns[..5].to_vec();
        assert!(turns.chunks(5).all(|turn| turn == first));
        first.sort_unstable();
        assert_eq!(first, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn seeds_give_different_patterns() {
        let pattern = |seed| {
            let all = interleave(&[50, 51, 80, 80], seed);
            (0..all.len()).map(|batch| all.holder(batch).0).collect::<Vec<_>>()
        };
        assert_eq!(pattern(1), pattern(1));
        assert_ne!(pattern(1), pattern(2));
        assert_ne!(pattern(1), pattern(1 | 1 << 40));
    }

    #[test]
    fn more_than_can_be_counted_is_refused() {
        let error = InterleaveError::TooManyBatches;
        assert_eq!(Interleave::new(&[INTERLEAVED_MAX, 1], 0), Err(error));
        assert_eq!(Interleave::new(&[u64::MAX, u64::MAX], 0), Err(error));
        let devices = DEVICES_MAX + 1;
        let refused = Interleave::new(&vec![1; devices], 0);
        assert_eq!(refused, Err(InterleaveError::TooManyDevices { devices }));
        let most = interleave(&vec![2; DEVICES_MAX], 0);
        assert_eq!(most.nth(u16::MAX, 1) - most.nth(u16::MAX, 0), DEVICES_MAX as u64);
    }

    #[test]
    fn a_batch_at_the_edge_of_the_searched_range_is_found() {
        // One batch's place has 32 bits, the other device's are closer than that.
        let all = interleave(&[21_278_444_366, 1], 0);
        assert_eq!(all.holder(all.nth(1, 0)), (1, 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn every_batch_is_one_devices_both_ways_and_prefixes_are_even(
            counts in vec(prop_oneof![Just(0), 0..4_u64, 0..80_u64, 0..500_u64], 0..9),
            seed: u64,
        ) {
            check(&counts, seed);
        }

        #[test]
        fn many_devices_of_many_counts_are_a_bijection(
            counts in vec(0..20_u64, 50..120),
            seed: u64,
        ) {
            let all = interleave(&counts, seed);
            let mut seen = vec![0; counts.len()];
            for batch in 0..all.len() {
                let (device, n) = all.holder(batch);
                prop_assert_eq!(n, seen[usize::from(device)]);
                seen[usize::from(device)] += 1;
                prop_assert_eq!(all.nth(device, n), batch);
            }
        }

        #[test]
        fn huge_counts_invert_and_stay_even(
            counts in vec(prop_oneof![1..10_u64, 1..1_000_000_u64, 1..1_u64 << 44], 1..8),
            seed: u64,
            picks in vec(any::<u64>(), 20),
        ) {
            let all = interleave(&counts, seed);
            let groups = all.groups.len() as i128;
            let picks = picks.into_iter().map(|pick| pick % all.len());
            for batch in picks.chain([0, all.len() - 1]) {
                let (device, n) = all.holder(batch);
                prop_assert_eq!(all.nth(device, n), batch);
                // n is b·c/N, give or take the bound, in whole numbers.
                let (count, len) = (i128::from(all.count(device)), i128::from(all.len()));
                let off = i128::from(n) * len - i128::from(batch) * count;
                prop_assert!(off.abs() <= 3 * len + groups * count, "{} {}", device, batch);
            }
            for (device, count) in (0_u16..).zip(&counts) {
                for n in [0, count / 2, count - 1] {
                    prop_assert_eq!(all.holder(all.nth(device, n)), (device, n));
                }
            }
        }
    }
}
