//! `five_crop`: five parts of a picture.

use super::Data;
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property, WholeSize,
};
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.FiveCrop`: five pictures of one size, in this order: top left, top
/// right, bottom left, bottom right, and the middle, which begins where that of `center_crop` does.
///
/// The picture must be at least as large as a crop. The operations that follow are executed on each
/// crop, with the same random parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FiveCrop {
    /// Rows of a crop.
    pub height: u32,
    /// Columns of a crop.
    pub width: u32,
}

impl Data for FiveCrop {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "five_crop",
        about: "cuts out the four corners and the middle: five pictures",
        phase: Phase::Geometry,
        targets: OnTargets::Refuses,
        takes: &[InputType::IMAGE],
        gives: OutputType { size: Property::Key("size"), ..OutputType::IMAGE },
        needs: Needs::Region,
        random: &[],
        keys: &[Key::required(
            "size",
            KeyType::size(WholeSize::Square),
            Value::Whole(224),
            "both sides in pixels, or height and width",
        )],
    };

    fn read(values: &Values) -> Self {
        let (height, width) = values.sides("size");
        Self { height, width }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Sides([self.height, self.width])]
    }

    fn size(&self, _input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        Some((self.height, self.width))
    }

    fn pictures(&self) -> u32 {
        5
    }
}
