//! Executes `random_shortest_size`.

use super::{Geometry, StageRefusal};
use crate::points::Points;
use crate::resize::Filter;
use crate::stage::{Fit, Stage};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::RandomShortestSize;

impl Geometry for RandomShortestSize {
    fn join(
        &self,
        stage: &mut Stage,
        draws: &mut Draws,
        _: &mut Points,
    ) -> Result<Fit, StageRefusal> {
        let Self { min_size, max_size, interpolation, antialias } = *self;
        let sides = min_size.as_slice();
        let side = sides[draws.up_to(sides.len() as u32 - 1) as usize];
        let (height, width) = stage.size();
        let (short, long) = (height.min(width), height.max(width));
        let mut ratio = f64::from(side) / f64::from(short);
        if let Some(most) = max_size {
            ratio = ratio.min(f64::from(most) / f64::from(long));
        }
        // The cast truncates and saturates.
        let scaled = |length: u32| (f64::from(length) * ratio) as u32;
        Ok(stage.resize((scaled(height), scaled(width)), Filter { interpolation, antialias })?)
    }

    fn size_key(&self) -> &'static str {
        "min_size"
    }
}
