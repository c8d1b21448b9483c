//! Executes `random_channel_permutation`.

use super::PixelOperation;
use crate::Error;
use crate::colour::Change;
use crate::pixels::Pixels;
use crate::random::shuffle;
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::RandomChannelPermutation;

impl PixelOperation for RandomChannelPermutation {
    fn is_applied(&self, _draws: &mut Draws) -> bool {
        true
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        let mut order = [0, 1, 2];
        shuffle(&mut order, draws);
        Change::Channels(order).apply(pixels)
    }
}
