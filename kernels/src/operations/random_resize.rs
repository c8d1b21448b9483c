//! Executes `random_resize`.

use super::{Geometry, StageRefusal};
use crate::points::Points;
use crate::resize::Filter;
use crate::stage::{Fit, Stage};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{RandomResize, Size};

impl Geometry for RandomResize {
    fn join(
        &self,
        stage: &mut Stage,
        draws: &mut Draws,
        _: &mut Points,
    ) -> Result<Fit, StageRefusal> {
        let Self { min_size, max_size, interpolation, antialias } = *self;
        let side = min_size + draws.up_to(max_size - 1 - min_size);
        let (height, width) = stage.size();
        let size = Size::ShorterSide(side).resolve(height, width);
        Ok(stage.resize(size, Filter { interpolation, antialias })?)
    }

    fn size_key(&self) -> &'static str {
        "max_size"
    }
}
