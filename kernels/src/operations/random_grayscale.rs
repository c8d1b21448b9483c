//! Executes `random_grayscale`.

use super::PixelOperation;
use super::luma::make_grey;
use crate::Error;
use crate::pixels::Pixels;
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::RandomGrayscale;

impl PixelOperation for RandomGrayscale {
    fn is_applied(&self, draws: &mut Draws) -> bool {
        draws.chance(self.p)
    }

    fn apply(&self, _draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        pixels.each_row(make_grey)
    }
}
