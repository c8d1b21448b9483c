//! Executes `random_zoom_out`.

use super::{Geometry, StageRefusal};
use crate::points::Points;
use crate::stage::{Fit, Stage, check_pixels};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{Padding, RandomZoomOut};

impl Geometry for RandomZoomOut {
    fn join(
        &self,
        stage: &mut Stage,
        draws: &mut Draws,
        _: &mut Points,
    ) -> Result<Fit, StageRefusal> {
        if !draws.chance(self.p) {
            return Ok(Fit::Here);
        }
        let (height, width) = stage.size();
        let ratio = draws.uniform_in(self.side_range.0, self.side_range.1);
        // The cast truncates and saturates.
        let side = |length: u32| (f64::from(length) * ratio) as u32;
        let (canvas_height, canvas_width) = (side(height), side(width));
        check_pixels(canvas_width, canvas_height)?;
        let mut before = |room: u32| (f64::from(room) * draws.uniform()) as u32;
        let (across, down) = (canvas_width - width, canvas_height - height);
        let left = before(across);
        let top = before(down);
        let padding = Padding { left, top, right: across - left, bottom: down - top };
        Ok(stage.pad(padding, self.fill.rgba()))
    }

    fn size_key(&self) -> &'static str {
        "side_range"
    }
}
