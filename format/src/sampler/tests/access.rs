//! Random access, compared with a pass through the epoch from its beginning.

use super::super::{
    AspectRatio, ClassBalanced, Expression, Filter, Indices, Mixture, Repeated, Sampler, Sampling,
    Sequential, Shuffled, Stop, Weighted, Weights,
};
use super::columns::Made;
use crate::batching::{BatchOptions, Batching, Entry, Rank};
use crate::holders::Holders;
use crate::order::Order;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

const SEED: u64 = 17;

/// One of each sampler, for a dataset of at least three samples.
fn every_sampler(samples: u64) -> Vec<Sampler> {
    let weights: Vec<f64> = (0..samples).map(|n| (n % 4) as f64).collect();
    let weighted = |replacement, length| Weighted {
        weights: Weights::Numbers(weights.clone().into()),
        replacement,
        length,
    };
    let indices: Vec<u64> = (0..samples).map(|n| n * 5 % samples / 2).collect();
    let expression = Expression::parse("label == 1").unwrap();
    vec![
        Sequential.into(),
        Shuffled.into(),
        Indices { indices: indices.clone().into(), shuffle: false }.into(),
        Indices { indices: indices.into(), shuffle: true }.into(),
        Filter { expression: expression.clone(), shuffle: false }.into(),
        Filter { expression, shuffle: true }.into(),
        weighted(true, Some(2 * samples)).into(),
        weighted(false, None).into(),
        weighted(false, Some(1)).into(),
        ClassBalanced { column: "label".to_owned(), length: None }.into(),
        Repeated { repeats: 3, length: None }.into(),
        mixture([0.3, 0.7], Stop::FirstExhausted).into(),
        mixture([1.0, 1.0], Stop::AllExhausted).into(),
        mixture([1.0, 2.5], Stop::Size(3 * samples)).into(),
        Mixture { shuffle: false, ..mixture([1.0, 2.5], Stop::Size(30)) }.into(),
        AspectRatio { factor: 3, columns: None, shuffle: true }.into(),
        AspectRatio { factor: 0, columns: None, shuffle: false }.into(),
    ]
}

fn mixture(weights: [f64; 2], stop: Stop) -> Mixture {
    Mixture { weights: weights.into(), stop, shuffle: true }
}

fn batching(sampler: &Sampler, made: &Made, size: u32, rank: Rank, holders: &Holders) -> Batching {
    let sampling = Arc::new(Sampling::of(sampler, made).unwrap());
    let options = BatchOptions { batch_size: size, drop_last: false, seed: SEED };
    Batching::new(options, sampling, rank, holders.clone()).unwrap()
}

/// The entries of an epoch in the order of batches.
fn entries(batching: &Batching, epoch: u32) -> Vec<Entry> {
    let order = batching.order(epoch);
    let batches = 0..u32::try_from(batching.batches()).unwrap();
    batches.flat_map(|batch| batching.entries_of(&order, batch).collect::<Vec<_>>()).collect()
}

#[test]
fn shuffled_and_listed_epochs_are_those_of_the_permutation() {
    let made = Made::of(40);
    let alone = |sampler: &Sampler| batching(sampler, &made, 7, Rank::ALONE, &Holders::all_alike());
    let samples = |sampler: &Sampler, epoch| -> Vec<u64> {
        entries(&alone(sampler), epoch).iter().map(|entry| entry.sample).collect()
    };
    let order = Order::shuffled(40, SEED, 3);
    let expected: Vec<u64> = (0..40).map(|position| order.sample_at(position)).collect();
    assert_eq!(samples(&Shuffled.into(), 3), expected);
    let list = [9_u64, 9, 2, 31, 0];
    let order = Order::shuffled(5, SEED, 3);
    let expected: Vec<u64> = (0..5).map(|at| list[order.sample_at(at) as usize]).collect();
    assert_eq!(samples(&Indices { indices: list.into(), shuffle: true }.into(), 3), expected);
    assert_eq!(samples(&Indices { indices: list.into(), shuffle: false }.into(), 3), list);
    let order = Order::shuffled(40, SEED, 1);
    let expected: Vec<u64> = (0..40).map(|at| order.sample_at(at / 3)).collect();
    assert_eq!(samples(&Repeated { repeats: 3, length: Some(40) }.into(), 1), expected);
}

#[test]
fn lengths_follow_from_options_and_dataset() {
    let length = |sampler: Sampler, samples| {
        Sampling::of(&sampler, &Made::of(samples)).map(|sampling| sampling.length())
    };
    let repeated = |length| Sampler::from(Repeated { repeats: 3, length });
    assert_eq!(length(repeated(None), 700), Ok(512));
    assert_eq!(length(repeated(None), 255), Ok(255));
    assert_eq!(length(repeated(Some(2100)), 700), Ok(2100));
    let column = Weights::Column("weight".to_owned());
    let weighted = |replacement, length| {
        Sampler::from(Weighted { weights: column.clone(), replacement, length })
    };
    assert_eq!(length(weighted(true, None), 10), Ok(10));
    // Sample 0 has the weight 0.
    assert_eq!(length(weighted(false, None), 10), Ok(9));
    assert_eq!(length(weighted(true, Some(1000)), 10), Ok(1000));
}

#[test]
fn a_list_has_repeats_where_a_sample_occurs_twice() {
    let has_repeats = |list: &[u64]| {
        let sampler = Indices { indices: list.into(), shuffle: false }.into();
        Sampling::of(&sampler, &Made::of(130)).unwrap().has_repeats()
    };
    assert!(!has_repeats(&[0, 1, 63, 64, 128, 129]));
    assert!(!has_repeats(&[129, 64, 0, 128, 65, 1]));
    assert!(has_repeats(&[3, 3]));
    assert!(has_repeats(&[129, 0, 64, 129]));
}

#[test]
fn the_memory_of_tables_is_counted_before_they_are_made() {
    let bytes = |sampler: Sampler| sampler.memory_bytes(1 << 20) >> 20;
    let indices = |count: u64| Indices { indices: (0..count).collect(), shuffle: true };
    assert_eq!(Sampler::from(indices(100)).memory_bytes(800), 1600 + 100);
    assert_eq!(bytes(Shuffled.into()), 0);
    let weighted = |replacement, weights| Weighted { weights, replacement, length: None };
    let column = || Weights::Column("weight".to_owned());
    let numbers = || Weights::Numbers([1.0].into());
    assert_eq!(bytes(weighted(true, numbers()).into()), 24);
    assert_eq!(bytes(weighted(true, column()).into()), 48);
    assert_eq!(bytes(weighted(false, numbers()).into()), 72);
    assert_eq!(bytes(weighted(false, column()).into()), 96);
    let balanced = ClassBalanced { column: "label".to_owned(), length: None };
    assert_eq!(bytes(balanced.clone().into()), 96);
    assert_eq!(Sampler::from(balanced).memory_bytes(u64::MAX), u64::MAX);
}

#[test]
fn what_differs_has_another_checksum() {
    let made = Made::of(30);
    let samplers = every_sampler(30);
    let checksum = |sampler: &Sampler, made: &Made| Sampling::of(sampler, made).unwrap().checksum();
    let all: HashSet<[u8; 32]> = samplers.iter().map(|it| checksum(it, &made)).collect();
    assert_eq!(all.len(), samplers.len());
    let other = Made { selected: vec![4, 5], ..Made::of(30) };
    let filter = samplers.iter().find(|it| it.name() == "filter").unwrap();
    assert_ne!(checksum(filter, &made), checksum(filter, &other));
    assert_eq!(checksum(filter, &made), checksum(filter, &Made::of(30)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Batches in any order, of any rank and device, equal those of a pass from the beginning;
    /// ranks and devices divide the positions; keys differ where samples repeat.
    #[test]
    fn ranks_and_devices_divide_the_epoch_of_every_sampler(
        parts in prop::collection::vec(1..20_u64, 3..6),
        devices in 1..4_u32,
        ranks in 1..4_u32,
        size in 1..9_u32,
        epoch in 0..5_u32,
    ) {
        let samples: u64 = parts.iter().sum();
        let made = Made::of(samples);
        let holders = Holders::of_parts(&parts, devices, &[]).unwrap();
        for sampler in every_sampler(samples) {
            let alone = batching(&sampler, &made, 1, Rank::ALONE, &holders);
            let mut expected: Vec<Entry> = entries(&alone, epoch);
            prop_assert_eq!(expected.len() as u64, alone.positions());
            let keys: HashSet<u64> = expected.iter().map(|entry| entry.key).collect();
            prop_assert_eq!(keys.len(), expected.len(), "{}", sampler);
            if !alone.sampling().has_repeats() {
                prop_assert!(expected.iter().all(|entry| entry.key == entry.sample));
            }
            let mut divided = Vec::new();
            for rank in 0..ranks {
                let own = batching(&sampler, &made, size, Rank { rank, ranks }, &holders);
                let order = own.order(epoch);
                // Backwards: no batch depends on those before it.
                for batch in (0..u32::try_from(own.batches()).unwrap()).rev() {
                    let of_batch: Vec<Entry> = own.entries_of(&order, batch).collect();
                    prop_assert_eq!(of_batch.len(), own.batch_len(batch) as usize);
                    let (device, _) = own.holder(batch);
                    if let Some(held) = holders.held(device) {
                        prop_assert!(of_batch.iter().all(|entry| held.holds(entry.sample)));
                    }
                    if !own.is_padding(batch) {
                        divided.extend(of_batch);
                    }
                }
            }
            expected.sort_by_key(|entry| entry.key);
            divided.sort_by_key(|entry| entry.key);
            prop_assert_eq!(divided, expected, "{}", sampler);
        }
    }

    /// Independent of devices: how often each sample is listed.
    #[test]
    fn devices_divide_a_list_and_change_nothing_of_it(
        parts in prop::collection::vec(1..20_u64, 1..5),
        devices in 1..4_u32,
        picks in prop::collection::vec(any::<u64>(), 1..60),
    ) {
        let samples: u64 = parts.iter().sum();
        let indices: Vec<u64> = picks.iter().map(|pick| pick % samples).collect();
        let holders = Holders::of_parts(&parts, devices, &[]).unwrap();
        let sampler = Indices { indices: indices.clone().into(), shuffle: true }.into();
        let own = batching(&sampler, &Made::of(samples), 4, Rank::ALONE, &holders);
        let count = |samples: &mut dyn Iterator<Item = u64>| {
            let mut counts: HashMap<u64, u32> = HashMap::new();
            samples.for_each(|sample| *counts.entry(sample).or_default() += 1);
            counts
        };
        let drawn = count(&mut entries(&own, 2).into_iter().map(|entry| entry.sample));
        prop_assert_eq!(drawn, count(&mut indices.into_iter()));
    }

    /// A damaged sample is replaced by one that the sampler draws.
    #[test]
    fn replacements_are_samples_of_the_epoch(damaged in 0..30_u64) {
        let made = Made::of(30);
        for sampler in every_sampler(30) {
            let own = batching(&sampler, &made, 4, Rank::ALONE, &Holders::all_alike());
            let drawn: HashSet<u64> = entries(&own, 1).iter().map(|entry| entry.sample).collect();
            let order = own.order(1);
            for candidate in own.replacements(&order, 1, damaged).take(20) {
                prop_assert!(candidate != damaged);
                prop_assert!(own.sampling().is_of_every_sample() || drawn.contains(&candidate));
            }
        }
    }
}
