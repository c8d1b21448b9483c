//! Computes the positions of crops; the resizer or writer moves the pixels.

use crate::Region;
use meetpoint_format::random::Draws;

/// Attempts to find a random crop before the central one is used.
const TRIES: usize = 10;

/// The region of `torchvision.transforms.v2.RandomResizedCrop` in a picture of `width` x `height`.
///
/// [`meetpoint_format::recipe::Operation::RandomResizedCrop`] gives the algorithm and the order of
/// the draws. Logarithm and exponential are those of the `libm` crate, in pure Rust, since C
/// libraries differ in the last bit, and with them the crop could differ between a host and a
/// device.
pub fn random_region(
    draws: &mut Draws,
    width: u32,
    height: u32,
    scale: (f64, f64),
    ratio: (f64, f64),
) -> Region {
    let area = f64::from(height) * f64::from(width);
    let (log_low, log_high) = (libm::log(ratio.0), libm::log(ratio.1));
    for _ in 0..TRIES {
        let target = area * draws.uniform_in(scale.0, scale.1);
        let aspect = libm::exp(draws.uniform_in(log_low, log_high));
        let w = (target * aspect).sqrt().round_ties_even();
        let h = (target / aspect).sqrt().round_ties_even();
        if 0.0 < w && w <= f64::from(width) && 0.0 < h && h <= f64::from(height) {
            let (w, h) = (w as u32, h as u32);
            let y = draws.up_to(height - h);
            let x = draws.up_to(width - w);
            return Region { x, y, width: w, height: h };
        }
    }
    central_region(width, height, ratio)
}

/// The largest central region with an aspect inside the bounds.
fn central_region(width: u32, height: u32, ratio: (f64, f64)) -> Region {
    let aspect = f64::from(width) / f64::from(height);
    // The cast saturates.
    let side = |exact: f64, whole: u32| (exact.round_ties_even() as u32).clamp(1, whole);
    let (w, h) = if aspect < ratio.0 {
        (width, side(f64::from(width) / ratio.0, height))
    } else if aspect > ratio.1 {
        (side(f64::from(height) * ratio.1, width), height)
    } else {
        (width, height)
    };
    Region { x: (width - w) / 2, y: (height - h) / 2, width: w, height: h }
}

/// One axis of a central crop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CenterSpan {
    /// First retained input position.
    pub from: u32,
    /// Number of retained input positions.
    pub kept: u32,
    /// Number of black positions before them.
    pub before: u32,
    /// Number of black positions after them.
    pub after: u32,
}

impl CenterSpan {
    /// Number of positions of the result.
    pub fn total(self) -> u32 {
        self.before + self.kept + self.after
    }
}

/// One axis of `torchvision.transforms.v2.CenterCrop`: `wanted` of `length` positions.
///
/// The crop begins at Python's `round((length - wanted) / 2)`, halves to even; if positions are
/// missing, half of them, rounded down, are added before.
pub fn center_span(length: u32, wanted: u32) -> CenterSpan {
    if let Some(missing) = wanted.checked_sub(length) {
        let before = missing / 2;
        return CenterSpan { from: 0, kept: length, before, after: missing - before };
    }
    let extra = length - wanted;
    let half = extra / 2;
    // For an odd `extra`, the half is rounded up from an odd integer and down from an even one.
    let from = half + (extra & half & 1);
    CenterSpan { from, kept: wanted, before: 0, after: 0 }
}

#[cfg(test)]
mod tests {
    use super::{CenterSpan, center_span, random_region};
    use crate::golden;
    use meetpoint_format::random::{DrawKey, Draws};
    use proptest::prelude::*;

    #[test]
    fn random_regions_equal_those_computed_after_torchvision() {
        for (words, regions) in golden::lines(include_str!("../tests/golden/crops.txt")) {
            let number: u32 = golden::number(words[0]);
            let (width, height) = (golden::number(words[1]), golden::number(words[2]));
            let [a, b, c, d] = [3, 4, 5, 6].map(|at| golden::number::<f64>(words[at]));
            for (sample, expected) in (0..).zip(regions) {
                let seed = 11 + (u64::from(number) << 40);
                let sample = sample + (u64::from(number) << 33);
                let key = DrawKey { seed, epoch: number, sample, operation: number };
                let got = random_region(&mut Draws::new(key), width, height, (a, b), (c, d));
                let got = format!("{},{},{},{}", got.x, got.y, got.width, got.height);
                assert_eq!(got, expected, "{words:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_random_region_is_inside_the_picture(
            seed: u64, width in 1..70_000u32, height in 1..70_000u32,
            scale in (1e-9..1.0f64, 1e-9..1.0f64), ratio in (1e-6..1e6f64, 1e-6..1e6f64),
        ) {
            let sorted = |(a, b): (f64, f64)| (a.min(b), a.max(b));
            let mut draws = Draws::new(DrawKey { seed, epoch: 0, sample: 0, operation: 1 });
            let got = random_region(&mut draws, width, height, sorted(scale), sorted(ratio));
            prop_assert!(got.width >= 1 && got.x + got.width <= width, "{got:?}");
            prop_assert!(got.height >= 1 && got.y + got.height <= height, "{got:?}");
        }
    }

    /// Python 3: `[int(round((7 - wanted) / 2.0)) for wanted in range(1, 8)]` and so on.
    #[test]
    fn a_central_crop_begins_where_python_rounds_to() {
        let begins = |length: u32, wanted: std::ops::RangeInclusive<u32>| {
            wanted.map(|wanted| center_span(length, wanted).from).collect::<Vec<_>>()
        };
        assert_eq!(begins(7, 1..=7), [3, 2, 2, 2, 1, 0, 0]);
        assert_eq!(begins(8, 1..=8), [4, 3, 2, 2, 2, 1, 0, 0]);
    }

    #[test]
    fn what_is_missing_for_a_central_crop_is_put_around() {
        let span = |from, kept, before, after| CenterSpan { from, kept, before, after };
        assert_eq!(center_span(4, 4), span(0, 4, 0, 0));
        assert_eq!(center_span(4, 5), span(0, 4, 0, 1));
        assert_eq!(center_span(4, 6), span(0, 4, 1, 1));
        assert_eq!(center_span(1, 8), span(0, 1, 3, 4));
        assert_eq!(center_span(1, 8).total(), 8);
    }
}
