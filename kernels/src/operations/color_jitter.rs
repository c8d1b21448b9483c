//! Executes `color_jitter`.

use super::PixelOperation;
use crate::Error;
use crate::colour::Change;
use crate::pixels::Pixels;
use crate::random::shuffle;
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::ColorJitter;

/// The properties in the order in which factors are drawn.
const PROPERTIES: [fn(f64) -> Change; 4] =
    [Change::Brightness, Change::Contrast, Change::Saturation, Change::Hue];

impl PixelOperation for ColorJitter {
    fn is_applied(&self, _draws: &mut Draws) -> bool {
        self.factors().iter().any(Option::is_some)
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        let mut order = [0, 1, 2, 3];
        shuffle(&mut order, draws);
        let factors =
            self.factors().map(|bounds| bounds.map(|(low, high)| draws.uniform_in(low, high)));
        for index in order {
            if let Some(factor) = factors[index] {
                PROPERTIES[index](factor).apply(pixels)?;
            }
        }
        Ok(())
    }
}
