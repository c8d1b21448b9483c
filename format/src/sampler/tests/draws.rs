//! Distributions of draws, and their values, compared with an independent implementation.

use super::super::{ClassBalanced, Sampler, Sampling, Weighted, Weights};
use super::columns::Made;
use crate::batching::{BatchOptions, Batching};
use crate::golden;

/// The samples of an epoch.
fn drawn(sampler: &Sampler, made: &Made, seed: u64, epoch: u32) -> Vec<u64> {
    let options = BatchOptions { batch_size: 1, drop_last: false, seed };
    let batching = Batching::alone(options, Sampling::of(sampler, made).unwrap());
    let order = batching.order(epoch);
    let batches = 0..u32::try_from(batching.batches()).unwrap();
    batches.flat_map(|batch| batching.samples_of(&order, batch).collect::<Vec<_>>()).collect()
}

fn weighted(weights: &[f64], replacement: bool, length: u64) -> Sampler {
    let weights = Weights::Numbers(weights.into());
    Weighted { weights, replacement, length: Some(length) }.into()
}

fn chi_square(counts: &[u64], shares: &[f64]) -> f64 {
    let total: u64 = counts.iter().sum();
    let sum: f64 = shares.iter().sum();
    let expected = shares.iter().map(|share| share / sum * total as f64);
    let terms = counts.iter().zip(expected).filter(|(_, expected)| *expected > 0.0);
    terms.map(|(count, expected)| (*count as f64 - expected).powi(2) / expected).sum()
}

fn counts(samples: &[u64], among: usize) -> Vec<u64> {
    let mut counts = vec![0; among];
    samples.iter().for_each(|sample| counts[*sample as usize] += 1);
    counts
}

#[test]
fn draws_equal_those_computed_from_the_documentation() {
    for (kind, replacement) in [("weighted", true), ("unreplaced", false)] {
        for (key, samples) in golden::lines(kind) {
            let number = |at: usize| key[at].parse::<u64>().unwrap();
            let (seed, length) = (number(0), number(2));
            let epoch = u32::try_from(number(1)).unwrap();
            let weights: Vec<f64> = key[3..].iter().map(|word| word.parse().unwrap()).collect();
            let made = Made::of(weights.len() as u64);
            let got = drawn(&weighted(&weights, replacement, length), &made, seed, epoch);
            let got: Vec<String> = got.iter().map(u64::to_string).collect();
            assert_eq!(got, samples, "{kind} {key:?}");
        }
    }
}

/// Chi-square with 6 degrees of freedom: 22.46 is exceeded by 1 of 1000 fair samplers.
#[test]
fn samples_are_drawn_in_proportion_to_their_weights() {
    let weights = [1.0, 0.0, 2.0, 0.5, 10.0, 3.25, 0.25, 4.0];
    let samples = drawn(&weighted(&weights, true, 100_000), &Made::of(8), 5, 2);
    let counts = counts(&samples, 8);
    assert_eq!(counts[1], 0);
    let found = chi_square(&counts, &weights);
    assert!(found < 22.46, "{found}: {counts:?}");
}

/// Chi-square with 15 degrees of freedom: 37.70 is exceeded by 1 of 1000 fair samplers.
#[test]
fn consecutive_draws_are_independent() {
    let samples = drawn(&weighted(&[1.0; 4], true, 80_000), &Made::of(4), 9, 0);
    let mut pairs = [0_u64; 16];
    for pair in samples.chunks_exact(2) {
        pairs[(pair[0] * 4 + pair[1]) as usize] += 1;
    }
    let found = chi_square(&pairs, &[1.0; 16]);
    assert!(found < 37.70, "{found}");
}

/// Chi-square with 2 and with 9 degrees of freedom, at 1 of 1000.
#[test]
fn classes_are_drawn_equally_often_and_samples_within_a_class_too() {
    let labels = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 7];
    let made = Made { labels: labels.map(Some).to_vec(), selected: Vec::new(), datasets: vec![] };
    let sampler = ClassBalanced { column: "label".to_owned(), length: Some(90_000) }.into();
    let counts = counts(&drawn(&sampler, &made, 3, 1), 13);
    let classes = [counts[..10].iter().sum(), counts[10] + counts[11], counts[12]];
    let of_classes = chi_square(&classes, &[1.0; 3]);
    let within = chi_square(&counts[..10], &[1.0; 10]);
    assert!(of_classes < 13.82 && within < 27.88, "{of_classes} {within}: {counts:?}");
}

/// The orders of two draws among four samples, whose probabilities are enumerated: chi-square with
/// 11 degrees of freedom, 31.26 is exceeded by 1 of 1000 fair samplers.
#[test]
fn draws_without_replacement_have_the_enumerated_probabilities() {
    let weights = [1.0, 2.0, 3.0, 6.0];
    let sampler = weighted(&weights, false, 2);
    let mut times = [0_u64; 16];
    for epoch in 0..40_000 {
        let pair = drawn(&sampler, &Made::of(4), 1, epoch);
        assert_ne!(pair[0], pair[1]);
        times[(pair[0] * 4 + pair[1]) as usize] += 1;
    }
    let total: f64 = weights.iter().sum();
    let mut shares = [0.0; 16];
    for first in 0..4 {
        for second in (0..4).filter(|second| *second != first) {
            let left = total - weights[first];
            shares[first * 4 + second] = weights[first] / total * weights[second] / left;
        }
    }
    let found = chi_square(&times, &shares);
    assert!(found < 31.26, "{found}: {times:?}");
}

#[test]
fn without_replacement_an_epoch_has_every_positive_weight_once() {
    let weights: Vec<f64> = (0..500).map(|n| f64::from(n % 7)).collect();
    let made = Made::of(500);
    let all =
        Weighted { weights: Weights::Numbers(weights.into()), replacement: false, length: None };
    let mut samples = drawn(&all.into(), &made, 4, 0);
    samples.sort_unstable();
    assert_eq!(samples, (0..500).filter(|n| n % 7 > 0).collect::<Vec<u64>>());
}
