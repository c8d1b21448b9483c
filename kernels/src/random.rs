//! Random parameters and noise shared by several operations, drawn from their streams.

use crate::Cpu;
use crate::vector::{BLOCK, Kernel, run};
use meetpoint_format::random::{Draws, philox4x32_10};

/// Shuffles elements: swaps the element at i with that at `up_to(i)`, for i from the last to 1.
pub(crate) fn shuffle<T>(elements: &mut [T], draws: &mut Draws) {
    for last in (1..elements.len()).rev() {
        let high = u32::try_from(last).expect("few elements are shuffled");
        elements.swap(last, draws.up_to(high) as usize);
    }
}

/// Random words for the elements of a picture or tensor, determined by their positions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    /// Key of Philox.
    key: [u32; 2],
}

impl Field {
    /// Draws a field, whose key is the next two words.
    pub(crate) fn drawn(draws: &mut Draws) -> Self {
        Self { key: [draws.next_u32(), draws.next_u32()] }
    }

    /// The key.
    pub(crate) fn key(&self) -> [u32; 2] {
        self.key
    }

    /// The words of `words.len()` columns from column 0 of a row of a channel: four for each block
    /// with the counter [column / 4, row, channel, 0].
    pub(crate) fn row(&self, cpu: Cpu, channel: usize, y: usize, words: &mut [u32]) {
        let [channel, y] = [channel, y].map(narrow);
        let key = self.key;
        let (groups, rest) = words.as_chunks_mut::<GROUP>();
        run(cpu, Words { key, y, channel, groups });
        let made = (groups.len() * LANES) as u32;
        for (block, words) in (made..).zip(rest.chunks_mut(4)) {
            let made = philox4x32_10([block, y, channel, 0], key);
            words.copy_from_slice(&made[..words.len()]);
        }
    }
}

/// Number of blocks computed at once.
const LANES: usize = 16;
const GROUP: usize = 4 * LANES;

/// Computes the words of whole groups of blocks.
struct Words<'a> {
    key: [u32; 2],
    y: u32,
    channel: u32,
    groups: &'a mut [[u32; GROUP]],
}

/// Constants of Philox 4x32: J. K. Salmon and others, "Parallel random numbers: as easy as 1, 2, 3"
/// (2011).
const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
const ROUNDS: usize = 10;

impl Kernel for Words<'_> {
    type Output = ();

    #[inline(always)]
    fn compute(self) {
        let Self { key, y, channel, groups } = self;
        for (index, group) in groups.iter_mut().enumerate() {
            let (mut a, mut b) = ([0; LANES], [y; LANES]);
            let (mut c, mut d) = ([channel; LANES], [0u32; LANES]);
            for (lane, a) in a.iter_mut().enumerate() {
                *a = (index * LANES + lane) as u32;
            }
            let [mut first, mut second] = key;
            for _ in 0..ROUNDS {
                for lane in 0..LANES {
                    let of_a = u64::from(a[lane]) * u64::from(MULTIPLIERS[0]);
                    let of_c = u64::from(c[lane]) * u64::from(MULTIPLIERS[1]);
                    a[lane] = (of_c >> 32) as u32 ^ b[lane] ^ first;
                    b[lane] = of_c as u32;
                    c[lane] = (of_a >> 32) as u32 ^ d[lane] ^ second;
                    d[lane] = of_a as u32;
                }
                first = first.wrapping_add(WEYL[0]);
                second = second.wrapping_add(WEYL[1]);
            }
            for lane in 0..LANES {
                let words = &mut group[4 * lane..][..4];
                (words[0], words[1], words[2], words[3]) = (a[lane], b[lane], c[lane], d[lane]);
            }
        }
    }
}

/// A position in a picture, which has fewer than 2^32 rows, columns and channels.
fn narrow(position: usize) -> u32 {
    u32::try_from(position).expect("a side of a picture has 32 bits")
}

/// A standard normal number for a word: the quantile of (word + 1/2) / 2^32.
///
/// M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied
/// Statistics 37 (1988), PPND16. Its third polynomial is for quantiles that no word has.
pub(crate) fn normal(word: u32) -> f64 {
    let share = share(word);
    let q = share - 0.5;
    if q.abs() <= CENTRE_MAX {
        return centre(q);
    }
    let tail = if q <= 0.0 { share } else { 1.0 - share };
    let value = outer((-libm::log(tail)).sqrt() - 1.6);
    if q < 0.0 { -value } else { value }
}

/// Normal numbers of words, equally many: [`normal`] of each.
pub(crate) fn normals(cpu: Cpu, words: &[u32], numbers: &mut [f64]) {
    run(cpu, Normals { words, numbers });
}

struct Normals<'a> {
    words: &'a [u32],
    numbers: &'a mut [f64],
}

/// Quantiles further than this from the median use another polynomial.
const CENTRE_MAX: f64 = 0.425;

/// Number of tail values computed at once.
const TAILS: usize = 8;

/// Number of values whose tail values are gathered.
const PIECE: usize = 8 * BLOCK;

impl Kernel for Normals<'_> {
    type Output = ();

    #[inline(always)]
    fn compute(self) {
        let Self { words, numbers } = self;
        for (words, numbers) in words.chunks(PIECE).zip(numbers.chunks_mut(PIECE)) {
            let (mut shares, mut found) = ([0.5; PIECE], [0.0; PIECE]);
            let blocks = shares.as_chunks_mut::<BLOCK>().0.iter_mut();
            let blocks = blocks.zip(found.as_chunks_mut::<BLOCK>().0);
            for (words, (shares, found)) in words.chunks(BLOCK).zip(blocks) {
                let mut block = [0; BLOCK];
                block[..words.len()].copy_from_slice(words);
                for index in 0..BLOCK {
                    shares[index] = share(block[index]);
                    found[index] = centre(shares[index] - 0.5);
                }
            }
            // Tail values are gathered, and computed several at once.
            let (mut tails, mut probabilities) = ([0_u16; PIECE], [CENTRE_MAX; PIECE + TAILS]);
            let mut count = 0;
            for (index, share) in shares[..words.len()].iter().enumerate() {
                let q = share - 0.5;
                (tails[count], probabilities[count]) =
                    (index as u16, if q <= 0.0 { *share } else { 1.0 - share });
                count += usize::from(q.abs() > CENTRE_MAX);
            }
            for first in (0..count).step_by(TAILS) {
                let mut values = [0.0; TAILS];
                for index in 0..TAILS {
                    values[index] = outer((-logarithm(probabilities[first + index])).sqrt() - 1.6);
                }
                for (tail, value) in tails[first..count].iter().zip(values) {
                    let tail = usize::from(*tail);
                    found[tail] = if shares[tail] < 0.5 { -value } else { value };
                }
            }
            numbers.copy_from_slice(&found[..numbers.len()]);
        }
    }
}

/// The probability for a word.
#[inline(always)]
fn share(word: u32) -> f64 {
    (f64::from(word) + 0.5) / 4_294_967_296.0
}

/// The quantile at a distance of at most [`CENTRE_MAX`] from the median.
#[inline(always)]
fn centre(q: f64) -> f64 {
    let r = 0.180_625 - q * q;
    polynomial(&CENTRE[0], r) * q / polynomial(&CENTRE[1], r)
}

/// The natural logarithm of a normal number below 1, with the bits of [`libm::log`]: fdlibm's
/// `e_log.c` without the branches for other numbers, so that loops over it are vectorised.
#[inline(always)]
fn logarithm(x: f64) -> f64 {
    const LN2: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];
    const ODD: [f64; 4] = [
        6.666_666_666_666_735e-1,
        2.857_142_874_366_239e-1,
        1.818_357_216_161_805e-1,
        1.479_819_860_511_658_6e-1,
    ];
    const EVEN: [f64; 3] =
        [3.999_999_999_940_942e-1, 2.222_219_843_214_978_4e-1, 1.531_383_769_920_937_3e-1];
    /// The upper half of the bits of sqrt(1/2), and of 1.
    const ROOT: u64 = 0x3fe6_a09e << 32;
    const ONE: u64 = 0x3ff0_0000 << 32;
    let shifted = x.to_bits() + (ONE - ROOT);
    let k = f64::from((shifted >> 52) as i32 - 0x3ff);
    let f = f64::from_bits((shifted & ((1 << 52) - 1)) + ROOT) - 1.0;
    let half = 0.5 * f * f;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w * (EVEN[0] + w * (EVEN[1] + w * EVEN[2]));
    let odd = z * (ODD[0] + w * (ODD[1] + w * (ODD[2] + w * ODD[3])));
    s * (half + (odd + even)) + k * LN2[1] - half + f + k * LN2[0]
}

/// The quantile in the tails.
#[inline(always)]
fn outer(r: f64) -> f64 {
    polynomial(&TAIL[0], r) / polynomial(&TAIL[1], r)
}

/// A gamma variate with a given shape and a scale of 1.
///
/// G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables", ACM Transactions on
/// Mathematical Software 26 (2000). With d = shape - 1/3 and c = 1 / sqrt(9 d), a normal number x
/// (one word) and a uniform number u are drawn until v = (1 + c x)^3 is above 0 and ln(u) is below
/// x x / 2 + d - d v + d ln(v); the number is d v. For a shape below 1, the number of the shape
/// increased by 1 is multiplied by u^(1 / shape) for a uniform number u that is drawn after it.
pub(crate) fn gamma(shape: f64, draws: &mut Draws) -> f64 {
    if shape < 1.0 {
        let number = gamma(shape + 1.0, draws);
        return number * libm::pow(draws.uniform(), 1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(draws.next_u32());
        let uniform = draws.uniform();
        let side = 1.0 + c * x;
        let v = side * side * side;
        if v > 0.0 && libm::log(uniform) < x * x / 2.0 + d - d * v + d * libm::log(v) {
            return d * v;
        }
    }
}

/// Numbers with the sum 1 from a Dirichlet distribution. They are equal if all gamma variates are
/// 0, which can happen for a small shape.
pub(crate) fn dirichlet(alpha: f64, count: u32, draws: &mut Draws) -> Vec<f64> {
    let numbers: Vec<f64> = (0..count).map(|_| gamma(alpha, draws)).collect();
    let sum: f64 = numbers.iter().sum();
    if sum == 0.0 {
        return vec![1.0 / f64::from(count); numbers.len()];
    }
    numbers.into_iter().map(|number| number / sum).collect()
}

/// A number from 0 to 1 from a beta distribution with two equal shapes: the first of two numbers
/// from a Dirichlet distribution.
pub(crate) fn beta(alpha: f64, draws: &mut Draws) -> f64 {
    dirichlet(alpha, 2, draws)[0]
}

/// A polynomial of degree 7, the highest coefficient first, by Horner's rule. Products and sums are
/// rounded one by one: a fused multiply-add would differ.
#[inline(always)]
fn polynomial(coefficients: &[f64; 8], at: f64) -> f64 {
    let mut sum = coefficients[0];
    for coefficient in &coefficients[1..] {
        sum = sum * at + coefficient;
    }
    sum
}

/// Numerator and denominator for quantiles from 0.075 to 0.925.
const CENTRE: [[f64; 8]; 2] = [
    [
        2_509.080_928_730_122_7,
        33_430.575_583_588_13,
        67_265.770_927_008_7,
        45_921.953_931_549_87,
        13_731.693_765_509_46,
        1_971.590_950_306_551_3,
        133.141_667_891_784_38,
        3.387_132_872_796_366_5,
    ],
    [
        5_226.495_278_852_854,
        28_729.085_735_721_943,
        39_307.895_800_092_71,
        21_213.794_301_586_597,
        5_394.196_021_424_751,
        687.187_007_492_057_9,
        42.313_330_701_600_91,
        1.0,
    ],
];

/// Numerator and denominator for quantiles in the tails.
const TAIL: [[f64; 8]; 2] = [
    [
        0.000_774_545_014_278_341_4,
        0.022_723_844_989_269_184,
        0.241_780_725_177_450_6,
        1.270_458_252_452_368_4,
        3.647_848_324_763_204_5,
        5.769_497_221_460_691,
        4.630_337_846_156_546,
        1.423_437_110_749_683_5,
    ],
    [
        1.050_750_071_644_416_9e-9,
        0.000_547_593_808_499_534_5,
        0.015_198_666_563_616_457,
        0.148_103_976_427_480_08,
        0.689_767_334_985_1,
        1.676_384_830_183_803_8,
        2.053_191_626_637_759,
        1.0,
    ],
];

#[cfg(test)]
mod tests {
    use super::{Field, gamma, logarithm, normal, normals, shuffle};
    use crate::{Cpu, golden};
    use meetpoint_format::random::{DrawKey, Draws, philox4x32_10};

    fn draws(sample: u64) -> Draws {
        Draws::new(DrawKey { seed: 5, epoch: 0, sample, operation: 1 })
    }

    /// The Kolmogorov-Smirnov statistic: the largest distance between the empirical and the
    /// theoretical distribution function. For 100,000 fair values, one set in a thousand exceeds
    /// 0.0062.
    fn distance(mut values: Vec<f64>, distribution: impl Fn(f64) -> f64) -> f64 {
        values.sort_by(f64::total_cmp);
        let count = values.len() as f64;
        let at = |(index, value): (usize, &f64)| {
            let share = distribution(*value);
            (share - index as f64 / count).max((index + 1) as f64 / count - share)
        };
        values.iter().enumerate().map(at).fold(0.0, f64::max)
    }

    #[test]
    fn a_hundred_thousand_values_of_a_field_are_normal() {
        let field = Field::drawn(&mut draws(3));
        let mut words = vec![0; 250];
        let mut values = Vec::new();
        for y in 0..400 {
            field.row(Cpu::detect(), y % 3, y, &mut words);
            values.extend(words.iter().map(|word| normal(*word)));
        }
        let normal = |value: f64| 0.5 * libm::erfc(-value / std::f64::consts::SQRT_2);
        assert_eq!(values.len(), 100_000);
        let distance = distance(values, normal);
        assert!(distance < 0.0062, "{distance}");
    }

    /// The distribution functions for the shapes 1 and 2.
    #[test]
    fn gamma_numbers_have_their_distribution() {
        for (shape, distribution) in [
            (1.0, (|x| 1.0 - (-x).exp()) as fn(f64) -> f64),
            (2.0, |x| 1.0 - (1.0 + x) * (-x).exp()),
            (0.5, |x| libm::erf(x.sqrt())),
        ] {
            let mut draws = draws(9);
            let values = (0..100_000).map(|_| gamma(shape, &mut draws)).collect();
            let distance = distance(values, distribution);
            assert!(distance < 0.0062, "{shape} {distance}");
        }
    }

    #[test]
    fn logarithms_have_the_bits_of_another_implementation() {
        let mut x = 1e-11_f64;
        while x < 0.9 {
            assert_eq!(logarithm(x).to_bits(), libm::log(x).to_bits(), "{x}");
            x *= 1.000_13;
        }
        for word in (0..1 << 16).map(|index: u32| index.wrapping_mul(4919 * 65_537)) {
            let share = super::share(word);
            assert_eq!(logarithm(share).to_bits(), libm::log(share).to_bits(), "{share}");
        }
    }

    /// Quantiles from Python's `statistics.NormalDist().inv_cdf`.
    #[test]
    fn quantiles_are_those_of_another_implementation() {
        for (word, quantile) in [
            (0, -6.337_957_754_553_789),
            (77, -5.508_995_321_162_325),
            (322_122_547, -1.439_531_470_445_015_3),
            (1_000_000_000, -0.729_556_553_075_873_9),
            (1 << 31, 2.918_099_372_916_623_4e-10),
            (3_613_548_169, 1.000_000_000_456_272_1),
            (4_187_593_113, 1.959_963_984_141_679_2),
        ] {
            let difference = (normal(word) - quantile).abs();
            assert!(difference <= 1e-14 * quantile.abs(), "{word} {difference}");
        }
        for word in [0, 1, 77, 1 << 20, 300 << 20, (1 << 31) - 1] {
            assert_eq!(normal(word).to_bits(), (-normal(u32::MAX - word)).to_bits(), "{word}");
        }
    }

    #[test]
    fn rows_of_words_and_normal_numbers_are_those_of_each_alone() {
        let field = Field::drawn(&mut draws(3));
        for cpu in golden::instruction_sets() {
            for length in [1, 3, 4, 63, 64, 65, 200, 1023] {
                let (mut words, mut numbers) = (vec![0; length], vec![0.0; length]);
                field.row(cpu, 2, 7, &mut words);
                let alone = |block| philox4x32_10([block, 7, 2, 0], field.key);
                let expected: Vec<u32> = (0..).flat_map(alone).take(length).collect();
                assert_eq!(words, expected, "{} {length}", cpu.name());
                // The ends of the distribution, and of its central part.
                for (word, end) in words.iter_mut().zip([0, u32::MAX, 322_122_547, 1 << 31]) {
                    *word = end;
                }
                normals(cpu, &words, &mut numbers);
                let bits = |number: f64| number.to_bits();
                let found: Vec<u64> = numbers.into_iter().map(bits).collect();
                let expected: Vec<u64> = words.iter().map(|word| bits(normal(*word))).collect();
                assert_eq!(found, expected, "{} {length}", cpu.name());
            }
        }
    }

    #[test]
    fn the_words_of_a_field_depend_on_key_and_position_alone() {
        let field = Field::drawn(&mut draws(3));
        let words = |field: Field, channel, y, count| {
            let mut words = vec![0; count];
            field.row(Cpu::detect(), channel, y, &mut words);
            words
        };
        let row = words(field, 1, 2, 11);
        assert_eq!(words(field, 1, 2, 7), row[..7]);
        assert_ne!(words(field, 0, 2, 11), row);
        assert_ne!(words(field, 1, 3, 11), row);
        assert_ne!(words(Field::drawn(&mut draws(4)), 1, 2, 11), row);
    }

    /// Chi-square with 23 degrees of freedom: the 0.999 quantile is 49.73.
    #[test]
    fn every_order_of_four_is_as_frequent_as_any_other() {
        let mut counts = std::collections::BTreeMap::new();
        for sample in 0..24_000 {
            let mut order = [0, 1, 2, 3];
            shuffle(&mut order, &mut draws(sample));
            *counts.entry(order).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        let chi_square: f64 =
            counts.values().map(|count| (f64::from(*count) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi_square < 49.73, "{chi_square} {counts:?}");
    }
}
