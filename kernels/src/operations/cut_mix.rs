//! Executes `cut_mix`.

use super::BatchOperation;
use crate::Error;
use crate::mixing::{Mix, MixedBatch, Rectangle};
use crate::random::beta;
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::CutMix;

impl BatchOperation for CutMix {
    fn apply(&self, draws: &mut Draws, batch: &mut MixedBatch<'_>) -> Result<(), Error> {
        let (size, mode) = (batch.size(), self.mode);
        let mixes = batch.units(mode, || {
            let lambda = beta(self.alpha, draws);
            let found = Rectangle::drawn(size, lambda, (mode, self.cut_box), draws);
            Mix::paste(found, found.lambda(size), mode)
        });
        batch.mix(self.partner, &mixes)
    }
}
