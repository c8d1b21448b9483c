//! `boxes`: bounding boxes, whose sides are parallel to those of the picture.

use super::Data;
use crate::recipe::BoxFormat;
use crate::recipe::declaration::{Bounds, Key, KeyType, TargetDeclaration};
use crate::recipe::value::{Value, Values};
use std::borrow::Cow;

/// Formats of rotated boxes in torchvision, which are not supported.
pub(in crate::recipe) const ROTATED_FORMATS: [&str; 3] = ["xywhr", "cxcywhr", "xyxyxyxy"];

/// Bounding boxes: four numbers for each object of a sample.
///
/// The corners of a box are transformed by all operations; their bounding box is clamped once, at
/// the end.
#[derive(Debug, Clone, PartialEq)]
pub struct Boxes {
    /// The meaning of the four numbers in the dataset.
    pub format: BoxFormat,
    /// Their meaning in batches.
    pub to_format: Option<BoxFormat>,
    /// Minimum width and height of a box; smaller ones are dropped.
    pub min_size: Option<f64>,
    /// Minimum area of a box; smaller ones are dropped.
    pub min_area: Option<f64>,
    /// Further columns with one value for each object, from which the values of dropped boxes are
    /// removed.
    pub filters: Vec<String>,
}

impl Boxes {
    /// Whether boxes that are too small are dropped.
    pub fn is_sanitized(&self) -> bool {
        self.min_size.is_some() || self.min_area.is_some()
    }
}

impl Data for Boxes {
    const DECLARATION: &'static TargetDeclaration = &TargetDeclaration {
        name: "boxes",
        about: "bounding boxes in pixels, four numbers for each object; float32 in batches",
        keys: &[
            Key::required(
                "format",
                KeyType::Word { choices: BoxFormat::NAMES },
                Value::Word(BoxFormat::Xyxy.name()),
                "the meaning of the four numbers: two corners, a corner and the sides, or the \
                 centre and the sides",
            ),
            Key::absent(
                "to_format",
                KeyType::Word { choices: BoxFormat::NAMES },
                "the meaning of the four numbers in batches; none: as in `format`",
            ),
            Key::absent(
                "min_size",
                KeyType::Number(Bounds::NOT_NEGATIVE),
                "boxes with a smaller side are dropped; none: all sizes are kept",
            ),
            Key::absent(
                "min_area",
                KeyType::Number(Bounds::NOT_NEGATIVE),
                "boxes with a smaller area are dropped; none: all areas are kept",
            ),
            Key::optional(
                "filters",
                KeyType::Names,
                Value::Names(Cow::Borrowed(&[])),
                "columns with one value for each box, such as labels, from which the values of \
                    dropped boxes are removed",
            ),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            format: values.named("format", BoxFormat::from_name),
            to_format: values.optional_named("to_format", BoxFormat::from_name),
            min_size: values.optional_number("min_size"),
            min_area: values.optional_number("min_area"),
            filters: values.names("filters").to_vec(),
        }
    }

    fn values(&self) -> Vec<Value> {
        let number = |it: Option<f64>| it.map_or(Value::Absent, Value::Number);
        vec![
            Value::Word(self.format.name()),
            self.to_format.map_or(Value::Absent, |it| Value::Word(it.name())),
            number(self.min_size),
            number(self.min_area),
            Value::Names(self.filters.clone().into()),
        ]
    }
}
