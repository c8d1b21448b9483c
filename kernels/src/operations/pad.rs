//! Executes `pad`.

use super::{Geometry, PictureOperation};
use crate::Error;
use crate::frame::Frame;
use crate::pixels::Pixels;
use crate::stage::{Fit, Stage, check_pixels};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{Pad, Padding, PaddingMode};

impl Geometry for Pad {
    fn join(&self, stage: &mut Stage, _draws: &mut Draws) -> Result<Fit, Error> {
        let (height, width) = self.padding.around(stage.size());
        check_pixels(width, height)?;
        let none = Padding { left: 0, top: 0, right: 0, bottom: 0 };
        Ok(match self.padding_mode {
            _ if self.padding == none => Fit::Here,
            PaddingMode::Constant => stage.pad(self.padding, self.fill.rgb()),
            PaddingMode::Edge | PaddingMode::Reflect | PaddingMode::Symmetric => Fit::Whole,
        })
    }

    fn whole(&self) -> Option<&dyn PictureOperation> {
        Some(self)
    }
}

impl PictureOperation for Pad {
    fn size(
        &self,
        (width, height): (u32, u32),
        _draws: &mut Draws,
    ) -> Result<Option<(u32, u32)>, Error> {
        let (height, width) = self.padding.around((height, width));
        Ok(Some((width, height)))
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        let Some(size) = self.size(pixels.size(), draws)? else { return Ok(()) };
        let &Self { padding, fill, padding_mode: mode } = self;
        Frame { mode, fill: fill.rgb(), padding, at: (0, 0), size }.apply(pixels)
    }
}
