//! Random times, each keyed by its purpose, independent of the order of calls.
//!
//! The key is the counter of Philox. So the host takes the same time for a batch under every
//! strategy, and a comparison of strategies has no sampling noise.

use meetpoint_format::random::philox4x32_10;
use meetpoint_scheduler::Time;

use crate::scenario::Distribution;

/// The purpose of a random value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Stream {
    /// The host's preparation at a rank; index: epoch and batch.
    Host = 1,
    /// A device; index: the ordinal of the batch that it begins.
    Device = 2,
    /// An accelerator; index: step.
    Step = 3,
    /// The size of a batch; index: epoch and batch.
    Size = 4,
    /// The backoff of a rejected request; index: its ordinal.
    Backoff = 5,
    /// The time to the next failure of a device; index: its ordinal.
    DeviceFailure = 6,
    /// The same of a host.
    HostFailure = 7,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Draws {
    key: [u32; 2],
}

/// The key of a random time.
#[derive(Debug, Clone, Copy)]
pub(super) struct DrawKey {
    pub(super) stream: Stream,
    /// Rank or device.
    pub(super) entity: u32,
    /// Index within the stream; the key of random distributions.
    pub(super) index: u64,
    /// Its ordinal; selects the value of a trace.
    pub(super) nth: u64,
    /// Virtual time, which determines slow periods.
    pub(super) now: Time,
}

impl Draws {
    pub(super) fn new(seed: u64) -> Self {
        Self { key: [seed as u32, (seed >> 32) as u32] }
    }

    /// Nanoseconds.
    pub(super) fn time(&self, distribution: &Distribution, what: DrawKey) -> u64 {
        match distribution {
            Distribution::Constant(time) => time.0,
            Distribution::Trace(values) => {
                let at = what.nth % values.values.len() as u64;
                values.values[at as usize].0
            }
            Distribution::Empirical(values) => {
                let at = self.uniform(what) * values.values.len() as f64;
                values.values[(at as usize).min(values.values.len() - 1)].0
            }
            Distribution::Uniform { low, high } => {
                let span = (high.0 - low.0) as f64;
                low.0 + (self.uniform(what) * span).round() as u64
            }
            Distribution::Lognormal { mean, sigma } => {
                let exponent = sigma * normal_quantile(self.uniform(what)) - sigma * sigma / 2.0;
                (mean.0 as f64 * libm::exp(exponent)).round() as u64
            }
            Distribution::Burst { base, every, lasting, factor } => {
                let time = self.time(base, what);
                if what.now % every.0 < lasting.0 {
                    (time as f64 * factor).round() as u64
                } else {
                    time
                }
            }
        }
    }

    /// A factor of mean 1: exp(N(-σ²/2, σ)).
    pub(super) fn size(&self, sigma: f64, rank: u32, index: u64) -> f64 {
        if sigma == 0.0 {
            return 1.0;
        }
        let what = DrawKey { stream: Stream::Size, entity: rank, index, nth: 0, now: 0 };
        libm::exp(sigma * normal_quantile(self.uniform(what)) - sigma * sigma / 2.0)
    }

    /// From 0 to 1.
    pub(super) fn share(&self, stream: Stream, entity: u32, index: u64) -> f64 {
        self.uniform(DrawKey { stream, entity, index, nth: 0, now: 0 })
    }

    /// Exponentially distributed with this mean, in nanoseconds.
    pub(super) fn exponential(&self, stream: Stream, entity: u32, nth: u64, mean_ns: u64) -> u64 {
        let time = -libm::log(self.share(stream, entity, nth)) * mean_ns as f64;
        (time.round() as u64).max(1)
    }

    /// Above 0 and below 1.
    fn uniform(&self, what: DrawKey) -> f64 {
        let counter =
            [what.index as u32, (what.index >> 32) as u32, what.entity, what.stream as u32];
        let [low, high, ..] = philox4x32_10(counter, self.key);
        let bits = (u64::from(high) << 32 | u64::from(low)) >> 11;
        (bits as f64 + 0.5) / (1_u64 << 53) as f64
    }
}

/// The inverse of the standard normal distribution.
///
/// Algorithm AS 241 (PPND16), M. J. Wichura, "The Percentage Points of the Normal Distribution",
/// Applied Statistics 37 (1988): about 1 part in 10^16.
fn normal_quantile(p: f64) -> f64 {
    const CENTRE: [[f64; 8]; 2] = [
        [
            3.387_132_872_796_366_5,
            133.141_667_891_784_38,
            1_971.590_950_306_551_3,
            13_731.693_765_509_46,
            45_921.953_931_549_87,
            67_265.770_927_008_7,
            33_430.575_583_588_13,
            2_509.080_928_730_122_7,
        ],
        [
            1.0,
            42.313_330_701_600_91,
            687.187_007_492_057_9,
            5_394.196_021_424_751,
            21_213.794_301_586_597,
            39_307.895_800_092_71,
            28_729.085_735_721_943,
            5_226.495_278_852_545,
        ],
    ];
    const MIDDLE: [[f64; 8]; 2] = [
        [
            1.423_437_110_749_683_5,
            4.630_337_846_156_546,
            5.769_497_221_460_691,
            3.647_848_324_763_204_5,
            1.270_458_252_452_368_4,
            0.241_780_725_177_450_6,
            0.022_723_844_989_269_184,
            7.745_450_142_783_414e-4,
        ],
        [
            1.0,
            2.053_191_626_637_759,
            1.676_384_830_183_803_8,
            0.689_767_334_985_1,
            0.148_103_976_427_480_08,
            0.015_198_666_563_616_457,
            5.475_938_084_995_345e-4,
            1.050_750_071_644_416_9e-9,
        ],
    ];
    const FAR: [[f64; 8]; 2] = [
        [
            6.657_904_643_501_103,
            5.463_784_911_164_114,
            1.784_826_539_917_291_3,
            0.296_560_571_828_504_9,
            0.026_532_189_526_576_124,
            0.001_242_660_947_388_078_4,
            2.711_555_568_743_487_6e-5,
            2.010_334_399_292_288_1e-7,
        ],
        [
            1.0,
            0.599_832_206_555_888,
            0.136_929_880_922_735_8,
            0.014_875_361_290_850_615,
            7.868_691_311_456_133e-4,
            1.846_318_317_510_054_7e-5,
            1.421_511_758_316_445_8e-7,
            2.044_263_103_389_939_8e-15,
        ],
    ];
    let ratio = |[above, below]: [[f64; 8]; 2], x: f64| {
        let at = |c: [f64; 8]| c.iter().rev().fold(0.0, |sum, c| sum * x + c);
        at(above) / at(below)
    };
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        return q * ratio(CENTRE, 0.180_625 - q * q);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    let r = libm::sqrt(-libm::log(tail));
    let value = if r <= 5.0 { ratio(MIDDLE, r - 1.6) } else { ratio(FAR, r - 5.0) };
    if q < 0.0 { -value } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Span;

    fn nth(index: u64) -> DrawKey {
        DrawKey { stream: Stream::Host, entity: 0, index, nth: index, now: 0 }
    }

    #[test]
    fn the_quantile_is_that_of_tables() {
        // Values of R's qnorm, which is AS 241 too, and of NIST's table.
        for (p, z) in [
            (0.5, 0.0),
            (0.975, 1.959_963_984_540_054),
            (0.841_344_746_068_542_9, 1.0),
            (0.001, -3.090_232_306_167_813_5),
            (1e-12, -7.034_483_825_301_131),
        ] {
            assert!((normal_quantile(p) - z).abs() < 1e-9, "{p}: {}", normal_quantile(p));
        }
    }

    #[test]
    fn a_lognormal_has_the_mean_and_the_spread_that_it_was_given() {
        let (draws, count) = (Draws::new(7), 100_000);
        let law = Distribution::Lognormal { mean: Span(1_000_000), sigma: 0.3 };
        let values: Vec<f64> = (0..count).map(|n| draws.time(&law, nth(n)) as f64).collect();
        let mean = values.iter().sum::<f64>() / count as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.005, "{mean}");
        let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let centre = logs.iter().sum::<f64>() / count as f64;
        let spread = logs.iter().map(|log| (log - centre).powi(2)).sum::<f64>() / count as f64;
        assert!((spread.sqrt() - 0.3).abs() < 0.003, "{}", spread.sqrt());
    }

    #[test]
    fn draws_depend_on_their_purpose() {
        let law = Distribution::Uniform { low: Span(0), high: Span(1 << 40) };
        let (a, b) = (Draws::new(1), Draws::new(2));
        assert_eq!(a.time(&law, nth(3)), a.time(&law, nth(3)));
        assert_ne!(a.time(&law, nth(3)), a.time(&law, nth(4)));
        assert_ne!(a.time(&law, nth(3)), b.time(&law, nth(3)));
        let device = DrawKey { stream: Stream::Device, ..nth(3) };
        assert_ne!(a.time(&law, nth(3)), a.time(&law, device));
    }
}
