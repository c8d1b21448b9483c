//! The input pixels and weights of each output pixel: Pillow's `precompute_coeffs`, and for the
//! nearest pixel the positions of its `ImagingScaleAffine`.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "a call behind a CPU check"))]

use crate::Cpu;
use meetpoint_format::recipe::Interpolation;
use std::ops::Range;

/// Fraction bits of a weight: 32 less 8 for the value and 2 for overshoot, as in Pillow.
pub(crate) const PRECISION_BITS: u32 = 32 - 8 - 2;

/// A filter: its shape, and whether shrinking widens it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filter {
    /// Shape.
    pub interpolation: Interpolation,
    /// If true, the filter widens with the scale, like in Pillow. If false, its width is fixed, so
    /// that each output pixel is interpolated from its 2 (bilinear) or 4 (bicubic) nearest input
    /// pixels per axis. For bilinear these are the weights of `torch.nn.functional.interpolate`;
    /// PyTorch's bicubic has another shape (a = -0.75) and is not offered. Has no effect for the
    /// nearest pixel.
    pub antialias: bool,
}

impl Filter {
    /// Half the width, in input pixels at scale 1.
    fn support(self) -> f64 {
        match self.interpolation {
            Interpolation::Bilinear => 1.0,
            Interpolation::Bicubic => 2.0,
            Interpolation::Nearest => 0.0,
            Interpolation::Box => 0.5,
            Interpolation::Hamming => 1.0,
            Interpolation::Lanczos => 3.0,
        }
    }
}

/// The parameter a of the cubic convolution.
const CUBIC: f64 = -0.5;

/// The weight of the triangle at a distance.
#[inline(always)]
fn triangle(distance: f64) -> f64 {
    let x = distance.abs();
    // Branchless: 1 - x is positive if and only if x is less than 1.
    (1.0 - x).max(0.0)
}

/// The weight of the cubic at a distance, with the operations in Pillow's order.
#[inline(always)]
fn cubic(distance: f64) -> f64 {
    let x = distance.abs();
    if x < 1.0 {
        ((CUBIC + 2.0) * x - (CUBIC + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * CUBIC
    } else {
        0.0
    }
}

/// The weight of the box at a distance: 1 up to half a pixel, including only the upper end.
#[inline(always)]
fn flat(distance: f64) -> f64 {
    if distance > -0.5 && distance <= 0.5 { 1.0 } else { 0.0 }
}

/// sin(pi x) / (pi x).
fn sinc(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    let x = x * std::f64::consts::PI;
    libm::sin(x) / x
}

/// The weight of the Hamming window at a distance; its two numbers are float32.
fn hamming(distance: f64) -> f64 {
    let x = distance.abs();
    if x == 0.0 {
        return 1.0;
    }
    if x >= 1.0 {
        return 0.0;
    }
    let x = x * std::f64::consts::PI;
    libm::sin(x) / x * (f64::from(0.54f32) + f64::from(0.46f32) * libm::cos(x))
}

/// The weight of the Lanczos window at a distance.
fn lanczos(distance: f64) -> f64 {
    if (-3.0..3.0).contains(&distance) { sinc(distance) * sinc(distance / 3.0) } else { 0.0 }
}

/// Maximum number of taps of a short run, and number of output positions with short runs that are
/// computed at once.
const SHORT: usize = 8;
const LANES: usize = 8;

/// Maps output positions to the input: input positions are integers, and the centre of output
/// position i is `from + (i + 1/2) * scale`.
struct Scales {
    from: f64,
    scale: f64,
    /// Half the width of the filter.
    support: f64,
    /// The reciprocal of the widening factor.
    inverse: f64,
}

/// Weights in fixed point for some output positions of one axis, each with a run of input
/// positions.
///
/// Weights of 0 at the ends of a run are left out, since they do not change the sum.
#[derive(Debug, Clone, Default)]
pub(super) struct Coefficients {
    /// First input position and number of weights of each output position. Positions are relative
    /// to the first used one.
    pub(super) runs: Vec<(u32, u32)>,
    /// Weights times 2^22, `places` for each output position.
    weights: Vec<i32>,
    places: usize,
    /// Maximum number of weights of an output position.
    pub(super) taps_max: usize,
    /// Weights of one output position before rounding.
    exact: Vec<f64>,
}

impl Coefficients {
    /// Computes the weights for the output positions in `window`, when the interval `from..to` of
    /// `whole` input positions is mapped to `length` output positions. Returns the used input
    /// positions.
    pub(super) fn compute(
        &mut self,
        cpu: Cpu,
        filter: Filter,
        whole: u32,
        (from, to): (f32, f32),
        length: u32,
        window: Range<u32>,
    ) -> Range<u32> {
        let scale = f64::from(to - from) / f64::from(length);
        let filter_scale = if filter.antialias { scale.max(1.0) } else { 1.0 };
        let support = filter.support() * filter_scale;
        // A run is at most as long as the picture.
        self.places = (support.ceil() as usize * 2 + 1).min(whole as usize);
        self.taps_max = 1;
        self.runs.clear();
        if self.weights.len() < window.len() * self.places {
            self.weights.resize(window.len() * self.places, 0);
        }
        self.exact.resize(self.places, 0.0);
        let scales = Scales { from: f64::from(from), scale, support, inverse: 1.0 / filter_scale };
        match cpu {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Resizer::new` has checked that the machine has the instruction set.
            Cpu::Avx2 | Cpu::Avx512 => unsafe {
                self.fill_avx2(filter.interpolation, whole, &scales, window);
            },
            _ => self.fill_any(filter.interpolation, whole, &scales, window),
        }
        self.rebase()
    }

    /// The same operations in wider vectors, without fusing.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn fill_avx2(
        &mut self,
        interpolation: Interpolation,
        whole: u32,
        scales: &Scales,
        window: Range<u32>,
    ) {
        self.fill_any(interpolation, whole, scales, window);
    }

    /// Computes the runs and weights of the output positions in `window`.
    #[inline(always)]
    fn fill_any(
        &mut self,
        interpolation: Interpolation,
        whole: u32,
        scales: &Scales,
        window: Range<u32>,
    ) {
        match (interpolation, self.places <= SHORT) {
            (Interpolation::Bicubic, true) => self.fill_short(cubic, whole, scales, window),
            (Interpolation::Bicubic, false) => self.fill(cubic, whole, scales, window),
            (Interpolation::Bilinear, true) => self.fill_short(triangle, whole, scales, window),
            (Interpolation::Bilinear, false) => self.fill(triangle, whole, scales, window),
            (Interpolation::Box, _) => self.fill(flat, whole, scales, window),
            (Interpolation::Hamming, _) => self.fill(hamming, whole, scales, window),
            (Interpolation::Lanczos, _) => self.fill(lanczos, whole, scales, window),
            (Interpolation::Nearest, _) => panic!("the nearest pixel has no weights"),
        }
    }

    /// Like `fill_any`, for runs of any length.
    #[inline(always)]
    fn fill(
        &mut self,
        filter: impl Fn(f64) -> f64,
        whole: u32,
        &Scales { from, scale, support, inverse }: &Scales,
        window: Range<u32>,
    ) {
        for (output, weights) in window.zip(self.weights.chunks_exact_mut(self.places)) {
            let center = from + (f64::from(output) + 0.5) * scale;
            // Casts truncate towards zero and saturate, as required here.
            let first = ((center - support + 0.5) as u32).min(whole - 1);
            let end = ((center + support + 0.5) as u32).min(whole);
            let exact = &mut self.exact[..end.saturating_sub(first) as usize];
            let mut sum = 0.0;
            for (tap, exact) in (first..).zip(exact.iter_mut()) {
                *exact = filter((f64::from(tap) - center + 0.5) * inverse);
                sum += *exact;
            }
            // The division has no effect if the sum is 1.
            let sum = if sum == 0.0 { 1.0 } else { sum };
            // The run begins with the first weight that is not 0, and ends with the last one.
            let mut skipped = 0;
            let mut count = 0;
            for (tap, exact) in exact.iter().enumerate() {
                let weight = fixed(*exact / sum);
                weights[tap - skipped] = weight;
                if weight != 0 {
                    count = tap - skipped + 1;
                } else if count == 0 {
                    skipped = tap + 1;
                }
            }
            self.taps_max = self.taps_max.max(count);
            self.runs.push((first + skipped as u32, count as u32));
        }
    }

    /// Like `fill` for short runs, computing several output positions at once without branches.
    #[inline(always)]
    fn fill_short(
        &mut self,
        filter: impl Fn(f64) -> f64,
        whole: u32,
        &Scales { from, scale, support, inverse }: &Scales,
        window: Range<u32>,
    ) {
        for (block, weights) in self.weights.chunks_mut(LANES * self.places).enumerate() {
            let output = window.start + (block * LANES) as u32;
            if output >= window.end {
                break;
            }
            let mut centers = [0.0; LANES];
            let mut runs = [(0, 0); LANES];
            for (lane, (center, run)) in centers.iter_mut().zip(&mut runs).enumerate() {
                *center = from + (f64::from(output + lane as u32) + 0.5) * scale;
                let first = ((*center - support + 0.5) as u32).min(whole - 1);
                let end = ((*center + support + 0.5) as u32).min(whole);
                *run = (first, end.saturating_sub(first));
            }
            let taps = runs.iter().map(|run| run.1).max().unwrap_or(0);
            let mut exact = [[0.0; LANES]; SHORT];
            let mut sums = [0.0; LANES];
            for (tap, exact) in (0..taps).zip(&mut exact) {
                for lane in 0..LANES {
                    let (first, count) = runs[lane];
                    let position = f64::from(first) + f64::from(tap);
                    let weight = filter((position - centers[lane] + 0.5) * inverse);
                    exact[lane] = if tap < count { weight } else { 0.0 };
                    sums[lane] += exact[lane];
                }
            }
            let sums = sums.map(|sum| if sum == 0.0 { 1.0 } else { sum });
            let mut all = [[0; LANES]; SHORT];
            for (all, exact) in all.iter_mut().zip(&exact).take(taps as usize) {
                for lane in 0..LANES {
                    all[lane] = fixed(exact[lane] / sums[lane]);
                }
            }
            let lanes = LANES.min((window.end - output) as usize);
            for (lane, weights) in weights.chunks_exact_mut(self.places).take(lanes).enumerate() {
                let (first, count) = runs[lane];
                let used = |tap: &usize| all[*tap][lane] != 0;
                let from = (0..count as usize).find(used).unwrap_or(count as usize);
                let to = (from..count as usize).rev().find(used).map_or(from, |tap| tap + 1);
                for (weight, all) in weights.iter_mut().zip(&all[from..to]) {
                    *weight = all[lane];
                }
                self.taps_max = self.taps_max.max(to - from);
                self.runs.push((first + from as u32, (to - from) as u32));
            }
        }
    }

    /// Makes input positions relative to the first used one.
    fn rebase(&mut self) -> Range<u32> {
        let used = || self.runs.iter().filter(|run| run.1 > 0);
        let first = used().map(|run| run.0).min().unwrap_or(0);
        let end = used().map(|run| run.0 + run.1).max().unwrap_or(1);
        for run in &mut self.runs {
            run.0 = if run.1 == 0 { 0 } else { run.0 - first };
        }
        first..end
    }

    /// The run of an output position of the window: first input position and weights.
    #[inline]
    pub(super) fn run(&self, output: usize) -> (usize, &[i32]) {
        let (first, count) = self.runs[output];
        let weights = &self.weights[output * self.places..];
        (first as usize, &weights[..count as usize])
    }
}

/// The first input position and the unrounded weights of each output position in `window`.
pub(super) fn exact(
    filter: Filter,
    whole: u32,
    (from, to): (f32, f32),
    length: u32,
    window: Range<u32>,
) -> Vec<(usize, Vec<f64>)> {
    let shape: fn(f64) -> f64 = match filter.interpolation {
        Interpolation::Bilinear => triangle,
        Interpolation::Bicubic => cubic,
        Interpolation::Box => flat,
        Interpolation::Hamming => hamming,
        Interpolation::Lanczos => lanczos,
        Interpolation::Nearest => panic!("the nearest pixel has no weights"),
    };
    let scale = f64::from(to - from) / f64::from(length);
    let filter_scale = if filter.antialias { scale.max(1.0) } else { 1.0 };
    let (support, inverse) = (filter.support() * filter_scale, 1.0 / filter_scale);
    let run = |output: u32| {
        let center = f64::from(from) + (f64::from(output) + 0.5) * scale;
        // Casts truncate towards zero and saturate, as required here.
        let first = ((center - support + 0.5) as u32).min(whole - 1);
        let end = ((center + support + 0.5) as u32).min(whole);
        let taps = (first..end).map(|tap| shape((f64::from(tap) - center + 0.5) * inverse));
        let mut weights: Vec<f64> = taps.collect();
        let sum: f64 = weights.iter().fold(0.0, |sum, weight| sum + weight);
        if sum != 0.0 {
            weights.iter_mut().for_each(|weight| *weight /= sum);
        }
        (first as usize, weights)
    };
    window.map(run).collect()
}

/// Limit of a weight in fixed point, far above that of any filter, which still fits into the
/// vectors.
pub(super) const WEIGHT_MAX: i32 = (1 << 26) - 1;

/// A weight in fixed point, rounded to nearest, halves away from zero.
#[inline(always)]
fn fixed(weight: f64) -> i32 {
    let scaled = weight * f64::from(1 << PRECISION_BITS);
    let rounded = (if weight < 0.0 { scaled - 0.5 } else { scaled + 0.5 }) as i32;
    rounded.clamp(-WEIGHT_MAX, WEIGHT_MAX)
}

/// Marks a position outside the picture, which remains black.
pub(super) const OUTSIDE: u32 = u32::MAX;

/// The input position of the nearest pixel for each output position; [`OUTSIDE`] if there is none.
///
/// Positions are accumulated step by step in float64 like in Pillow, so that the roundings agree.
/// They are relative to the first used one. Returns the used positions.
pub(super) fn pick(
    picks: &mut Vec<u32>,
    whole: u32,
    (from, to): (f32, f32),
    length: u32,
    window: Range<u32>,
) -> Range<u32> {
    let scale = f64::from(to - from) / f64::from(length);
    let mut position = f64::from(from) + scale * 0.5;
    picks.clear();
    for output in 0..window.end {
        if output >= window.start {
            let inside = position >= 0.0 && position < f64::from(whole);
            picks.push(if inside { position as u32 } else { OUTSIDE });
        }
        position += scale;
    }
    let used = || picks.iter().copied().filter(|pick| *pick != OUTSIDE);
    let (first, last) = (used().min().unwrap_or(0), used().max().unwrap_or(0));
    for pick in picks.iter_mut().filter(|pick| **pick != OUTSIDE) {
        *pick -= first;
    }
    first..last + 1
}
