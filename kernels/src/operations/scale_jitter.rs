//! Executes `scale_jitter`.

use super::{Geometry, StageRefusal};
use crate::points::Points;
use crate::resize::Filter;
use crate::stage::{Fit, Stage};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::ScaleJitter;

impl Geometry for ScaleJitter {
    fn join(
        &self,
        stage: &mut Stage,
        draws: &mut Draws,
        _: &mut Points,
    ) -> Result<Fit, StageRefusal> {
        let Self { target_size, scale_range, interpolation, antialias } = *self;
        let scale = draws.uniform_in(scale_range.0, scale_range.1);
        let (height, width) = stage.size();
        let down = f64::from(target_size.1) / f64::from(height);
        let across = f64::from(target_size.0) / f64::from(width);
        let ratio = down.min(across) * scale;
        // The cast truncates and saturates.
        let scaled = |length: u32| (f64::from(length) * ratio) as u32;
        Ok(stage.resize((scaled(height), scaled(width)), Filter { interpolation, antialias })?)
    }

    fn size_key(&self) -> &'static str {
        "target_size"
    }
}
