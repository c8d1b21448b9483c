//! Executes `center_crop`.

use super::{Geometry, StageRefusal};
use crate::points::Points;
use crate::stage::{Fit, Stage};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::CenterCrop;

impl Geometry for CenterCrop {
    fn join(
        &self,
        stage: &mut Stage,
        _draws: &mut Draws,
        _: &mut Points,
    ) -> Result<Fit, StageRefusal> {
        Ok(stage.center_crop((self.height, self.width)))
    }
}
