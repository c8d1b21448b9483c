//! Resampling by a windowed sinc: `torchaudio.functional.resample` with its defaults.

use crate::series::{Kernel, Pause, execute};
use crate::{Cpu, Error};

/// Zero crossings of the sinc on each side.
const CROSSINGS: f64 = 6.0;
/// Cut-off, as a share of half the lower sample rate.
const ROLLOFF: f64 = 0.99;
/// Number of partial sums per result.
const LANES: usize = 8;
/// Results computed between two calls of `pause`.
const PIECE: usize = 1 << 12;

/// The filter from one sample rate to another.
#[derive(Debug)]
pub(crate) struct Resampler {
    /// Both rates divided by their greatest common divisor.
    from: usize,
    to: usize,
    rates: (u32, u32),
    /// For each phase, the position of its first factor relative to the first sample of a block.
    first: Vec<isize>,
    /// For each phase `taps` factors, a multiple of [`LANES`].
    factors: Vec<f32>,
    taps: usize,
    padded: Vec<f32>,
}

/// Number of samples at the rate `to` for a number of samples at the rate `from`.
pub(super) fn length(samples: u64, from: u32, to: u32) -> u64 {
    let common = u64::from(gcd(from, to));
    let (from, to) = (u64::from(from) / common, u64::from(to) / common);
    (samples * to).div_ceil(from)
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Resampler {
    /// The filter between two rates, which differ.
    pub(super) fn new(from: u32, to: u32) -> Self {
        let rates = (from, to);
        let common = gcd(from, to);
        let (from, to) = ((from / common) as usize, (to / common) as usize);
        let base = from.min(to) as f64 * ROLLOFF;
        let width = (CROSSINGS * from as f64 / base).ceil() as isize;
        // The filter is 0 at this distance from its centre and beyond.
        let reach = CROSSINGS * from as f64 / base;
        let taps = (2 * width as usize + 2).next_multiple_of(LANES);
        let (mut first, mut factors) = (Vec::with_capacity(to), vec![0.0; to * taps]);
        for (phase, factors) in factors.chunks_exact_mut(taps).enumerate() {
            let middle = phase as f64 * from as f64 / to as f64;
            let start = ((middle - reach).ceil() as isize).max(-width);
            first.push(start);
            for (index, factor) in factors.iter_mut().enumerate() {
                let position = (start + index as isize) as f64;
                let t = (position / from as f64 - phase as f64 / to as f64) * base;
                *factor = tap(t, base / from as f64);
            }
        }
        Self { from, to, rates, first, factors, taps, padded: Vec::new() }
    }

    /// The filter between two different rates; `last` is reused if it has these rates.
    pub(super) fn between(from: u32, to: u32, last: &mut Option<Self>) -> &mut Self {
        let found = last.take().filter(|last| last.rates == (from, to));
        last.insert(found.unwrap_or_else(|| Self::new(from, to)))
    }

    /// Bytes of the filter.
    pub(super) fn bytes(from: u32, to: u32) -> u64 {
        let common = gcd(from, to);
        let (from, to) = (f64::from(from / common), f64::from(to / common));
        let width = (CROSSINGS * from / (from.min(to) * ROLLOFF)).ceil();
        (4.0 * to * (2.0 * width + 2.0 + LANES as f64)) as u64
    }

    /// Resamples one channel and appends it to `results`. A result is the sum of 8 partial sums,
    /// each of every eighth product, added in order.
    pub(super) fn run(
        &mut self,
        samples: &[f32],
        results: &mut Vec<f32>,
        cpu: Cpu,
        pause: Pause<'_>,
    ) -> Result<(), Error> {
        let count = (samples.len() * self.to).div_ceil(self.from);
        let before = self.first.iter().min().map_or(0, |first| first.unsigned_abs());
        self.padded.clear();
        self.padded.resize(before, 0.0);
        self.padded.extend_from_slice(samples);
        self.padded.resize(before + samples.len() + self.from + self.taps, 0.0);
        results.reserve(count);
        for begin in (0..count).step_by(PIECE) {
            let indices = begin..(begin + PIECE).min(count);
            execute(cpu, &mut Piece { resampler: self, before, indices, results });
            pause()?;
        }
        Ok(())
    }
}

/// Results to compute.
struct Piece<'a> {
    resampler: &'a Resampler,
    /// Samples of padding before the first.
    before: usize,
    indices: std::ops::Range<usize>,
    results: &'a mut Vec<f32>,
}

impl Kernel for Piece<'_> {
    #[inline(always)]
    fn run(&mut self) {
        let Resampler { from, to, first, factors, taps, padded, .. } = self.resampler;
        for index in self.indices.clone() {
            let (block, phase) = (index / to, index % to);
            let start = (block * from + self.before).checked_add_signed(first[phase]);
            let start = start.expect("`before` is as long as the filter");
            let factors = &factors[phase * taps..][..*taps];
            self.results.push(dot(factors, &padded[start..start + taps]));
        }
    }
}

/// A factor of the filter at `t`, in zero crossings from its middle.
fn tap(t: f64, scale: f64) -> f32 {
    if t.abs() >= CROSSINGS {
        return 0.0;
    }
    let window = libm::cos(t * std::f64::consts::PI / CROSSINGS / 2.0);
    let angle = t * std::f64::consts::PI;
    let sinc = if angle == 0.0 { 1.0 } else { libm::sin(angle) / angle };
    (sinc * (window * window * scale)) as f32
}

#[inline(always)]
fn dot(factors: &[f32], samples: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    let (factors, samples) = (factors.as_chunks::<LANES>().0, samples.as_chunks::<LANES>().0);
    for (factors, samples) in factors.iter().zip(samples) {
        for lane in 0..LANES {
            sums[lane] += factors[lane] * samples[lane];
        }
    }
    sums.iter().sum()
}
