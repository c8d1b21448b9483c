//! `saliency`: a weight for each pixel, interpolated like the picture.

use super::Data;
use crate::recipe::declaration::{Key, KeyType, TargetDeclaration};
use crate::recipe::value::{Value, Values};

/// A saliency map: a uint8 weight for each pixel, resampled with the interpolation of each
/// operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Saliency {
    /// Weight outside of the picture.
    pub fill: u8,
}

impl Data for Saliency {
    const DECLARATION: &'static TargetDeclaration = &TargetDeclaration {
        name: "saliency",
        about: "a uint8 weight for each pixel, interpolated like the picture: a grey PNG of 8 \
            bits, or a tensor [height, width], or one of them for each object",
        keys: &[Key::optional(
            "fill",
            KeyType::WholeIn { least: 0, most: 255 },
            Value::Whole(0),
            "the weight outside the picture",
        )],
    };

    fn read(values: &Values) -> Self {
        Self { fill: u8::try_from(values.whole("fill")).expect("checked when it was read") }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Whole(self.fill.into())]
    }
}
