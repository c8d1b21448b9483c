//! The luma of a pixel, as Pillow's `convert("L")` computes it.

use crate::vector::{Change, Kernel};

/// Weights of red, green and blue in 1/65536.
const WEIGHTS: [u32; 3] = [19595, 38470, 7471];

/// The weighted sum of a pixel's channels, rounded to the nearest integer.
#[inline(always)]
pub(crate) fn luma(red: u8, green: u8, blue: u8) -> u8 {
    let sum = WEIGHTS[0] * u32::from(red) + WEIGHTS[1] * u32::from(green);
    // At most 65536 * 255 + 32768, whose upper half fits into a byte.
    ((sum + WEIGHTS[2] * u32::from(blue) + 0x8000) >> 16) as u8
}

/// Sets every channel of a pixel to its luma.
#[derive(Clone, Copy)]
pub(crate) struct MakeGrey;

impl Change for MakeGrey {
    #[inline(always)]
    fn pixel(&self, [red, green, blue]: [u8; 3]) -> [u8; 3] {
        [luma(red, green, blue); 3]
    }
}

/// The sum of the luma of the pixels of a row.
pub(crate) struct SumLuma<'a>(pub(crate) [&'a [u8]; 3]);

/// Number of pixels per partial sum, which easily fits into 32 bits.
const SUMMED: usize = 1 << 12;

impl Kernel for SumLuma<'_> {
    type Output = u64;

    #[inline(always)]
    fn compute(self) -> u64 {
        let [red, green, blue] = self.0;
        let mut whole = 0;
        for first in (0..red.len()).step_by(SUMMED) {
            let count = SUMMED.min(red.len() - first);
            let [red, green, blue] =
                [&red[first..][..count], &green[first..][..count], &blue[first..][..count]];
            let mut sum = 0;
            for index in 0..count {
                sum += u32::from(luma(red[index], green[index], blue[index]));
            }
            whole += u64::from(sum);
        }
        whole
    }
}
