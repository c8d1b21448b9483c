//! Executes `color_jitter`.

use super::PixelOperation;
use crate::Error;
use crate::colour::{Change, RowChanges};
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

    fn add_row_changes(&self, draws: &mut Draws, changes: &mut RowChanges) -> bool {
        drawn(self, draws).all(|change| changes.add(change))
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        for change in drawn(self, draws) {
            change.apply(pixels)?;
        }
        Ok(())
    }
}

/// The changes with random factors in a random order.
fn drawn(jitter: &ColorJitter, draws: &mut Draws) -> impl Iterator<Item = Change> {
    let mut order = [0, 1, 2, 3];
    shuffle(&mut order, draws);
    let factors =
        jitter.factors().map(|bounds| bounds.map(|(low, high)| draws.uniform_in(low, high)));
    order.into_iter().filter_map(move |index| Some(PROPERTIES[index](factors[index]?)))
}
