//! Executes `random_resized_crop`.

use super::{Geometry, StageRefusal};
use crate::crop;
use crate::points::Points;
use crate::resize::Filter;
use crate::stage::{Fit, Stage};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::RandomResizedCrop;

impl Geometry for RandomResizedCrop {
    fn join(
        &self,
        stage: &mut Stage,
        draws: &mut Draws,
        _: &mut Points,
    ) -> Result<Fit, StageRefusal> {
        let Self { height, width, scale, ratio, interpolation, antialias } = *self;
        let (from_height, from_width) = stage.size();
        let region = crop::random_region(draws, from_width, from_height, scale, ratio);
        Ok(stage.crop_and_resize(region, (height, width), Filter { interpolation, antialias })?)
    }
}
