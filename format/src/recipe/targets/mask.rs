//! `mask`: a number for each pixel, such as its class.

use super::Data;
use crate::recipe::MaskType;
use crate::recipe::declaration::{Bounds, Key, KeyType, TargetDeclaration};
use crate::recipe::value::{Value, Values};

/// A mask: one element for each pixel of the picture, transformed without interpolation.
///
/// The column holds a PNG with one channel, a tensor of height and width, or one such tensor for
/// each object of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mask {
    /// Value of elements outside of the picture.
    pub fill: f64,
    /// Element type of a PNG.
    pub dtype: MaskType,
}

impl Data for Mask {
    const DECLARATION: &'static TargetDeclaration = &TargetDeclaration {
        name: "mask",
        about: "a number for each pixel, resampled by nearest neighbour: a PNG with one channel, \
            or a tensor [height, width], or one of them for each object",
        keys: &[
            Key::optional(
                "fill",
                KeyType::Number(Bounds::POSITION),
                Value::Number(0.0),
                "the value outside the picture",
            ),
            Key::optional(
                "dtype",
                KeyType::Word { choices: MaskType::NAMES },
                Value::Word(MaskType::Uint8.name()),
                "the element type of PNGs; tensors keep theirs",
            ),
        ],
    };

    fn read(values: &Values) -> Self {
        Self { fill: values.number("fill"), dtype: values.named("dtype", MaskType::from_name) }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Number(self.fill), Value::Word(self.dtype.name())]
    }
}
