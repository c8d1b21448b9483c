//! Mixtures: values from an independent implementation, quotas of every range, passes, errors.

use super::super::{LengthLimit, Mixture, Sampler, SamplerError, Sampling, Stop, Value};
use super::columns::Made;
use crate::batching::{BatchOptions, Batching, Rank};
use crate::golden;
use crate::holders::Holders;
use proptest::prelude::*;
use std::sync::Arc;

fn made(datasets: &[u64]) -> Made {
    Made { datasets: datasets.to_vec(), ..Made::of(datasets.iter().sum()) }
}

fn mixture(weights: &[f64], stop: Stop) -> Mixture {
    Mixture { weights: weights.into(), stop, shuffle: true }
}

/// The samples of each device.
fn samples(sampler: Mixture, datasets: &[u64], holders: &Holders, seed: u64) -> Vec<Vec<u64>> {
    let sampling = Arc::new(Sampling::of(&sampler.into(), &made(datasets)).unwrap());
    let batch_options = BatchOptions { batch_size: 1, drop_last: false, seed };
    let batching = Batching::new(batch_options, sampling, Rank::ALONE, holders.clone()).unwrap();
    let order = batching.order(2);
    let of_device = |device: u32| {
        let device = u16::try_from(device).unwrap();
        let batches = 0..u32::try_from(batching.count(device)).unwrap();
        let batch = |n| batching.samples_of(&order, batching.nth(device, n)).next().unwrap();
        batches.map(batch).collect()
    };
    (0..batching.devices()).map(of_device).collect()
}

fn alone(sampler: Mixture, datasets: &[u64], seed: u64) -> Vec<u64> {
    samples(sampler, datasets, &Holders::all_alike(), seed).remove(0)
}

/// The dataset of a sample.
fn dataset_of(sample: u64, datasets: &[u64]) -> usize {
    let mut end = 0;
    let ends = datasets.iter().map(|samples| {
        end += samples;
        end
    });
    ends.take_while(|end| *end <= sample).count()
}

#[test]
fn mixtures_equal_those_computed_from_the_documentation() {
    let mut tried = 0;
    for (key, expected) in golden::lines("mixture") {
        let stop = match key[2] {
            "size" => Stop::Size(key[3].parse().unwrap()),
            "all_exhausted" => Stop::AllExhausted,
            _ => Stop::FirstExhausted,
        };
        let (datasets, weights) = key[4..].split_at((key.len() - 4) / 2);
        let datasets: Vec<u64> = datasets.iter().map(|word| word.parse().unwrap()).collect();
        let weights: Vec<f64> = weights.iter().map(|word| word.parse().unwrap()).collect();
        let sampling = Sampling::of(&mixture(&weights, stop).into(), &made(&datasets)).unwrap();
        let seed = key[0].parse().unwrap();
        let batching =
            Batching::alone(BatchOptions { batch_size: 1 << 20, drop_last: false, seed }, sampling);
        let order = batching.order(key[1].parse().unwrap());
        let got: Vec<String> =
            batching.samples_of(&order, 0).map(|sample| sample.to_string()).collect();
        assert_eq!(got, expected, "{key:?}");
        tried += 1;
    }
    assert_eq!(tried, 3);
}

#[test]
fn datasets_follow_their_own_order_where_they_are_not_shuffled() {
    let plain = Mixture { shuffle: false, ..mixture(&[1.0, 2.0], Stop::AllExhausted) };
    assert!(Sampler::from(plain.clone()).is_same_in_every_epoch());
    let got = alone(plain, &[3, 8], 5);
    let of = |first: u64, end: u64| -> Vec<u64> {
        got.iter().copied().filter(|sample| (first..end).contains(sample)).collect()
    };
    assert_eq!((of(0, 3), of(3, 11)), (vec![0, 1, 2, 0], (3..11).collect()));
}

#[test]
fn every_pass_over_a_dataset_has_an_order_of_its_own() {
    let got = alone(mixture(&[1.0], Stop::Size(300)), &[100], 9);
    let passes: Vec<&[u64]> = got.chunks(100).collect();
    for pass in &passes {
        let mut sorted = pass.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<_>>());
    }
    assert!(passes[0] != passes[1] && passes[1] != passes[2] && passes[0] != passes[2]);
    // Datasets of equal length also have different orders.
    let got = alone(mixture(&[1.0, 1.0], Stop::FirstExhausted), &[100, 100], 9);
    let first: Vec<u64> = got.iter().copied().filter(|sample| *sample < 100).collect();
    let second: Vec<u64> = got.iter().filter_map(|sample| sample.checked_sub(100)).collect();
    assert_ne!(first, second);
}

#[test]
fn mixtures_that_do_not_fit_the_datasets_are_refused() {
    let refusal = |weights: &[f64], datasets: &[u64]| {
        Sampling::of(&mixture(weights, Stop::AllExhausted).into(), &made(datasets)).unwrap_err()
    };
    let expected = SamplerError::DatasetWeights { weights: 2, datasets: 3 };
    assert_eq!(refusal(&[1.0, 1.0], &[3, 4, 5]), expected);
    let expected = SamplerError::DatasetWeight { dataset: 1, value: -0.5 };
    assert_eq!(refusal(&[1.0, -0.5], &[3, 4]), expected);
    assert!(matches!(
        refusal(&[f64::NAN, 0.5], &[3, 4]),
        SamplerError::DatasetWeight { dataset: 0, .. }
    ));
    assert_eq!(refusal(&[0.0, 0.0], &[3, 4]), SamplerError::NoWeight);
    assert_eq!(refusal(&[1.0, 1.0], &[3, 0]), SamplerError::NothingToMix { dataset: 1 });
    assert!(matches!(
        refusal(&[1.0, 1e-15], &[3, 1]),
        SamplerError::Length { limit: LengthLimit::Mixture, .. }
    ));
    let read = |options: &[(&str, Value)]| {
        let weights = ("weights".to_owned(), Value::Numbers([1.0, 2.0].into()));
        let others = options.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        Sampler::read("mixture", std::iter::once(weights).chain(others).collect())
    };
    let stop = |word: &str| ("stop", Value::Text(word.to_owned()));
    let missing = SamplerError::Missing { sampler: "mixture", option: "length" };
    assert_eq!(read(&[stop("size")]), Err(missing));
    let length = ("length", Value::Whole(5));
    let refused = SamplerError::LengthAndStop { stop: "first_exhausted" };
    assert_eq!(read(std::slice::from_ref(&length)), Err(refused));
    let refused = SamplerError::LengthAndStop { stop: "all_exhausted" };
    assert_eq!(read(&[stop("all_exhausted"), length.clone()]), Err(refused));
    assert!(matches!(read(&[stop("exhausted")]), Err(SamplerError::Value { option: "stop", .. })));
    let sampler = read(&[stop("size"), length]).unwrap();
    assert_eq!(
        sampler.to_string(),
        "mixture(weights=[2 numbers], stop=\"size\", length=5, shuffle=true)"
    );
}

proptest! {
    /// Every range has each dataset in proportion, within three positions. The samples of a dataset
    /// occur equally often, within one. Devices divide these positions.
    #[test]
    fn every_stretch_has_the_datasets_in_proportion(
        datasets in prop::collection::vec(1..60_u64, 1..5),
        weights in prop::collection::vec(1..8_u32, 5),
        stop in 0..3_usize,
        devices in 1..4_u32,
        seed in any::<u64>(),
    ) {
        let weights: Vec<f64> =
            weights.into_iter().map(f64::from).take(datasets.len()).collect();
        let stop = [Stop::FirstExhausted, Stop::AllExhausted, Stop::Size(200)][stop];
        let got = alone(mixture(&weights, stop), &datasets, seed);
        let mut taken = vec![0_u64; datasets.len()];
        let mut lengths = taken.clone();
        got.iter().for_each(|sample| lengths[dataset_of(*sample, &datasets)] += 1);
        for (position, sample) in got.iter().enumerate() {
            for (taken, length) in taken.iter().zip(&lengths) {
                let expected = position as f64 * *length as f64 / got.len() as f64;
                let most = 3.0 + datasets.len() as f64;
                prop_assert!((*taken as f64 - expected).abs() <= most);
            }
            taken[dataset_of(*sample, &datasets)] += 1;
        }
        match stop {
            Stop::FirstExhausted => {
                prop_assert!(lengths.iter().zip(&datasets).all(|(got, most)| got <= most));
                prop_assert!(lengths.iter().zip(&datasets).any(|(got, most)| got == most));
            }
            Stop::AllExhausted => {
                prop_assert!(lengths.iter().zip(&datasets).all(|(got, least)| got >= least));
                prop_assert!(lengths.iter().zip(&datasets).any(|(got, least)| got == least));
            }
            Stop::Size(length) => prop_assert_eq!(got.len() as u64, length),
        }
        let parts: Vec<u64> = datasets.iter().flat_map(|len| [len / 2, len - len / 2]).collect();
        let holders = Holders::of_parts(&parts, devices, &[]).unwrap();
        let divided = samples(mixture(&weights, stop), &datasets, &holders, seed).concat();
        prop_assert_eq!(divided.len(), got.len());
        for all in [&got, &divided] {
            let mut counts = vec![0_u64; datasets.iter().sum::<u64>() as usize];
            all.iter().for_each(|sample| counts[*sample as usize] += 1);
            for (sample, count) in counts.iter().enumerate() {
                let dataset = dataset_of(sample as u64, &datasets);
                let passes = lengths[dataset] / datasets[dataset];
                let most = lengths[dataset].div_ceil(datasets[dataset]);
                prop_assert!(*count <= most && (devices > 1 || *count >= passes));
            }
        }
    }
}
