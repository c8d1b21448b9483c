//! Executes `mix_up`.

use super::BatchOperation;
use crate::Error;
use crate::mixing::{Mix, MixedBatch};
use crate::random::beta;
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::MixUp;

impl BatchOperation for MixUp {
    fn apply(&self, draws: &mut Draws, batch: &mut MixedBatch<'_>) -> Result<(), Error> {
        let mixes = batch.units(self.mode, || Mix::blend(beta(self.alpha, draws), self.mode));
        batch.mix(self.partner, &mixes)
    }
}
