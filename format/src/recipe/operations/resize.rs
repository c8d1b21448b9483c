//! `resize`: changes the resolution.

use super::Data;
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property, SIDE_MAX,
    WholeSize,
};
use crate::recipe::error::Fault;
use crate::recipe::sample_type::SampleType;
use crate::recipe::sizes::SizeRange;
use crate::recipe::value::{Value, Values};
use crate::recipe::{Interpolation, Size};

/// `torchvision.transforms.v2.Resize`: a separable filter over the whole picture, computed as
/// Pillow's `Image.resize` does on 8-bit channels, the result rounded to uint8.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resize {
    /// Target; [`Resize::resolve`] gives height and width.
    pub size: Size,
    /// Largest length of the longer side, for [`Size::ShorterSide`].
    pub max_size: Option<u32>,
    /// Filter.
    pub interpolation: Interpolation,
    /// Whether the filter is widened when shrinking, as Pillow always does.
    pub antialias: bool,
}

impl Resize {
    /// Height and width of the result for a picture of this height and width. A side can become 0.
    pub fn resolve(&self, height: u32, width: u32) -> (u32, u32) {
        let (high, wide) = self.size.resolve(height, width);
        let (short, long) = (high.min(wide), high.max(wide));
        match (self.size, self.max_size) {
            (Size::ShorterSide(_), Some(most)) if long > most => {
                // At most the length of the shorter side before.
                let short = (u64::from(most) * u64::from(short) / u64::from(long)) as u32;
                if width <= height { (most, short) } else { (short, most) }
            }
            (Size::ShorterSide(_) | Size::Exact { .. }, _) => (high, wide),
        }
    }
}

impl Data for Resize {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "resize",
        about: "resizes to a shorter side, or to a height and width",
        phase: Phase::Geometry,
        targets: OnTargets::Moves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType { size: Property::Key("size"), ..OutputType::IMAGE },
        needs: Needs::All,
        random: &[],
        keys: &[
            Key::required(
                "size",
                KeyType::size(WholeSize::ShorterSide),
                Value::Whole(256),
                "the shorter side in pixels, or height and width",
            ),
            Key::interpolation(),
            Key::antialias(),
            Key::absent(
                "max_size",
                KeyType::WholeIn { least: 2, most: SIDE_MAX },
                "the maximum of the longer side if `size` is the shorter one; none: no limit",
            ),
        ],
    };

    fn read(values: &Values) -> Self {
        let size = match values.size("size") {
            Ok((height, width)) => Size::Exact { height, width },
            Err(side) => Size::ShorterSide(side),
        };
        let interpolation = values.named("interpolation", Interpolation::from_name);
        let max_size = values.optional_whole("max_size");
        Self { size, max_size, interpolation, antialias: values.switch("antialias") }
    }

    fn values(&self) -> Vec<Value> {
        let Self { size, max_size, interpolation, antialias } = *self;
        let size = match size {
            Size::ShorterSide(side) => Value::Whole(side),
            Size::Exact { height, width } => Value::Sides([height, width]),
        };
        let max_size = max_size.map_or(Value::Absent, Value::Whole);
        vec![size, Value::Word(interpolation.name()), Value::Switch(antialias), max_size]
    }

    fn sizes(&self, input: SizeRange) -> SizeRange {
        match (self.size, input.only()) {
            (Size::Exact { height, width }, _) => SizeRange::exact((height, width)),
            (Size::ShorterSide(_), Some((height, width))) => {
                SizeRange::exact(self.resolve(height, width))
            }
            (Size::ShorterSide(side), None) => input.of_shorter_side((side, side), self.max_size),
        }
    }

    fn size(&self, input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        match self.size {
            Size::Exact { height, width } => Some((height, width)),
            Size::ShorterSide(_) => input.map(|(height, width)| self.resolve(height, width)),
        }
    }

    fn follow(&self, _sample: &mut SampleType) -> Result<(), Fault> {
        match (self.max_size, self.size) {
            (Some(most), Size::ShorterSide(side)) if most <= side => {
                let problem = format!("is {most}, not above `size` = {side}");
                Err(Fault::of_value("max_size", problem, "more than the shorter side"))
            }
            (Some(_), Size::Exact { .. }) => {
                let problem = "is given with a height and a width";
                Err(Fault::of_value("max_size", problem, "remove it, or make `size` one number"))
            }
            (None | Some(_), Size::ShorterSide(_)) | (None, Size::Exact { .. }) => Ok(()),
        }
    }
}
