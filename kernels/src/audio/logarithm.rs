//! The logarithm of every value, in float32.

use crate::series::{Kernel, Pause, Series, SeriesChange, SeriesShape, execute};
use crate::{Cpu, Error};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{Log, LogBase};

/// Values computed between two calls of `pause`.
const PIECE: usize = 1 << 14;

/// `factor * ln(max(x, floor))`.
#[derive(Debug)]
pub(crate) struct Logarithm {
    floor: f32,
    factor: f32,
    cpu: Cpu,
}

/// Values to replace by their logarithms.
struct Piece<'a> {
    values: &'a mut [f32],
    floor: f32,
    factor: f32,
}

impl Kernel for Piece<'_> {
    #[inline(always)]
    fn run(&mut self) {
        let Self { floor, factor, .. } = *self;
        for value in &mut *self.values {
            // A NaN becomes the floor.
            *value = factor * natural(value.max(floor).min(f32::MAX));
        }
    }
}

impl Logarithm {
    pub(crate) fn new(operation: &Log, cpu: Cpu) -> Self {
        let natural = match operation.base {
            LogBase::E => 1.0,
            LogBase::Ten => std::f64::consts::LN_10,
        };
        let factor = (operation.multiplier / natural) as f32;
        Self { floor: operation.floor as f32, factor, cpu }
    }
}

impl SeriesChange for Logarithm {
    fn shape(&self, input: SeriesShape) -> Result<SeriesShape, Error> {
        Ok(input)
    }

    fn apply(
        &mut self,
        _draws: &mut Draws,
        values: &mut Series,
        _next: &mut Series,
        pause: Pause<'_>,
    ) -> Result<(), Error> {
        let Self { floor, factor, cpu } = *self;
        for values in values.values.chunks_mut(PIECE) {
            execute(cpu, &mut Piece { values, floor, factor });
            pause()?;
        }
        Ok(())
    }
}

/// The natural logarithm of a normal positive number, with an error below 1 unit in the last place.
///
/// The method is that of fdlibm: x = 2^k (1 + f) with 1 + f from sqrt(1/2) to sqrt(2), and a
/// polynomial in s = f / (2 + f). It has no branch, so that loops over it are vectorised.
#[inline(always)]
fn natural(x: f32) -> f32 {
    const LN2_HIGH: f32 = 6.931_381e-1;
    const LN2_LOW: f32 = 9.058_001e-6;
    const ODD: [f32; 2] = [0.666_666_6, 0.284_987_87];
    const EVEN: [f32; 2] = [0.400_009_72, 0.242_790_79];
    /// Bits of sqrt(1/2).
    const ROOT: u32 = 0x3f35_04f3;
    let shifted = x.to_bits().wrapping_add(0x3f80_0000 - ROOT);
    let exponent = (shifted >> 23) as i32 - 0x7f;
    let f = f32::from_bits((shifted & 0x007f_ffff) + ROOT) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w * (EVEN[0] + w * EVEN[1]);
    let odd = z * (ODD[0] + w * ODD[1]);
    let half = 0.5 * f * f;
    let k = exponent as f32;
    s * (half + (even + odd)) + k * LN2_LOW - half + f + k * LN2_HIGH
}

#[cfg(test)]
mod tests {
    use super::natural;

    #[test]
    fn the_logarithm_is_right_to_the_last_digit_but_one() {
        let mut x = f32::MIN_POSITIVE;
        let mut worst = 0.0_f64;
        while x < 1e38 {
            let exact = libm::log(f64::from(x));
            let got = natural(x);
            let unit =
                f64::from(got.abs().next_up() - got.abs()).max(f64::from(f32::EPSILON) / 16.0);
            worst = worst.max((f64::from(got) - exact).abs() / unit);
            x *= 1.000_37;
        }
        assert!(worst < 2.0, "{worst}");
        assert_eq!(natural(1.0).to_bits(), 0);
    }
}
