//! Executes `five_crop` and `ten_crop`: computes one of their pictures.

use super::{Geometry, StageRefusal};
use crate::crop::center_span;
use crate::points::Points;
use crate::stage::{Fit, Stage};
use crate::{Misfit, Region};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{FiveCrop, Padding, TenCrop};

/// Number of pictures of `five_crop`.
const CROPS: u32 = 5;

const NO_PADDING: Padding = Padding { left: 0, top: 0, right: 0, bottom: 0 };

/// The position of a crop.
#[derive(Debug, Clone, Copy)]
enum Part {
    TopLeft,
    TopRight,
    BottomLeft,
    BottomRight,
    Middle,
}

/// How the picture is mirrored before it is cropped.
#[derive(Debug, Clone, Copy)]
enum Mirror {
    No,
    LeftToRight,
    TopToBottom,
}

/// One of the resulting pictures.
#[derive(Debug)]
pub(super) struct OneCrop {
    height: u32,
    width: u32,
    part: Part,
    mirror: Mirror,
}

impl OneCrop {
    /// One of five, by its index.
    pub(super) fn of_five(FiveCrop { height, width }: FiveCrop, index: u32) -> Self {
        let part = match index {
            0 => Part::TopLeft,
            1 => Part::TopRight,
            2 => Part::BottomLeft,
            3 => Part::BottomRight,
            4 => Part::Middle,
            index => panic!("crop {index} of five"),
        };
        Self { height, width, part, mirror: Mirror::No }
    }

    /// One of ten, by its index.
    pub(super) fn of_ten(all: TenCrop, index: u32) -> Self {
        let TenCrop { height, width, vertical_flip } = all;
        let mirror = match (index < CROPS, vertical_flip) {
            (true, _) => Mirror::No,
            (false, false) => Mirror::LeftToRight,
            (false, true) => Mirror::TopToBottom,
        };
        let upright = index.checked_sub(CROPS).unwrap_or(index);
        Self { mirror, ..Self::of_five(FiveCrop { height, width }, upright) }
    }
}

impl Geometry for OneCrop {
    fn join(
        &self,
        stage: &mut Stage,
        _draws: &mut Draws,
        _: &mut Points,
    ) -> Result<Fit, StageRefusal> {
        let (height, width) = stage.size();
        let (Some(down), Some(across)) =
            (height.checked_sub(self.height), width.checked_sub(self.width))
        else {
            let wanted = (self.height, self.width);
            return Err(Misfit::CropTooLarge { wanted, padded: (height, width) }.into());
        };
        if stage.is_padded() {
            return Ok(Fit::Next);
        }
        match self.mirror {
            Mirror::No => {}
            Mirror::LeftToRight => stage.mirror(),
            Mirror::TopToBottom => stage.flip(),
        }
        let (x, y) = match self.part {
            Part::TopLeft => (0, 0),
            Part::TopRight => (across, 0),
            Part::BottomLeft => (0, down),
            Part::BottomRight => (across, down),
            Part::Middle => {
                (center_span(width, self.width).from, center_span(height, self.height).from)
            }
        };
        let part = Region { x, y, width: self.width, height: self.height };
        Ok(stage.cut(NO_PADDING, part, [0; 4]))
    }
}
