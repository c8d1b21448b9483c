//! Batches of similar aspect ratios, against torchvision's groups and an independent computation.

use super::super::{AspectRatio, Sampler, SamplerError, Sampling, Value};
use super::columns::Made;
use crate::batching::{BatchOptions, Batching, Rank};
use crate::golden;
use crate::holders::Holders;
use proptest::prelude::*;
use std::collections::HashSet;
use std::sync::Arc;

fn sampler(factor: u64, shuffle: bool) -> Sampler {
    AspectRatio { factor, columns: None, shuffle }.into()
}

fn batching(sampler: &Sampler, samples: u64, batch_options: BatchOptions, rank: Rank) -> Batching {
    let sampling = Arc::new(Sampling::of(sampler, &Made::of(samples)).unwrap());
    Batching::new(batch_options, sampling, rank, Holders::all_alike()).unwrap()
}

/// The samples of each batch of an epoch.
fn batches(own: &Batching, epoch: u32) -> Vec<Vec<u64>> {
    let order = own.order(epoch);
    let count = u32::try_from(own.batches()).unwrap();
    (0..count).map(|batch| own.samples_of(&order, batch).collect()).collect()
}

/// The bucket of a synthetic sample.
fn bucket(factor: u64, sample: u64) -> usize {
    let sizes = super::super::SampleColumns::picture_sizes(&Made::of(sample + 1)).unwrap();
    let size = sizes[sample as usize].unwrap_or((1, 1));
    AspectRatio::bucket(&AspectRatio::edges(factor), size)
}

#[test]
fn buckets_are_the_groups_of_torchvision() {
    const SIDES: [u32; 19] = [
        1, 2, 3, 97, 100, 224, 333, 375, 426, 427, 480, 500, 512, 640, 800, 1000, 1333, 4000, 65535,
    ];
    let text = include_str!("../../../tests/golden/aspect_ratio_groups.txt");
    let mut lines = 0;
    for (k, line) in (0..).zip(text.lines()) {
        let (factor, groups) = line.split_once(" : ").unwrap();
        assert_eq!(factor.parse(), Ok(k));
        let edges = AspectRatio::edges(k);
        assert_eq!(edges.len(), if k == 0 { 1 } else { 2 * k as usize + 1 });
        let sizes = SIDES.iter().flat_map(|&height| SIDES.map(|width| (height, width)));
        let own: Vec<usize> = sizes.map(|size| AspectRatio::bucket(&edges, size)).collect();
        let expected: Vec<usize> = groups.split(' ').map(|it| it.parse().unwrap()).collect();
        assert_eq!(own, expected, "factor {k}");
        lines += 1;
    }
    assert_eq!(lines, 17);
}

#[test]
fn epochs_equal_those_computed_from_the_documentation() {
    for (key, samples) in golden::lines("aspect_ratio") {
        let key: Vec<u64> = key.iter().map(|word| word.parse().unwrap()).collect();
        let [seed, epoch, factor, size, shuffle] = key[..] else { panic!("{key:?}") };
        let batch_options = BatchOptions { batch_size: size as u32, drop_last: false, seed };
        let own = batching(&sampler(factor, shuffle == 1), 40, batch_options, Rank::ALONE);
        let expected: Vec<u64> = samples.iter().map(|word| word.parse().unwrap()).collect();
        assert_eq!(batches(&own, epoch as u32).concat(), expected, "{key:?}");
    }
}

#[test]
fn options_that_do_not_belong_together_are_refused() {
    let column = |name: &str| Value::Text(name.to_owned());
    let read = |options: &[(&str, Value)]| {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        Sampler::read("aspect_ratio", options.collect())
    };
    let missing = |error: Result<Sampler, SamplerError>| match error {
        Err(SamplerError::Missing { option, .. }) => option,
        other => panic!("{other:?}"),
    };
    assert_eq!(missing(read(&[("width", column("label"))])), "height");
    assert_eq!(missing(read(&[("height", column("label"))])), "width");
    assert!(matches!(
        read(&[("factor", Value::Whole(17))]),
        Err(SamplerError::Value { option: "factor", .. })
    ));
    let of = |width: &str| {
        let columns = Some((width.to_owned(), "label".to_owned()));
        let sampler = Sampler::from(AspectRatio { factor: 3, columns, shuffle: true });
        Sampling::of(&sampler, &Made::of(9)).unwrap_err()
    };
    assert!(matches!(of("nothing"), SamplerError::UnknownColumn { option: "width", .. }));
    assert!(matches!(of("name"), SamplerError::ColumnType { option: "width", .. }));
    // Labels are 0, 1 and 2.
    assert!(matches!(of("label"), SamplerError::Side { sample: 0, value: 0, .. }));
}

#[test]
fn sizes_come_from_columns_where_these_are_named() {
    let labels = vec![Some(1), Some(2), Some(1), Some(3)];
    let made = Made { labels, ..Made::of(4) };
    let both = Some(("label".to_owned(), "label".to_owned()));
    let square = AspectRatio { factor: 0, columns: both, shuffle: false };
    let of_columns = Sampling::of(&square.into(), &made).unwrap();
    let of_files = Sampling::of(&sampler(0, false), &made).unwrap();
    assert_eq!(of_columns.length(), 4);
    assert_ne!(of_columns.checksum(), of_files.checksum());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Every sample occurs once. Batches have samples of one bucket, except for at most as many
    /// batches as there are buckets, which contain the remaining samples. Only the last batch may
    /// be short.
    #[test]
    fn every_sample_occurs_once_in_batches_of_one_bucket(
        samples in 1..300_u64,
        size in 1..20_u32,
        factor in 0..4_u64,
        epoch in 0..4_u32,
        seed: u64,
    ) {
        let batch_options = BatchOptions { batch_size: size, drop_last: false, seed };
        let own = batching(&sampler(factor, true), samples, batch_options, Rank::ALONE);
        let batches = batches(&own, epoch);
        let all: HashSet<u64> = batches.iter().flatten().copied().collect();
        prop_assert_eq!(all.len() as u64, samples);
        prop_assert_eq!(batches.iter().map(Vec::len).sum::<usize>() as u64, samples);
        let (last, before) = batches.split_last().unwrap();
        prop_assert!(before.iter().all(|batch| batch.len() == size as usize));
        prop_assert!(!last.is_empty());
        let buckets = |batch: &Vec<u64>| {
            batch.iter().map(|it| bucket(factor, *it)).collect::<HashSet<_>>().len()
        };
        let mixed = batches.iter().filter(|batch| buckets(batch) > 1).count();
        prop_assert!(mixed <= AspectRatio::edges(factor).len() + 1, "{} mixed", mixed);
    }

    /// The sample at a position is the same, for all ranks and in any order of access.
    #[test]
    fn random_access_gives_what_a_pass_from_the_beginning_gives(
        samples in 1..300_u64,
        size in 1..20_u32,
        drop_last: bool,
        ranks in 1..4_u32,
        epoch in 0..4_u32,
        seed: u64,
    ) {
        let batch_options = BatchOptions { batch_size: size, drop_last, seed };
        prop_assume!(u64::from(size) * u64::from(ranks) <= samples);
        let alone = batching(&sampler(3, true), samples, batch_options, Rank::ALONE);
        let expected = batches(&alone, epoch);
        for rank in 0..ranks {
            let own = batching(&sampler(3, true), samples, batch_options, Rank { rank, ranks });
            let order = own.order(epoch);
            for batch in (0..u32::try_from(own.batches()).unwrap()).rev() {
                let number = usize::try_from(own.number(batch)).unwrap();
                let got: Vec<u64> = own.samples_of(&order, batch).collect();
                prop_assert_eq!(&got, &expected[number]);
            }
        }
    }
}
