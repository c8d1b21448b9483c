//! Draws without replacement: an exponential race among the samples, sorted once per epoch.
//!
//! Sample i with the integer weight w has the time E/w, where E is exponentially distributed; in
//! ascending order of time the samples are successive draws in proportion to the weights of those
//! left (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006). E is a fixed-
//! point number and times are compared as fractions, so every machine finds the same order.

use crate::random::{RACE_DOMAIN, halves, join, philox4x32_10};
use std::cmp::Ordering;

/// Fraction bits of a time.
const FRACTION_BITS: u32 = 48;

/// A sample in the race.
#[derive(Debug, Clone, Copy)]
struct Runner {
    sample: u64,
    time: u64,
    weight: u64,
}

/// The first `length` samples of the race. `weights` contains pairs of a sample and its positive
/// weight. Samples are sorted by time; equal times by sample.
///
/// Uses 24 bytes for each pair while it sorts, and 8 for each sample of the result.
pub(super) fn race(weights: &[(u64, u64)], length: u64, seed: u64, epoch: u32) -> Vec<u64> {
    let runner = |&(sample, weight): &(u64, u64)| {
        let [low, high] = halves(sample);
        let [a, b, ..] = philox4x32_10([low, high, epoch, RACE_DOMAIN], halves(seed));
        Runner { sample, time: exponential(join(a, b)), weight }
    };
    let mut runners: Vec<Runner> = weights.iter().map(runner).collect();
    let length = usize::try_from(length).expect("no more than there are samples");
    if 0 < length && length < runners.len() {
        runners.select_nth_unstable_by(length - 1, by_time);
        runners.truncate(length);
    }
    runners.sort_unstable_by(by_time);
    runners.iter().take(length).map(|runner| runner.sample).collect()
}

fn by_time(a: &Runner, b: &Runner) -> Ordering {
    let left = u128::from(a.time) * u128::from(b.weight);
    let right = u128::from(b.time) * u128::from(a.weight);
    left.cmp(&right).then(a.sample.cmp(&b.sample))
}

/// -log2((bits + 1) / 2^64) with [`FRACTION_BITS`] fraction bits, digit by digit: the mantissa is
/// squared and truncated to 63 fraction bits; the digit is 1 if it reaches 2.
fn exponential(bits: u64) -> u64 {
    let Some(value) = bits.checked_add(1) else { return 0 };
    let exponent = u64::from(value.ilog2());
    let mut mantissa = value << value.leading_zeros();
    let mut log = exponent;
    for _ in 0..FRACTION_BITS {
        let square = (u128::from(mantissa) * u128::from(mantissa)) >> 63;
        let digit = (square >> 64) as u64;
        mantissa = (square >> digit) as u64;
        log = log << 1 | digit;
    }
    (64 << FRACTION_BITS) - log
}

#[cfg(test)]
mod tests {
    use super::{FRACTION_BITS, exponential};

    #[test]
    fn times_are_logarithms() {
        assert_eq!(exponential(u64::MAX), 0);
        assert_eq!(exponential((1 << 63) - 1), 1 << FRACTION_BITS);
        assert_eq!(exponential(0), 64 << FRACTION_BITS);
        for bits in [1, 2, 12_345, 1 << 40, u64::MAX / 3, u64::MAX - 1000] {
            let exact = 64.0 - (bits as f64 + 1.0).log2();
            let fixed = exponential(bits) as f64 / (1u64 << FRACTION_BITS) as f64;
            assert!((exact - fixed).abs() < 1e-12, "{bits}: {fixed}, not {exact}");
        }
    }
}
