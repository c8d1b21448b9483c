//! `gaussian_blur`: torchvision's blur by a kernel.

use super::Data;
use crate::recipe::SampleType;
use crate::recipe::declaration::{
    Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
    RandomParameter, WholeSize, numbers,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.GaussianBlur`, within 1 of its uint8 kernel, with sigma drawn from
/// `uniform_in(sigma.0, sigma.1)`; or crumpets' `add_blur`, which is OpenCV's `GaussianBlur`, with
/// sigma drawn from `uniform_in(sigma_relative.0, sigma_relative.1)` times the picture's width.
///
/// The weight at a distance of d is exp(-d * d / (2 * sigma * sigma)), `exp` as in musl's libm,
/// divided by the sum of all, in float64, and rounded to float32. Rows are blurred first: the
/// products of weights and values are summed from left to right in float32; then columns, from top
/// to bottom, and the sum is rounded to the nearest whole number, halves to even. Beyond the border
/// the picture is mirrored at its first and last pixel, as often as it takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GaussianBlur {
    /// Height and width of the kernel in pixels, both odd; `None`: as [`Self::kernel_of`] says.
    pub kernel_size: Option<(u32, u32)>,
    /// Bounds of the standard deviation in pixels.
    pub sigma: (f64, f64),
    /// Bounds of the standard deviation as a share of the picture's width, in place of `sigma`.
    pub sigma_relative: Option<(f64, f64)>,
}

impl GaussianBlur {
    /// Both sides of the kernel for a standard deviation in pixels, as in OpenCV for uint8: 6 *
    /// sigma + 1, rounded to the nearest whole number, halves to even, then to the odd number that
    /// is not below it; at most `KERNEL_MAX`.
    pub fn kernel_of(sigma: f64) -> (u32, u32) {
        // The cast saturates.
        let side = ((6.0 * sigma + 1.0).round_ties_even() as u32 | 1).min(KERNEL_MAX);
        (side, side)
    }
}

/// Bounds of the standard deviation in pixels where none are given.
const SIGMA: [f64; 2] = [0.1, 2.0];

/// Longest side of a kernel.
const KERNEL_MAX: u32 = 999;

impl Data for GaussianBlur {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "gaussian_blur",
        about: "blurs by a Gaussian kernel of a random deviation",
        phase: Phase::Pixels,
        targets: OnTargets::Leaves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[RandomParameter { name: "sigma", distribution: "uniform in `sigma`" }],
        keys: &[
            Key::absent(
                "kernel_size",
                KeyType::Size { whole: WholeSize::Square, least: 1, most: KERNEL_MAX },
                "odd, both sides of the kernel in pixels, or height and width; none: 6 standard \
                 deviations and 1, rounded up to an odd number",
            ),
            Key::optional(
                "sigma",
                KeyType::Interval {
                    bounds: Bounds { least: 0.0, is_least_excluded: true, most: None },
                    middle: None,
                },
                numbers(&SIGMA),
                "the standard deviation in pixels",
            ),
            Key::absent(
                "sigma_relative",
                KeyType::Interval {
                    bounds: Bounds { least: 0.0, is_least_excluded: true, most: Some(1.0) },
                    middle: None,
                },
                "the standard deviation as a share of the width, in place of `sigma`",
            ),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            kernel_size: values.optional_sides("kernel_size"),
            sigma: values.interval("sigma"),
            sigma_relative: values.optional_pair("sigma_relative"),
        }
    }

    fn values(&self) -> Vec<Value> {
        let kernel_size = self.kernel_size;
        vec![
            kernel_size.map_or(Value::Absent, |(height, width)| Value::Sides([height, width])),
            self.sigma.into(),
            self.sigma_relative.into(),
        ]
    }

    fn follow(&self, _sample: &mut SampleType) -> Result<(), Fault> {
        if self.sigma_relative.is_some() && [self.sigma.0, self.sigma.1] != SIGMA {
            let problem = "is set, and so is `sigma`";
            return Err(Fault::of_value("sigma_relative", problem, "leave one of them out"));
        }
        let Some((height, width)) = self.kernel_size else { return Ok(()) };
        match [height, width].into_iter().find(|side| side % 2 == 0) {
            None => Ok(()),
            Some(side) => {
                let problem = format!("holds {side}, which is even");
                Err(Fault::of_value("kernel_size", problem, "odd numbers"))
            }
        }
    }
}
