//! Executes `convert_color`.

use super::PixelOperation;
use crate::Error;
use crate::colour::Converter;
use crate::pixels::Pixels;
use meetpoint_format::random::Draws;

impl PixelOperation for Converter {
    fn is_applied(&self, _draws: &mut Draws) -> bool {
        true
    }

    fn apply(&self, _draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        if let Some(recording) = pixels.recording() {
            self.record(recording);
            return Ok(());
        }
        pixels.each_row(|[red, green, blue]| {
            for ((red, green), blue) in red.iter_mut().zip(green).zip(blue) {
                [*red, *green, *blue] = self.convert([*red, *green, *blue]);
            }
        })
    }
}
