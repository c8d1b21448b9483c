//! Executes `one_hot`: does nothing, since labels are already rows before the first operation.

use super::BatchOperation;
use crate::Error;
use crate::mixing::MixedBatch;
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::OneHot;

impl BatchOperation for OneHot {
    fn apply(&self, _draws: &mut Draws, _batch: &mut MixedBatch<'_>) -> Result<(), Error> {
        Ok(())
    }
}
