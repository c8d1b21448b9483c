//! `pack_sequences`.

use super::BatchOperation;
use crate::Error;
use crate::mixing::MixedBatch;
use crate::packing::pack;
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::PackSequences;

impl BatchOperation for PackSequences {
    fn apply(&self, _draws: &mut Draws, batch: &mut MixedBatch<'_>) -> Result<(), Error> {
        let MixedBatch { spec, images, interrupt, pause, .. } = batch;
        let length = spec.width as usize;
        pack(self.method, length, images, &mut || {
            pause();
            Ok(interrupt.check()?)
        })
    }
}
