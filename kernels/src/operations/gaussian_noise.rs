//! Executes `gaussian_noise`.

use super::PixelOperation;
use crate::Error;
use crate::picture_program::PictureChange;
use crate::pixels::Pixels;
use crate::random::{Field, normals};
use crate::vector::{Kernel, run};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::GaussianNoise;

impl PixelOperation for GaussianNoise {
    fn is_applied(&self, _draws: &mut Draws) -> bool {
        true
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        let Self { mean, sigma, clip } = *self;
        let (mean, sigma) = (mean * 255.0, sigma * 255.0);
        let field = Field::drawn(draws);
        let (cpu, is_grey) = (pixels.cpu(), pixels.is_grey());
        if let Some(recording) = pixels.recording() {
            let (key, is_clipped) = (field.key(), clip);
            recording.push(PictureChange::Noise { key, mean, sigma, is_clipped, is_grey });
            return Ok(());
        }
        let width = pixels.size().0 as usize;
        let (mut words, mut numbers) = (vec![0; width], vec![0.0; width]);
        let mut y = 0;
        pixels.each_row(|planes| {
            for (channel, row) in planes.into_iter().enumerate() {
                if channel == 0 || !is_grey {
                    field.row(cpu, channel, y, &mut words);
                    normals(cpu, &words, &mut numbers);
                }
                run(cpu, Add { row, numbers: &numbers, mean, sigma, clip });
            }
            y += 1;
        })
    }
}

/// Scales standard normal numbers to a mean and deviation, truncates them, and adds them to a row.
struct Add<'a> {
    row: &'a mut [u8],
    numbers: &'a [f64],
    mean: f64,
    sigma: f64,
    clip: bool,
}

impl Kernel for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn compute(self) {
        let Self { row, numbers, mean, sigma, clip } = self;
        for (value, number) in row.iter_mut().zip(numbers) {
            // The cast truncates.
            let sum = i32::from(*value) + (mean + number * sigma) as i32;
            // The lower eight bits are the value modulo 256.
            *value = if clip { sum.clamp(0, 255) as u8 } else { sum as u8 };
        }
    }
}
