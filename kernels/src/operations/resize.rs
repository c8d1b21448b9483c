//! Executes `resize`.

use super::{Geometry, StageRefusal};
use crate::points::Points;
use crate::resize::Filter;
use crate::stage::{Fit, Stage};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::Resize;

impl Geometry for Resize {
    fn join(
        &self,
        stage: &mut Stage,
        _draws: &mut Draws,
        _: &mut Points,
    ) -> Result<Fit, StageRefusal> {
        let (height, width) = stage.size();
        let Self { interpolation, antialias, .. } = *self;
        Ok(stage.resize(self.resolve(height, width), Filter { interpolation, antialias })?)
    }
}
