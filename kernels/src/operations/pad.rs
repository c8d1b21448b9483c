//! Executes `pad`.

use super::{Geometry, PictureOperation, StageRefusal};
use crate::Error;
use crate::frame::Frame;
use crate::pixels::Pixels;
use crate::points::Points;
use crate::stage::{Fit, Stage, check_pixels};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{Pad, Padding, PaddingMode};

impl Geometry for Pad {
    fn join(
        &self,
        stage: &mut Stage,
        _draws: &mut Draws,
        _: &mut Points,
    ) -> Result<Fit, StageRefusal> {
        let (height, width) = self.padding.around(stage.size());
        check_pixels(width, height)?;
        let none = Padding { left: 0, top: 0, right: 0, bottom: 0 };
        Ok(match self.padding_mode {
            _ if self.padding == none => Fit::Here,
            PaddingMode::Constant => stage.pad(self.padding, self.fill.rgba()),
            PaddingMode::Edge | PaddingMode::Reflect | PaddingMode::Symmetric => Fit::Whole,
        })
    }

    fn whole(&self) -> Option<&dyn PictureOperation> {
        Some(self)
    }

    fn size_key(&self) -> &'static str {
        "padding"
    }
}

impl PictureOperation for Pad {
    fn size(&self, (width, height): (u32, u32), _draws: &mut Draws) -> Option<(u32, u32)> {
        let (height, width) = self.padding.around((height, width));
        Some((width, height))
    }

    fn apply(&self, _draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        frame(self, pixels.size()).apply(pixels)
    }

    fn move_points(
        &self,
        size: (u32, u32),
        _draws: &mut Draws,
        points: &mut Points,
    ) -> Result<(), Error> {
        frame(self, size).move_points(points);
        Ok(())
    }
}

/// The frame around a picture of this size (columns, rows).
fn frame(pad: &Pad, (width, height): (u32, u32)) -> Frame {
    let &Pad { padding, fill, padding_mode: mode } = pad;
    let (height, width) = padding.around((height, width));
    Frame { mode, fill: fill.rgba(), padding, at: (0, 0), size: (width, height) }
}
