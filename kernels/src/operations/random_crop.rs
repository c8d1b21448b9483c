//! Executes `random_crop`.

use super::{Geometry, PictureOperation, StageRefusal};
use crate::frame::Frame;
use crate::pixels::Pixels;
use crate::points::Points;
use crate::stage::{Fit, Stage};
use crate::{Error, Misfit, Region};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{Padding, PaddingMode, RandomCrop};

/// Draws the padding of a picture of this height and width, and the part of the padded picture.
fn drawn(
    crop: &RandomCrop,
    size: (u32, u32),
    draws: &mut Draws,
) -> Result<(Padding, Region), Misfit> {
    let padding = crop.padding_of(size);
    let (height, width) = padding.around(size);
    if height < crop.height || width < crop.width {
        let wanted = (crop.height, crop.width);
        return Err(Misfit::CropTooLarge { wanted, padded: (height, width) });
    }
    let mut begin = |room: u32| if room > 0 { draws.up_to(room) } else { 0 };
    let y = begin(height - crop.height);
    let x = begin(width - crop.width);
    Ok((padding, Region { x, y, width: crop.width, height: crop.height }))
}

impl Geometry for RandomCrop {
    fn join(
        &self,
        stage: &mut Stage,
        draws: &mut Draws,
        _: &mut Points,
    ) -> Result<Fit, StageRefusal> {
        let (height, width) = stage.size();
        let (padding, part) = drawn(self, (height, width), draws)?;
        let Padding { left, top, .. } = padding;
        let is_inside = left <= part.x
            && top <= part.y
            && part.x - left + part.width <= width
            && part.y - top + part.height <= height;
        Ok(match self.padding_mode {
            PaddingMode::Constant => stage.cut(padding, part, self.fill.rgba()),
            PaddingMode::Edge | PaddingMode::Reflect | PaddingMode::Symmetric if is_inside => {
                stage.cut(padding, part, [0; 4])
            }
            PaddingMode::Edge | PaddingMode::Reflect | PaddingMode::Symmetric => Fit::Whole,
        })
    }

    fn whole(&self) -> Option<&dyn PictureOperation> {
        Some(self)
    }
}

impl PictureOperation for RandomCrop {
    fn size(&self, _size: (u32, u32), _draws: &mut Draws) -> Option<(u32, u32)> {
        Some((self.width, self.height))
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        frame(self, pixels.size(), draws).apply(pixels)
    }

    fn move_points(
        &self,
        size: (u32, u32),
        draws: &mut Draws,
        points: &mut Points,
    ) -> Result<(), Error> {
        frame(self, size, draws).move_points(points);
        Ok(())
    }
}

/// The part of a padded picture of this size, which was checked when the operation joined its
/// stage.
fn frame(crop: &RandomCrop, size: (u32, u32), draws: &mut Draws) -> Frame {
    let (width, height) = size;
    let fitted = drawn(crop, (height, width), draws);
    let (padding, part) = fitted.expect("an operation that does not fit is not executed");
    let Region { x, y, width, height } = part;
    let (mode, fill) = (crop.padding_mode, crop.fill.rgba());
    Frame { mode, fill, padding, at: (x, y), size: (width, height) }
}
