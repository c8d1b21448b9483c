//! `center_crop`: the middle of a picture.

use super::Data;
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property, WholeSize,
};
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.CenterCrop`: pads with black if the picture is smaller.
///
/// If a side is too short by d, d / 2 rounded down is added before it and the rest after it. The
/// crop then begins at round((side - wanted) / 2), rounded half to even like Python's `round`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CenterCrop {
    /// Rows.
    pub height: u32,
    /// Columns.
    pub width: u32,
}

impl Data for CenterCrop {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "center_crop",
        about: "cuts out the middle; pads a smaller picture with black",
        phase: Phase::Geometry,
        targets: OnTargets::Moves,
        takes: &[InputType::ANY_IMAGE],
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
}
