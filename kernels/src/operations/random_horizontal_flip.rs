//! Executes `random_horizontal_flip`.

use super::{Geometry, StageRefusal};
use crate::points::Points;
use crate::stage::{Fit, Stage};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::RandomHorizontalFlip;

impl Geometry for RandomHorizontalFlip {
    fn join(
        &self,
        stage: &mut Stage,
        draws: &mut Draws,
        _: &mut Points,
    ) -> Result<Fit, StageRefusal> {
        if draws.chance(self.p) {
            stage.mirror();
        }
        Ok(Fit::Here)
    }
}
