//! Executes `aug_mix`.

use super::PixelOperation;
use super::policy::{Space, Step, Style, is_negative};
use crate::Error;
use crate::picture_program::PictureChange;
use crate::pixels::Pixels;
use crate::random::dirichlet;
use crate::warp::packed_bytes;
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::AugMix;

/// Number of magnitudes.
const BINS: u32 = 10;

/// The operations in the order of their numbers; the last four are those of `all_ops`.
const STEPS: [Step; 13] = [
    Step::ShearX,
    Step::ShearY,
    Step::TranslateX,
    Step::TranslateY,
    Step::Rotate,
    Step::Posterize,
    Step::Solarize,
    Step::AutoContrast,
    Step::Equalize,
    Step::Brightness,
    Step::Color,
    Step::Contrast,
    Step::Sharpness,
];

/// Number of the last operation without `all_ops`.
const LAST_OF_SOME: u32 = 8;

/// Number of the last operation.
const LAST: u32 = 12;

impl PixelOperation for AugMix {
    fn is_applied(&self, _draws: &mut Draws) -> bool {
        true
    }

    /// The original picture, its replacement, and the sum in float32.
    fn copies(&self) -> u64 {
        1 + 1 + 4
    }

    fn buffer_bytes(&self, size: (u32, u32)) -> u64 {
        packed_bytes(size)
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        let shares = dirichlet(self.alpha, 2, draws);
        let weights = dirichlet(self.alpha, self.mixture_width, draws);
        let share = shares[0] as f32;
        let weights: Vec<f32> = weights.iter().map(|weight| (weight * shares[1]) as f32).collect();
        if pixels.recording().is_some() {
            return record(self, (share, &weights), draws, pixels);
        }
        let original = copied(pixels)?;
        let mut sum: Vec<f32> = original.iter().map(|value| share * f32::from(*value)).collect();
        for weight in weights {
            restore(&original, pixels)?;
            chain(self, draws, pixels)?;
            let mut sums = sum.iter_mut();
            each_value(pixels, |value| {
                let sum = sums.next().expect("there is a sum for each value");
                *sum += weight * f32::from(*value);
            })?;
        }
        let mut sums = sum.iter();
        // The cast truncates.
        each_value(pixels, |value| {
            *value = *sums.next().expect("there is a sum for each value") as u8;
        })
    }
}

/// Changes a picture by the operations of one chain.
fn chain(mix: &AugMix, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
    let style = Style { interpolation: mix.interpolation, fill: mix.fill };
    let depth = if mix.chain_depth == 0 { 1 + draws.up_to(2) } else { mix.chain_depth };
    for _ in 0..depth {
        let step = STEPS[draws.up_to(if mix.all_ops { LAST } else { LAST_OF_SOME }) as usize];
        let index = if step.has_magnitude() { draws.up_to(mix.severity - 1) } else { 0 };
        let magnitude = step.magnitude(Space::Mix, index, BINS, pixels.size());
        let is_negative = step.is_signed() && is_negative(draws);
        step.apply(if is_negative { -magnitude } else { magnitude }, style, pixels)?;
    }
    Ok(())
}

/// Records the operation, with the weights of the original and of the chains.
fn record(
    mix: &AugMix,
    (share, weights): (f32, &[f32]),
    draws: &mut Draws,
    pixels: &mut Pixels<'_>,
) -> Result<(), Error> {
    let push = |pixels: &mut Pixels<'_>, change| {
        if let Some(recording) = pixels.recording() {
            recording.push(change);
        }
    };
    push(pixels, PictureChange::SumBegin { weight: share });
    for (index, &weight) in weights.iter().enumerate() {
        chain(mix, draws, pixels)?;
        push(pixels, PictureChange::SumAdd { weight, is_last: index + 1 == weights.len() });
    }
    Ok(())
}

/// Passes each value to a function, row by row and channel by channel.
fn each_value(pixels: &mut Pixels<'_>, mut each: impl FnMut(&mut u8)) -> Result<(), Error> {
    pixels.each_row(|planes| planes.into_iter().flatten().for_each(&mut each))
}

/// The values of a picture.
fn copied(pixels: &mut Pixels<'_>) -> Result<Vec<u8>, Error> {
    let mut values = Vec::with_capacity(3 * pixels.count() as usize);
    each_value(pixels, |value| values.push(*value))?;
    Ok(values)
}

/// Restores the original values of a picture.
fn restore(original: &[u8], pixels: &mut Pixels<'_>) -> Result<(), Error> {
    let mut values = original.iter();
    each_value(pixels, |value| *value = *values.next().expect("there is each value"))
}

#[cfg(test)]
mod tests {
    use crate::random::{dirichlet, gamma};
    use meetpoint_format::random::{DrawKey, Draws};

    #[test]
    fn weights_are_equal_where_all_gamma_numbers_are_0() {
        let draws = |sample| Draws::new(DrawKey { seed: 5, epoch: 0, sample, operation: 1 });
        let is_zero = |sample: &u64| gamma(0.01, &mut draws(*sample)) == 0.0;
        let zeros: Vec<u64> = (0..20_000).filter(is_zero).collect();
        assert!(!zeros.is_empty());
        for sample in zeros {
            assert_eq!(dirichlet(0.01, 1, &mut draws(sample)), [1.0], "{sample}");
        }
        for sample in 0..1000 {
            let sum: f64 = dirichlet(0.01, 3, &mut draws(sample)).iter().sum();
            assert!((sum - 1.0).abs() < 1e-12, "{sample} {sum}");
        }
    }
}
