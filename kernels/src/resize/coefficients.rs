//! Which input pixels make an output pixel, and by how much: Pillow's `precompute_coeffs`.

use meetpoint_format::recipe::Interpolation;

/// Fraction bits of a weight: 32 less 8 for the value and 2 for overshoot, as in Pillow.
pub(super) const PRECISION_BITS: u32 = 32 - 8 - 2;

/// A filter: its shape, and whether it widens when shrinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filter {
    /// Shape.
    pub interpolation: Interpolation,
    /// True: it widens with the scale, as Pillow's always does. False: it keeps its width, so that
    /// each output pixel is interpolated from its 2 (bilinear) or 4 (bicubic) nearest input pixels
    /// a side. For bilinear these are the weights of `torch.nn.functional.interpolate`; PyTorch's
    /// bicubic has another shape (a = -0.75) and is not offered.
    pub antialias: bool,
}

impl Filter {
    /// Half the width, in input pixels at scale 1.
    fn support(self) -> f64 {
        match self.interpolation {
            Interpolation::Bilinear => 1.0,
            Interpolation::Bicubic => 2.0,
        }
    }

    /// The weight at a distance, with the operations in Pillow's order.
    fn weight(self, distance: f64) -> f64 {
        let x = distance.abs();
        match self.interpolation {
            Interpolation::Bilinear if x < 1.0 => 1.0 - x,
            Interpolation::Bicubic if x < 1.0 => ((CUBIC + 2.0) * x - (CUBIC + 3.0)) * x * x + 1.0,
            Interpolation::Bicubic if x < 2.0 => (((x - 5.0) * x + 8.0) * x - 4.0) * CUBIC,
            _ => 0.0,
        }
    }
}

/// The parameter a of the cubic convolution.
const CUBIC: f64 = -0.5;

/// One axis of a resize: for each output position a run of input positions with weights.
#[derive(Debug, Clone, Default)]
pub(super) struct Coefficients {
    /// First input position and number of weights of each output position.
    pub(super) runs: Vec<(u32, u32)>,
    /// Weights times 2^22, `taps_max` for each output position, unused ones 0.
    pub(super) weights: Vec<i32>,
    /// Places for weights of each output position.
    pub(super) taps_max: usize,
    /// Weights of one output position before rounding.
    exact: Vec<f64>,
}

impl Coefficients {
    /// Computes them for `length` output positions over the interval `from..to` of `whole` input
    /// positions.
    pub(super) fn compute(
        &mut self,
        filter: Filter,
        whole: u32,
        (from, to): (f32, f32),
        length: u32,
    ) {
        let scale = f64::from(to - from) / f64::from(length);
        let filter_scale = if filter.antialias { scale.max(1.0) } else { 1.0 };
        let support = filter.support() * filter_scale;
        let inverse = 1.0 / filter_scale;
        self.taps_max = support.ceil() as usize * 2 + 1;
        self.runs.clear();
        self.weights.clear();
        self.weights.resize(length as usize * self.taps_max, 0);
        for output in 0..length {
            let center = f64::from(from) + (f64::from(output) + 0.5) * scale;
            // Casts cut towards zero and stop at the ends of their range, as wanted here.
            let first = ((center - support + 0.5) as u32).min(whole - 1);
            let end = ((center + support + 0.5) as u32).min(whole);
            let count = end.saturating_sub(first);
            self.exact.clear();
            self.exact.extend(
                (0..count)
                    .map(|tap| filter.weight((f64::from(tap + first) - center + 0.5) * inverse)),
            );
            let sum: f64 = self.exact.iter().sum();
            let weights = &mut self.weights[output as usize * self.taps_max..];
            for (weight, exact) in weights.iter_mut().zip(&self.exact) {
                *weight = fixed(if sum == 0.0 { *exact } else { exact / sum });
            }
            self.runs.push((first, count));
        }
    }

    /// First input position that is used, and the one behind the last.
    pub(super) fn used(&self) -> (u32, u32) {
        let first = self.runs.iter().map(|run| run.0).min().unwrap_or(0);
        let end = self.runs.iter().map(|run| run.0 + run.1).max().unwrap_or(0);
        (first, end)
    }

    /// The run of an output position: first input position and weights.
    pub(super) fn run(&self, output: usize) -> (usize, &[i32]) {
        let (first, count) = self.runs[output];
        let weights = &self.weights[output * self.taps_max..];
        (first as usize, &weights[..count as usize])
    }
}

/// A weight in fixed point, rounded to nearest, halves away from zero.
fn fixed(weight: f64) -> i32 {
    let scaled = weight * f64::from(1 << PRECISION_BITS);
    (if weight < 0.0 { scaled - 0.5 } else { scaled + 0.5 }) as i32
}
