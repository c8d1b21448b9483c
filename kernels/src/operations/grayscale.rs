//! Executes `grayscale`.

use super::PixelOperation;
use super::luma::make_grey;
use crate::Error;
use crate::pixels::Pixels;
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::Grayscale;

impl PixelOperation for Grayscale {
    fn is_applied(&self, _draws: &mut Draws) -> bool {
        true
    }

    fn apply(&self, _draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        pixels.each_row(make_grey)
    }
}
