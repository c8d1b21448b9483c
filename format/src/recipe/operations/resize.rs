//! `resize`: another resolution.

use super::Data;
use crate::recipe::declaration::{
    Declaration, Gives, Key, Kind, Needs, Place, Property, Takes, WholeSize,
};
use crate::recipe::value::{Value, Values};
use crate::recipe::{Interpolation, Size};

/// `torchvision.transforms.v2.Resize`: a separable filter over the whole picture, computed as
/// Pillow's `Image.resize` does on 8-bit channels, the result rounded to uint8.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resize {
    /// Target; [`Size::resolve`] gives height and width.
    pub size: Size,
    /// Filter.
    pub interpolation: Interpolation,
    /// Whether the filter widens when shrinking, as Pillow's always does.
    pub antialias: bool,
}

impl Data for Resize {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "resize",
        about: "resizes to a shorter side, or to a height and width",
        place: Place::Geometry,
        takes: &[Takes::IMAGE],
        gives: Gives { size: Property::Key("size"), ..Gives::IMAGE },
        needs: Needs::All,
        random: &[],
        keys: &[
            Key::required(
                "size",
                Kind::size(WholeSize::ShorterSide),
                Value::Whole(256),
                "the shorter side in pixels, or height and width",
            ),
            Key::interpolation(),
            Key::antialias(),
        ],
    };

    fn read(values: &Values) -> Self {
        let size = match values.size("size") {
            Ok((height, width)) => Size::Exact { height, width },
            Err(side) => Size::ShorterSide(side),
        };
        let interpolation = values.named("interpolation", Interpolation::from_name);
        Self { size, interpolation, antialias: values.switch("antialias") }
    }

    fn values(&self) -> Vec<Value> {
        let Self { size, interpolation, antialias } = *self;
        let size = match size {
            Size::ShorterSide(side) => Value::Whole(side),
            Size::Exact { height, width } => Value::Sides([height, width]),
        };
        vec![size, Value::Word(interpolation.name()), Value::Switch(antialias)]
    }

    fn size(&self, input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        match self.size {
            Size::Exact { height, width } => Some((height, width)),
            Size::ShorterSide(_) => input.map(|(height, width)| self.size.resolve(height, width)),
        }
    }
}
