//! Executes `gaussian_blur`, `pillow_gaussian_blur` and `three_augment`.

use super::PixelOperation;
use crate::Error;
use crate::colour::{Change, blur_buffer_bytes};
use crate::pixels::Pixels;
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{GaussianBlur, PillowGaussianBlur, ThreeAugment};

impl PixelOperation for GaussianBlur {
    fn is_applied(&self, _draws: &mut Draws) -> bool {
        true
    }

    fn needs_copy(&self) -> bool {
        true
    }

    fn buffer_bytes(&self, size: (u32, u32)) -> u64 {
        let most = match self.sigma_relative {
            Some((_, most)) => most * f64::from(size.0),
            None => self.sigma.1,
        };
        blur_buffer_bytes(self.kernel_size.unwrap_or_else(|| GaussianBlur::kernel_of(most)), size)
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        let sigma = match self.sigma_relative {
            Some((low, high)) => draws.uniform_in(low, high) * f64::from(pixels.size().0),
            None => draws.uniform_in(self.sigma.0, self.sigma.1),
        };
        let kernel = self.kernel_size.unwrap_or_else(|| GaussianBlur::kernel_of(sigma));
        Change::Blur { kernel, sigma }.apply(pixels)
    }
}

impl PixelOperation for PillowGaussianBlur {
    fn is_applied(&self, draws: &mut Draws) -> bool {
        draws.chance(self.p)
    }

    fn needs_copy(&self) -> bool {
        true
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        draws.chance(self.p);
        Change::PillowBlur(draws.uniform_in(self.radius.0, self.radius.1)).apply(pixels)
    }
}

impl PixelOperation for ThreeAugment {
    fn is_applied(&self, _draws: &mut Draws) -> bool {
        true
    }

    fn needs_copy(&self) -> bool {
        true
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        let change = match draws.up_to(2) {
            0 => Change::Grey,
            1 => Change::Solarize(128.0),
            _ => Change::PillowBlur(draws.uniform_in(0.1, 2.0)),
        };
        change.apply(pixels)
    }
}
