//! Tests of batching: one rank and one device, several ranks, several devices, and both.

use super::*;
use crate::golden;
use crate::order::Order;
use proptest::collection::vec;
use proptest::prelude::*;

fn options(batch_size: u32, drop_last: bool) -> BatchOptions {
    BatchOptions { batch_size, drop_last, seed: 3 }
}

fn shuffled(samples: u64) -> Arc<Sampling> {
    Arc::new(Sampling::shuffled(samples))
}

fn batching(samples: u64, batch_size: u32, drop_last: bool) -> Batching {
    Batching::alone(options(batch_size, drop_last), Sampling::shuffled(samples))
}

fn samples_of(batching: &Batching, epoch: u32, batch: u32) -> Vec<u64> {
    batching.samples_of(&batching.order(epoch), batch).collect()
}

/// One for each rank.
fn of_ranks(
    options: BatchOptions,
    sampling: &Arc<Sampling>,
    ranks: u32,
    holders: &Holders,
) -> Vec<Batching> {
    let of = |rank| Batching::new(options, Arc::clone(sampling), rank, holders.clone()).unwrap();
    (0..ranks).map(|rank| of(Rank { rank, ranks })).collect()
}

#[test]
fn the_last_batch_is_short_or_left_out() {
    let kept = batching(10, 4, false);
    assert_eq!(kept.batches(), 3);
    assert_eq!([0, 1, 2, 3].map(|batch| kept.batch_len(batch)), [4, 4, 2, 0]);
    assert_eq!((kept.left_out(), kept.padded()), (0, 0));
    let dropped = batching(10, 4, true);
    assert_eq!(dropped.batches(), 2);
    assert_eq!([0, 1, 2].map(|batch| dropped.batch_len(batch)), [4, 4, 0]);
    assert!(samples_of(&dropped, 0, 2).is_empty());
    assert_eq!((dropped.left_out(), dropped.padded()), (2, 0));
}

#[test]
fn a_dataset_that_fills_its_batches_has_no_short_one() {
    for drop_last in [false, true] {
        let full = batching(8, 4, drop_last);
        assert_eq!(full.batches(), 2);
        assert_eq!(full.batch_len(1), 4);
    }
}

#[test]
fn an_empty_dataset_has_no_batches() {
    for (drop_last, ranks) in [(false, 1), (true, 1), (false, 3), (true, 3)] {
        for empty in of_ranks(options(4, drop_last), &shuffled(0), ranks, &Holders::all_alike()) {
            assert_eq!((empty.batches(), empty.padded(), empty.count(0)), (0, 0, 0));
            assert_eq!(empty.batch_len(0), 0);
            assert!(samples_of(&empty, 0, 0).is_empty());
            assert!(!empty.is_padding(0));
        }
    }
}

#[test]
fn the_batches_of_an_epoch_cover_every_sample_once() {
    for (samples, batch_size) in [(1, 1), (1, 8), (97, 10), (100, 10), (101, 1), (64, 64)] {
        let batching = batching(samples, batch_size, false);
        let batches = u32::try_from(batching.batches()).unwrap();
        let mut seen: Vec<u64> =
            (0..batches).flat_map(|batch| samples_of(&batching, 5, batch)).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..samples).collect::<Vec<_>>());
    }
}

#[test]
fn a_batch_is_its_stretch_of_the_order() {
    let order = Order::shuffled(97, 3, 2);
    let wanted: Vec<u64> = (90..97).map(|at| order.sample_at(at)).collect();
    assert_eq!(samples_of(&batching(97, 10, false), 2, 9), wanted);
}

#[test]
fn without_shuffling_every_epoch_is_in_the_datasets_order() {
    let batching = Batching::alone(options(4, false), Sampling::sequential(10));
    assert_eq!(samples_of(&batching, 7, 1), [4, 5, 6, 7]);
}

#[test]
fn the_largest_numbers_do_not_overflow() {
    let last = u32::MAX - 1;
    let one = batching(u64::from(u32::MAX), 1, false);
    assert_eq!(one.batches(), u64::from(u32::MAX));
    assert_eq!(one.batch_len(last), 1);
    let order = Order::shuffled(u64::from(u32::MAX), 3, 0);
    assert_eq!(samples_of(&one, 0, last), [order.sample_at(u64::from(last))]);
    assert_eq!(batching(u64::MAX, 1, false).batches(), u64::MAX);
    let wide = batching(u64::MAX, u32::MAX, false);
    // (2^32 - 1)(2^32 + 1) = 2^64 - 1.
    assert_eq!(wide.batches(), (1 << 32) + 1);
    assert_eq!(wide.batch_len(u32::MAX), u32::MAX);
    assert!(wide.samples_of(&wide.order(1), u32::MAX).next().is_some());
    for drop_last in [false, true] {
        let options = options(1, drop_last);
        let rank = Rank { rank: RANKS_MAX - 1, ranks: RANKS_MAX };
        let spread =
            Batching::new(options, shuffled(u64::MAX), rank, Holders::all_alike()).unwrap();
        assert_eq!(spread.batches(), if drop_last { (1 << 48) - 1 } else { 1 << 48 });
        assert_eq!(spread.padded(), u64::from(!drop_last));
        assert_eq!(spread.batch_len(u32::MAX), 1);
    }
}

#[test]
fn ranks_take_the_batches_of_one_in_turns() {
    let alone = batching(103, 10, false);
    let ranks = of_ranks(options(10, false), &shuffled(103), 4, &Holders::all_alike());
    assert!(ranks.iter().all(|rank| rank.batches() == 3 && rank.padded() == 1));
    for (number, rank) in (0..).zip(&ranks) {
        for step in 0..3 {
            let global = (step * 4 + number) % 11;
            assert_eq!(samples_of(rank, 1, step), samples_of(&alone, 1, global));
            assert_eq!(rank.batch_len(step), alone.batch_len(global));
            assert_eq!(rank.is_padding(step), step * 4 + number == 11);
            assert_eq!((rank.holder(step), rank.nth(0, step)), ((0, step), step));
        }
    }
    // Ten full batches: two steps, and the last two batches are left out with the short one.
    let dropped = of_ranks(options(10, true), &shuffled(103), 4, &Holders::all_alike());
    for rank in &dropped {
        assert_eq!((rank.batches(), rank.padded(), rank.left_out()), (2, 0, 23));
    }
}

#[test]
fn more_ranks_than_batches_repeat_them_over_and_over() {
    let ranks = of_ranks(options(2, false), &shuffled(3), 5, &Holders::all_alike());
    let lens: Vec<u32> = ranks.iter().map(|rank| rank.batch_len(0)).collect();
    assert_eq!(lens, [2, 1, 2, 1, 2]);
    assert!(ranks.iter().all(|rank| rank.batches() == 1 && rank.padded() == 3));
    let padding: Vec<bool> = ranks.iter().map(|rank| rank.is_padding(0)).collect();
    assert_eq!(padding, [false, false, true, true, true]);
    let dropped = of_ranks(options(2, true), &shuffled(3), 5, &Holders::all_alike());
    assert!(dropped.iter().all(|rank| rank.batches() == 0 && rank.left_out() == 3));
}

#[test]
fn meaningless_numbers_are_refused() {
    let new = |options: BatchOptions, rank, ranks, holders: &Holders| {
        let rank = Rank { rank, ranks };
        Batching::new(options, shuffled(9), rank, holders.clone()).unwrap_err().to_string()
    };
    let alike = Holders::all_alike();
    assert!(new(options(0, false), 0, 1, &alike).contains("at least one sample"));
    assert!(new(options(1, false), 2, 2, &alike).contains("rank 2 of 2"));
    assert!(new(options(1, false), 0, 0, &alike).contains("rank 0 of 0"));
    assert!(new(options(1, false), 0, RANKS_MAX + 1, &alike).contains("65537"));
    let parts = Holders::of_parts(&[4, 4], 2, &[]).unwrap();
    assert!(new(options(1, false), 0, 1, &parts).contains("hold 8 samples, the dataset has 9"));
}

#[test]
fn batches_equal_those_computed_from_the_documentation() {
    for (key, batches) in golden::lines("batching") {
        let words: Vec<u64> = key.iter().map(|word| word.parse().unwrap()).collect();
        let [seed, epoch, size, drop_last, rank, ranks, devices] = words[..7] else { panic!() };
        let parts = &words[7..];
        let holders = Holders::of_parts(parts, devices as u32, &[]).unwrap();
        let options = BatchOptions { batch_size: size as u32, drop_last: drop_last == 1, seed };
        let rank = Rank { rank: rank as u32, ranks: ranks as u32 };
        let batching = Batching::new(options, shuffled(parts.iter().sum()), rank, holders).unwrap();
        assert_eq!(batching.batches(), batches.len() as u64, "{key:?}");
        for (batch, wanted) in (0..).zip(batches) {
            // Device, then its samples.
            let (device, samples) = wanted.split_once('=').unwrap();
            assert_eq!(batching.holder(batch).0.to_string(), device, "{key:?} {batch}");
            let got: Vec<String> =
                samples_of(&batching, epoch as u32, batch).iter().map(u64::to_string).collect();
            assert_eq!(got.join(","), samples, "{key:?} {batch}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Every sample once in an epoch, but for the stated padding or what is stated to be left out;
    /// equal steps; both ways of the interleave; each batch whole on one device.
    #[test]
    fn ranks_and_devices_cover_every_sample_once(
        parts in vec(0..40_u64, 1..7),
        devices in 1..5_u32,
        batch_size in 1..9_u32,
        ranks in 1..6_u32,
        drop_last: bool,
        shuffle: bool,
        seed: u64,
    ) {
        let samples: u64 = parts.iter().sum();
        let holders = Holders::of_parts(&parts, devices, &[]).unwrap();
        let options = BatchOptions { batch_size, drop_last, seed };
        let sampling = match shuffle {
            true => Sampling::shuffled(samples),
            false => Sampling::sequential(samples),
        };
        let all = of_ranks(options, &Arc::new(sampling), ranks, &holders);
        let mut seen = vec![0_u64; samples as usize];
        let mut device_of = vec![0; samples as usize];
        for device in 0..devices as u16 {
            for n in 0..holders.samples_of(device).unwrap_or(0) {
                device_of[holders.held(device).unwrap().sample(n) as usize] = device;
            }
        }
        let (mut padding, mut short, mut distinct) = (0, vec![0; devices as usize], 0);
        for rank in &all {
            prop_assert_eq!(rank.batches(), all[0].batches());
            prop_assert_eq!(rank.padded(), all[0].padded());
            let counts = (0..devices as u16).map(|device| rank.count(device));
            prop_assert_eq!(counts.sum::<u64>(), rank.batches());
            let mut next = vec![0; devices as usize];
            let order = rank.order(4);
            for batch in 0..rank.batches() as u32 {
                let (device, n) = rank.holder(batch);
                prop_assert_eq!(n, next[usize::from(device)]);
                next[usize::from(device)] += 1;
                prop_assert_eq!(rank.nth(device, n), batch);
                let of_batch: Vec<u64> = rank.samples_of(&order, batch).collect();
                prop_assert_eq!(of_batch.len(), rank.batch_len(batch) as usize);
                prop_assert!(!of_batch.is_empty());
                let is_own = |sample: &u64| device_of[*sample as usize] == device;
                prop_assert!(of_batch.iter().all(is_own));
                if rank.is_padding(batch) {
                    padding += 1;
                    continue;
                }
                distinct += 1;
                short[usize::from(device)] += u32::from(of_batch.len() < batch_size as usize);
                of_batch.into_iter().for_each(|sample| seen[sample as usize] += 1);
            }
        }
        prop_assert_eq!(padding, all[0].padded());
        prop_assert!(short.iter().all(|short| *short <= u32::from(!drop_last)));
        prop_assert!(seen.iter().all(|times| *times <= 1));
        let missing = seen.iter().filter(|times| **times == 0).count() as u64;
        prop_assert_eq!(missing, all[0].left_out());
        prop_assert!(padding < u64::from(ranks) && (drop_last || missing == 0));
        if drop_last {
            // Less than a batch on each device, and less than a step.
            let most = u64::from(devices) * u64::from(batch_size - 1)
                + u64::from(ranks - 1) * u64::from(batch_size);
            prop_assert!(missing <= most);
        }
        prop_assert_eq!(distinct + padding, all[0].batches() * u64::from(ranks));
    }

    /// Ranks, devices and windows of steps cut an epoch into sets of samples that are disjoint and
    /// together complete, whichever end of a window works on a batch.
    #[test]
    fn ranks_devices_and_windows_are_disjoint_and_complete(
        parts in vec(1..40_u64, 1..7),
        devices in 1..5_u32,
        batch_size in 1..5_u32,
        ranks in 1..6_u32,
        window in 1..9_u32,
        seed: u64,
    ) {
        let samples: u64 = parts.iter().sum();
        let holders = Holders::of_parts(&parts, devices, &[]).unwrap();
        let options = BatchOptions { batch_size, drop_last: false, seed };
        let mut owner = vec![None; samples as usize];
        for rank in of_ranks(options, &shuffled(samples), ranks, &holders) {
            let (order, batches) = (rank.order(2), rank.batches() as u32);
            for device in 0..devices as u16 {
                for batch in (0..rank.count(device)).map(|n| rank.nth(device, n as u32)) {
                    prop_assert!(batch < batches && rank.holder(batch).0 == device);
                    if rank.is_padding(batch) {
                        continue;
                    }
                    for sample in rank.samples_of(&order, batch) {
                        let place = (rank.rank().rank, device, batch / window, batch);
                        let before = owner[sample as usize].replace(place);
                        prop_assert_eq!(before, None, "sample {} is also in {:?}", sample, place);
                    }
                }
            }
        }
        prop_assert!(owner.iter().all(Option::is_some));
    }

    /// A rank has of each device what any other rank has, give or take one.
    #[test]
    fn ranks_have_equal_parts_of_every_device(
        parts in vec(0..500_u64, 2..9),
        devices in 2..5_u32,
        ranks in 2..9_u32,
        drop_last: bool,
        seed: u64,
    ) {
        let holders = Holders::of_parts(&parts, devices, &[]).unwrap();
        let samples = parts.iter().sum();
        let options = BatchOptions { batch_size: 3, drop_last, seed };
        let all = of_ranks(options, &shuffled(samples), ranks, &holders);
        for device in 0..devices as u16 {
            let counts = || all.iter().map(|rank| rank.count(device));
            prop_assert!(counts().max().unwrap() - counts().min().unwrap() <= 2);
        }
    }
}
