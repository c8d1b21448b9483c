//! Executes `random_channel_permutation`.

use super::PixelOperation;
use crate::Error;
use crate::colour::{Change, RowChanges};
use crate::pixels::Pixels;
use crate::random::shuffle;
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::RandomChannelPermutation;

impl PixelOperation for RandomChannelPermutation {
    fn is_applied(&self, _draws: &mut Draws) -> bool {
        true
    }

    fn add_row_changes(&self, draws: &mut Draws, changes: &mut RowChanges) -> bool {
        changes.add(drawn(draws))
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        drawn(draws).apply(pixels)
    }
}

/// Draws a random order.
fn drawn(draws: &mut Draws) -> Change {
    let mut order = [0, 1, 2];
    shuffle(&mut order, draws);
    Change::Channels(order)
}
