//! `random_resized_crop`: a random part of a picture, resized.

use super::Data;
use crate::recipe::Interpolation;
use crate::recipe::declaration::{
    Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property,
    RandomParameter, WholeSize, numbers,
};
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.RandomResizedCrop`: a random part of the picture, resized as
/// [`super::Resize`] would to exactly `height` × `width`.
///
/// For a picture of H rows and W columns, up to ten tries, each of which draws twice:
///
/// 1. area = H * W * `uniform_in(scale.0, scale.1)`
/// 2. aspect = exp(`uniform_in(ln(ratio.0), ln(ratio.1))`)
/// 3. w = round(sqrt(area * aspect)), h = round(sqrt(area / aspect)), halves to the even number
/// 4. if 0 < w <= W and 0 < h <= H: top = `up_to(H - h)`, then left = `up_to(W - w)`; done.
///
/// If no try fits, the central crop, without a draw: if W / H < ratio.0, then w = W and h = round(w
/// / ratio.0); else if W / H > ratio.1, then h = H and w = round(h * ratio.1); else the whole
/// picture; h and w are at least 1 and at most the sides of the picture; top = (H - h) / 2 and left
/// = (W - w) / 2, rounded down.
///
/// Everything is computed in float64, `exp` and `ln` as in musl's libm (the `libm` crate), since
/// those of platforms differ in the last bit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomResizedCrop {
    /// Rows.
    pub height: u32,
    /// Columns.
    pub width: u32,
    /// Bounds of the crop's area as a share of the picture's.
    pub scale: (f64, f64),
    /// Bounds of the crop's width / height.
    pub ratio: (f64, f64),
    /// Filter.
    pub interpolation: Interpolation,
    /// Whether the filter widens when shrinking.
    pub antialias: bool,
}

/// A positive interval up to `most`.
const fn positive(most: Option<f64>) -> KeyType {
    let bounds = Bounds { least: 0.0, is_least_excluded: true, most };
    KeyType::Interval { bounds, middle: None }
}

impl Data for RandomResizedCrop {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_resized_crop",
        about: "cuts out a random part and resizes it",
        phase: Phase::Geometry,
        targets: OnTargets::Moves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType { size: Property::Key("size"), ..OutputType::IMAGE },
        needs: Needs::Region,
        random: &[
            RandomParameter {
                name: "area",
                distribution: "share of the picture's, uniform in `scale`; up to 10 tries",
            },
            RandomParameter {
                name: "aspect",
                distribution: "width / height, its logarithm uniform in that of `ratio`; with area",
            },
            RandomParameter { name: "top", distribution: "uniform over the rows where it fits" },
            RandomParameter {
                name: "left",
                distribution: "uniform over the columns where it fits",
            },
        ],
        keys: &[
            Key::required(
                "size",
                KeyType::size(WholeSize::Square),
                Value::Whole(224),
                "both sides in pixels, or height and width",
            ),
            Key::optional(
                "scale",
                positive(Some(1.0)),
                numbers(&[0.08, 1.0]),
                "shares of the picture's area",
            ),
            Key::optional(
                "ratio",
                positive(None),
                numbers(&[3.0 / 4.0, 4.0 / 3.0]),
                "width over height",
            ),
            Key::interpolation(),
            Key::antialias(),
        ],
    };

    fn read(values: &Values) -> Self {
        let (height, width) = values.sides("size");
        Self {
            height,
            width,
            scale: values.interval("scale"),
            ratio: values.interval("ratio"),
            interpolation: values.named("interpolation", Interpolation::from_name),
            antialias: values.switch("antialias"),
        }
    }

    fn values(&self) -> Vec<Value> {
        let Self { height, width, scale, ratio, interpolation, antialias } = *self;
        vec![
            Value::Sides([height, width]),
            scale.into(),
            ratio.into(),
            Value::Word(interpolation.name()),
            Value::Switch(antialias),
        ]
    }

    fn size(&self, _input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        Some((self.height, self.width))
    }
}
