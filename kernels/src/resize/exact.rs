//! Resizes 16-bit and float numbers like Pillow's `Image.resize` in modes `I;16` and `F`, bit for
//! bit, a whole channel at a time.
//!
//! Weights and sums are float64, each sum from the first tap to the last; each of the two passes
//! rounds its results to the type. Source: the 16-bit and 32-bit passes of Pillow's `Resample.c`.

use super::coefficients::exact;
use super::{Resize, vertical_first};

/// The rounding of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// To the nearest integer in 0 to 65535, halves away from zero.
    Word,
    /// To the nearest float32.
    Float,
}

impl Rounding {
    fn round(self, sum: f64) -> f32 {
        match self {
            Self::Word => {
                let whole = (sum.abs() + 0.5).floor();
                (if sum < 0.0 { -whole } else { whole }).clamp(0.0, 65535.0) as f32
            }
            Self::Float => sum as f32,
        }
    }
}

/// For each requested position of an axis, the first position of its run, and the weights.
type Runs = Vec<(usize, Vec<f64>)>;

/// The requested window of a resized channel, from all of its numbers, row by row.
///
/// `row` is called before each row of work and may fail.
pub(crate) fn resize_numbers<E>(
    resize: &Resize,
    numbers: &[f32],
    rounding: Rounding,
    row: &mut dyn FnMut() -> Result<(), E>,
) -> Result<Vec<f32>, E> {
    let [across, down] = resize.spans();
    let runs = |span: &super::axis::Span| -> Runs {
        if span.length == span.whole {
            // The axis does not change.
            return span.window.clone().map(|at| (at as usize, vec![])).collect();
        }
        exact(resize.filter, span.whole, span.source, span.length, span.window.clone())
    };
    let (across, down) = (runs(&across), runs(&down));
    let width = resize.from_width as usize;
    if vertical_first(resize) {
        let numbers = pass_down(numbers, width, &down, rounding, row)?;
        return pass_across(&numbers, width, &across, rounding, row);
    }
    let numbers = pass_across(numbers, width, &across, rounding, row)?;
    pass_down(&numbers, across.len(), &down, rounding, row)
}

fn pass_across<E>(
    numbers: &[f32],
    width: usize,
    runs: &Runs,
    rounding: Rounding,
    row: &mut dyn FnMut() -> Result<(), E>,
) -> Result<Vec<f32>, E> {
    let mut out = Vec::with_capacity(numbers.len() / width * runs.len());
    for from in numbers.chunks_exact(width) {
        row()?;
        out.extend(runs.iter().map(|(first, weights)| {
            if weights.is_empty() {
                return from[*first];
            }
            let taps = from[*first..].iter().zip(weights);
            rounding
                .round(taps.fold(0.0, |sum, (number, weight)| sum + f64::from(*number) * weight))
        }));
    }
    Ok(out)
}

fn pass_down<E>(
    numbers: &[f32],
    width: usize,
    runs: &Runs,
    rounding: Rounding,
    row: &mut dyn FnMut() -> Result<(), E>,
) -> Result<Vec<f32>, E> {
    let mut out = Vec::with_capacity(width * runs.len());
    let mut sums = vec![0.0; width];
    for (first, weights) in runs {
        row()?;
        if weights.is_empty() {
            out.extend_from_slice(&numbers[first * width..][..width]);
            continue;
        }
        sums.fill(0.0);
        for (from, weight) in numbers[first * width..].chunks_exact(width).zip(weights) {
            for (sum, number) in sums.iter_mut().zip(from) {
                *sum += f64::from(*number) * weight;
            }
        }
        out.extend(sums.iter().map(|sum| rounding.round(*sum)));
    }
    Ok(out)
}
