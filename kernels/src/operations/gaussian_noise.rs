//! Executes `gaussian_noise`.

use super::PixelOperation;
use crate::Error;
use crate::pixels::Pixels;
use crate::random::{Field, normal};
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
        let is_grey = pixels.is_grey();
        let mut words = vec![0; pixels.size().0 as usize];
        let mut y = 0;
        pixels.each_row(|planes| {
            for (channel, plane) in planes.into_iter().enumerate() {
                if channel == 0 || !is_grey {
                    field.row(channel, y, &mut words);
                }
                for (value, word) in plane.iter_mut().zip(&words) {
                    // The cast truncates.
                    let sum = i32::from(*value) + (mean + normal(*word) * sigma) as i32;
                    *value = if clip { sum.clamp(0, 255) as u8 } else { sum.rem_euclid(256) as u8 };
                }
            }
            y += 1;
        })
    }
}
