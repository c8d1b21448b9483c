//! `ten_crop`: ten parts of a picture.

use super::Data;
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property, WholeSize,
};
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.TenCrop`: the five pictures of `five_crop`, then those of the picture
/// mirrored left to right, or top to bottom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TenCrop {
    /// Rows of a crop.
    pub height: u32,
    /// Columns of a crop.
    pub width: u32,
    /// Whether the picture is mirrored top to bottom.
    pub vertical_flip: bool,
}

impl Data for TenCrop {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "ten_crop",
        about: "like `five_crop`, but of the picture and of its mirror image: ten pictures",
        phase: Phase::Geometry,
        targets: OnTargets::Refuses,
        takes: &[InputType::IMAGE],
        gives: OutputType { size: Property::Key("size"), ..OutputType::IMAGE },
        needs: Needs::Region,
        random: &[],
        keys: &[
            Key::required(
                "size",
                KeyType::size(WholeSize::Square),
                Value::Whole(224),
                "both sides in pixels, or height and width",
            ),
            Key::optional(
                "vertical_flip",
                KeyType::Switch,
                Value::Switch(false),
                "mirrors top to bottom, not left to right",
            ),
        ],
    };

    fn read(values: &Values) -> Self {
        let (height, width) = values.sides("size");
        Self { height, width, vertical_flip: values.switch("vertical_flip") }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Sides([self.height, self.width]), Value::Switch(self.vertical_flip)]
    }

    fn size(&self, _input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        Some((self.height, self.width))
    }

    fn pictures(&self) -> u32 {
        10
    }
}
