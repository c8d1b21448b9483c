//! `gaussian_blur`: torchvision's blur by a kernel.

use super::Data;
use crate::recipe::SampleType;
use crate::recipe::declaration::{
    Bounds, Declaration, Gives, Key, KeyType, Needs, OnTargets, Phase, RandomParameter, Takes,
    WholeSize, numbers,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.GaussianBlur`, within 1 of its uint8 kernel, with sigma drawn from
/// `uniform_in(sigma.0, sigma.1)`.
///
/// The weight at a distance of d is exp(-d * d / (2 * sigma * sigma)), `exp` as in musl's libm,
/// divided by the sum of all, in float64, and rounded to float32. Rows are blurred first: the
/// products of weights and values are summed from left to right in float32; then columns, from top
/// to bottom, and the sum is rounded to the nearest whole number, halves to even. Beyond the border
/// the picture is mirrored at its first and last pixel, as often as it takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GaussianBlur {
    /// Height and width of the kernel in pixels, both odd.
    pub kernel_size: (u32, u32),
    /// Bounds of the standard deviation in pixels.
    pub sigma: (f64, f64),
}

/// Longest side of a kernel.
const KERNEL_MAX: u32 = 999;

impl Data for GaussianBlur {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "gaussian_blur",
        about: "blurs by a Gaussian kernel of a random deviation",
        phase: Phase::Pixels,
        targets: OnTargets::Leaves,
        takes: &[Takes::IMAGE],
        gives: Gives::IMAGE,
        needs: Needs::All,
        random: &[RandomParameter { name: "sigma", distribution: "uniform in `sigma`" }],
        keys: &[
            Key::required(
                "kernel_size",
                KeyType::Size { whole: WholeSize::Square, least: 1, most: KERNEL_MAX },
                Value::Whole(3),
                "odd, both sides of the kernel in pixels, or height and width",
            ),
            Key::optional(
                "sigma",
                KeyType::Interval {
                    bounds: Bounds { least: 0.0, is_least_excluded: true, most: None },
                    middle: None,
                },
                numbers(&[0.1, 2.0]),
                "the standard deviation in pixels",
            ),
        ],
    };

    fn read(values: &Values) -> Self {
        Self { kernel_size: values.sides("kernel_size"), sigma: values.interval("sigma") }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Sides([self.kernel_size.0, self.kernel_size.1]), self.sigma.into()]
    }

    fn follow(&self, _sample: &mut SampleType) -> Result<(), Fault> {
        let (height, width) = self.kernel_size;
        match [height, width].into_iter().find(|side| side % 2 == 0) {
            None => Ok(()),
            Some(side) => {
                let problem = format!("holds {side}, which is even");
                Err(Fault::of_value("kernel_size", problem, "odd numbers"))
            }
        }
    }
}
