//! The policy against an oracle, and shared memory against its definition.

use super::policy::Policy;
use super::region::{BLOCK_BYTES, BLOCK_CONTENT_BYTES, HEADER_BYTES, Region};
use super::{CacheError, INDEX_BYTES, Shape, blocks, bytes_for, fixed_bytes, group, hit_share};
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};

/// When each access of a sequence is followed by another to the same sample.
fn next_uses(accesses: &[u64]) -> Vec<u32> {
    let mut later = HashMap::new();
    let mut next = vec![u32::MAX; accesses.len()];
    for (at, sample) in accesses.iter().enumerate().rev() {
        next[at] = later.insert(*sample, at as u32).unwrap_or(u32::MAX);
    }
    next
}

/// Hits of the policy with room for a given number of samples of one block.
fn hits_of_policy(accesses: &[u64], room: u32) -> u32 {
    let mut policy = Policy::new(room);
    let mut held = BTreeSet::new();
    let mut hits = 0;
    for (sample, next) in accesses.iter().zip(next_uses(accesses)) {
        if held.contains(sample) {
            hits += 1;
            policy.touch(*sample, next);
        } else if let Some(victims) = policy.victims(next, 1) {
            for victim in victims {
                policy.remove(victim);
                held.remove(&victim);
            }
            policy.add(*sample, next, 1);
            held.insert(*sample);
        }
        assert!(held.len() <= room as usize);
    }
    hits
}

/// The most hits that any sequence of decisions gives, by trying all of them.
fn most_hits(accesses: &[u64], room: usize) -> u32 {
    let mut states = HashMap::from([(BTreeSet::new(), 0)]);
    for &sample in accesses {
        let mut after: HashMap<BTreeSet<u64>, u32> = HashMap::new();
        let mut reach = |state: BTreeSet<u64>, hits: u32| {
            let most = after.entry(state).or_default();
            *most = (*most).max(hits);
        };
        for (state, hits) in states {
            if state.contains(&sample) {
                reach(state, hits + 1);
                continue;
            }
            reach(state.clone(), hits);
            let mut with = state.clone();
            with.insert(sample);
            if with.len() <= room {
                reach(with, hits);
                continue;
            }
            for victim in &state {
                let mut replaced = with.clone();
                replaced.remove(victim);
                reach(replaced, hits);
            }
        }
        states = after;
    }
    states.into_values().max().unwrap_or(0)
}

proptest! {
    #[test]
    fn no_decisions_give_more_hits_than_the_policy(
        accesses in prop::collection::vec(0..6_u64, 1..24),
        room in 1..4_u32,
    ) {
        prop_assert_eq!(hits_of_policy(&accesses, room), most_hits(&accesses, room as usize));
    }

    #[test]
    fn samples_of_any_size_come_back_with_their_bits_and_blocks_are_never_exceeded(
        steps in prop::collection::vec((0..12_u64, 0..30_000_usize, any::<u8>()), 1..60),
        room in 1..14_u32,
    ) {
        let shape = Shape { samples: 12, members: 1, blocks: room };
        let region = Region::alone(shape).unwrap();
        let (mut segment, mut policy) = (region.segment(0), Policy::new(room));
        let mut held: HashMap<u64, Vec<u8>> = HashMap::new();
        let mut read = Vec::new();
        for (at, (sample, bytes, seed)) in steps.into_iter().enumerate() {
            let content: Vec<u8> = (0..bytes).map(|at| (at as u8).wrapping_mul(seed)).collect();
            let next = at as u32 * 7 % 5;
            if !held.contains_key(&sample)
                && let Some(victims) = policy.victims(next, blocks(bytes))
            {
                prop_assert!(region.begin(sample));
                prop_assert!(!region.read(sample, &mut read), "it is being written");
                for victim in victims {
                    policy.remove(victim);
                    let bytes = region.remove(&mut segment, victim);
                    prop_assert_eq!(bytes as usize, held.remove(&victim).unwrap().len());
                }
                policy.add(sample, next, blocks(bytes));
                region.write(&mut segment, sample, &content);
                held.insert(sample, content);
            }
            let used: u32 = held.values().map(|content| blocks(content.len())).sum();
            prop_assert!(used <= room);
            for sample in 0..12 {
                prop_assert_eq!(region.read(sample, &mut read), held.contains_key(&sample));
                if let Some(content) = held.get(&sample) {
                    prop_assert_eq!(&read, content);
                }
            }
        }
    }

    #[test]
    fn everything_fits_the_budget(
        bytes in 0..1_u64 << 34,
        samples in 1..3_000_000_u64,
        extra in 0..100_000_u64,
        members in 1..9_u64,
    ) {
        let positions = samples + extra;
        match Shape::new(bytes, samples, positions, members) {
            Ok(shape) => {
                let blocks = shape.members * u64::from(shape.blocks);
                let region = HEADER_BYTES as u64 + 8 * samples + blocks * BLOCK_BYTES as u64;
                let index = blocks * INDEX_BYTES + 8 * (samples + positions) * members;
                prop_assert!(region + index <= bytes);
                prop_assert!(shape.blocks > 0);
            }
            Err(CacheError::TooSmall { least, .. }) => {
                prop_assert!(least > bytes);
                prop_assert!(Shape::new(least, samples, positions, members).is_ok());
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}

#[test]
fn a_budget_for_all_samples_holds_all_of_them() {
    for (samples, bytes) in [(100_u64, 5_000_usize), (1000, 150_528), (7, 1)] {
        let budget = bytes_for((samples * bytes as u64) as f64, samples);
        let shape = Shape::new(budget, samples, samples + 60, 1).unwrap();
        assert!(u64::from(shape.blocks) >= samples * u64::from(blocks(bytes)));
        assert!(
            budget
                < fixed_bytes(samples, 2 * samples + 1100, 1) + samples * (2 * bytes as u64 + 8500)
        );
    }
    let whole = BLOCK_CONTENT_BYTES - 8;
    assert_eq!((blocks(0), blocks(whole), blocks(whole + 1)), (1, 1, 2));
}

#[test]
fn the_share_of_hits_is_that_of_the_samples_in_any_order() {
    use meetpoint_format::order::Order;
    let (samples, epochs) = (40, 5);
    for order in [Order::sequential, |len| Order::shuffled(len, 3, 1)] {
        for room in [0, 1, 13, 39, 40] {
            let of_epoch = |epoch: u64| {
                let order = if epoch.is_multiple_of(2) {
                    order(samples)
                } else {
                    Order::sequential(samples)
                };
                (0..samples).map(move |position| order.sample_at(position))
            };
            let accesses: Vec<u64> = (0..epochs).flat_map(of_epoch).collect();
            let share = hit_share(room as f64 / samples as f64, samples);
            // The first epoch hits nothing. The last has no next, so that it decides nothing.
            let expected = share * (samples * (epochs - 1)) as f64;
            assert_eq!(f64::from(hits_of_policy(&accesses, room as u32)), expected.round());
        }
    }
}

const CHILD: &str = "MEETPOINT_CACHE_TEST_FILE";
const SHAPE: Shape = Shape { samples: 4, members: 2, blocks: 3 };

/// Not a test of its own: the second rank of the next test, as another process.
#[test]
fn a_second_rank() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let (region, _member, member) = group::join_at(path.as_ref(), 1, SHAPE).unwrap();
    assert!(region.is_complete());
    let mut read = Vec::new();
    // The first rank adds it only once this one is there.
    while !region.read(0, &mut read) {
        std::thread::yield_now();
    }
    assert_eq!(read, b"from the first");
    let mut segment = region.segment(member);
    assert!(!region.begin(0));
    assert!(region.begin(3));
    region.write(&mut segment, 3, b"from the second");
}

#[test]
fn processes_share_samples_and_leave_no_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    // A group of which every process was killed: the file names one that is gone.
    std::fs::write(&path, "4000000000 3 7\n").unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let (region, _member, number) = group::join_at(&path, 0, SHAPE).unwrap();
    assert!(!region.is_complete(), "nothing is cached before all ranks have it");
    let mut segment = region.segment(number);
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cache::tests::a_second_rank"])
        .env(CHILD, &path)
        .spawn()
        .unwrap();
    while !region.is_complete() {
        assert!(child.try_wait().unwrap().is_none(), "the second rank failed");
        std::thread::yield_now();
    }
    assert!(region.begin(0));
    region.write(&mut segment, 0, b"from the first");
    assert!(child.wait().unwrap().success());
    let mut read = Vec::new();
    assert!(region.read(3, &mut read));
    assert_eq!(read, b"from the second");
    assert!(!path.exists());
}

#[test]
fn a_file_that_others_can_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let refused = group::join_at(&path, 0, SHAPE).err().unwrap();
    assert!(matches!(refused, CacheError::NotPrivate { .. }), "{refused}");
}
