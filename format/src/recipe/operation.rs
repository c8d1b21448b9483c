//! The operations a recipe can hold.

/// Element type of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// Unsigned byte, 0..=255.
    Uint8,
    /// IEEE 754 binary16.
    Float16,
    /// IEEE 754 binary32.
    Float32,
}

impl Dtype {
    /// Bytes of one element.
    pub fn bytes(self) -> usize {
        match self {
            Self::Uint8 => 1,
            Self::Float16 => 2,
            Self::Float32 => 4,
        }
    }

    /// NumPy's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uint8 => "uint8",
            Self::Float16 => "float16",
            Self::Float32 => "float32",
        }
    }
}

/// How uint8 values become values of a float type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// 255 stays 255.0: `false` in a recipe, and the default, as in torchvision.
    #[default]
    None,
    /// Multiplied by float32(1/255) and rounded to the type, as by `v2.ToDtype(scale=True)`:
    /// `true` in a recipe.
    Multiply,
    /// Divided by 255 and rounded to the type, as by `ToTensor` and the `ConvertImageDtype` of
    /// torchvision.transforms (v1): `"divide"` in a recipe. It differs from the product in the
    /// last bit of some values.
    Divide,
}

/// Order of the axes of one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Layout {
    /// Height, width, channel (NHWC in a batch): the default.
    #[serde(rename = "NHWC")]
    Nhwc,
    /// Channel, height, width (NCHW in a batch).
    #[serde(rename = "NCHW")]
    Nchw,
}

impl Layout {
    /// The name in a recipe file: the axes of a batch.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nhwc => "NHWC",
            Self::Nchw => "NCHW",
        }
    }
}

/// Filter of a resize, with Pillow's definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interpolation {
    /// Triangle filter, support 1.
    Bilinear,
    /// Catmull-Rom-like cubic with a = -0.5, support 2.
    Bicubic,
    /// The nearest pixel as it is; antialiasing means nothing for it. Positions are those of
    /// Pillow's `NEAREST`, which torchvision takes for its PIL images.
    Nearest,
}

impl Interpolation {
    /// The name in a recipe file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bilinear => "bilinear",
            Self::Bicubic => "bicubic",
            Self::Nearest => "nearest",
        }
    }
}

/// What becomes of a JPEG that is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnError {
    /// It is an error.
    #[default]
    Fail,
    /// What is missing is filled in as libjpeg does it, whose warnings then mean nothing. What
    /// libjpeg gives up on is an error.
    Lenient,
}

impl OnError {
    /// The name in a recipe file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Lenient => "lenient",
        }
    }
}

/// How a file is decoded. The default is exact, and what Pillow does.
///
/// The first three trade exactness for speed. They are about JPEG alone, in whichever form a
/// dataset holds it; other formats decode as they always do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decode {
    /// Whether a JPEG may be decoded to 1/2, 1/4 or 1/8 of its resolution, the smallest that leaves
    /// at least the pixels of the first resize, which then works on a part of that picture.
    pub scaled: bool,
    /// Whether a JPEG is turned as its Exif orientation says, as Pillow's
    /// `ImageOps.exif_transpose` does. A picture without one, or with an unknown one, stays.
    pub orient: bool,
    /// What becomes of a damaged JPEG.
    pub on_error: OnError,
}

impl Decode {
    /// Exact, not turned; a damaged file is an error.
    pub const EXACT: Self = Self { scaled: false, orient: false, on_error: OnError::Fail };
}

/// Target of a resize.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Size {
    /// The shorter side gets this length in pixels, the aspect ratio is kept
    /// (torchvision: long = int(size * long / short)).
    ShorterSide(u32),
    /// Exactly this height and width in pixels.
    Exact {
        /// Rows.
        height: u32,
        /// Columns.
        width: u32,
    },
}

impl Size {
    /// Height and width that a picture of this height and width gets. A side that 32 bits cannot
    /// hold becomes `u32::MAX`, and a picture without pixels stays one.
    pub fn resolve(self, height: u32, width: u32) -> (u32, u32) {
        let side = match self {
            Self::Exact { height, width } => return (height, width),
            Self::ShorterSide(side) => side,
        };
        let (short, long) = (height.min(width), height.max(width));
        if short == 0 {
            return (height, width);
        }
        let long = u64::from(side) * u64::from(long) / u64::from(short);
        let long = u32::try_from(long).unwrap_or(u32::MAX);
        if width <= height { (long, side) } else { (side, long) }
    }
}

/// One step of a recipe. Sizes are in pixels.
///
/// A picture is uint8, RGB, row by row, from `Decode` until the first `ToDtype`, `Normalize` or
/// `Layout`; operations on pixels come before those. Random operations draw from a stream of their
/// own, [`crate::random::Draws`] with the operation's index in the recipe, in the order that is
/// given here: another implementation that draws so gets the same picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Operation {
    /// Encoded bytes to an RGB picture, uint8 HWC. Always first, and nowhere else.
    Decode(Decode),
    /// `torchvision.transforms.v2.Resize`: a separable filter over the whole picture, computed as
    /// Pillow's `Image.resize` does on 8-bit channels, the result rounded to uint8.
    Resize {
        /// Target; [`Size::resolve`] gives height and width.
        size: Size,
        /// Filter.
        interpolation: Interpolation,
        /// Whether the filter widens when shrinking, as Pillow's always does.
        antialias: bool,
    },
    /// `torchvision.transforms.v2.CenterCrop`: pads with black where the picture is smaller.
    ///
    /// Where a side is too short by d, d / 2 rounded down is added before it and the rest after it.
    /// Of what is then there, the crop begins at round((side - wanted) / 2), halves to the even
    /// number as Python's `round` does.
    CenterCrop {
        /// Rows.
        height: u32,
        /// Columns.
        width: u32,
    },
    /// `torchvision.transforms.v2.RandomResizedCrop`: a random part of the picture, resized as
    /// `Resize` would to exactly `height` × `width`.
    ///
    /// For a picture of H rows and W columns, up to ten tries, each of which draws twice:
    ///
    /// 1. area = H * W * `uniform_in(scale.0, scale.1)`
    /// 2. aspect = exp(`uniform_in(ln(ratio.0), ln(ratio.1))`)
    /// 3. w = round(sqrt(area * aspect)), h = round(sqrt(area / aspect)), halves to the even number
    /// 4. if 0 < w <= W and 0 < h <= H: top = `up_to(H - h)`, then left = `up_to(W - w)`; done.
    ///
    /// When no try fits, the central crop, without a draw: if W / H < ratio.0, then w = W and
    /// h = round(w / ratio.0); else if W / H > ratio.1, then h = H and w = round(h * ratio.1);
    /// else all of the picture; h and w are at least 1 and no larger than the picture;
    /// top = (H - h) / 2 and left = (W - w) / 2, rounded down.
    ///
    /// All of it in float64, `exp` and `ln` as in musl's libm (the `libm` crate), since those of
    /// platforms differ in the last bit.
    RandomResizedCrop {
        /// Rows.
        height: u32,
        /// Columns.
        width: u32,
        /// Bounds of the crop's area as a share of the picture's.
        scale: (f64, f64),
        /// Bounds of the crop's width / height.
        ratio: (f64, f64),
        /// Filter.
        interpolation: Interpolation,
        /// Whether the filter widens when shrinking.
        antialias: bool,
    },
    /// `torchvision.transforms.v2.RandomHorizontalFlip`: mirrored left to right when
    /// `uniform() < p`; one uniform is drawn in any case.
    RandomHorizontalFlip {
        /// Probability.
        p: f64,
    },
    /// `torchvision.transforms.v2.ToDtype`.
    ///
    /// Between float types it changes nothing but the type (rounded to nearest, ties to even), and
    /// from a float type back to uint8 there is no way.
    ToDtype {
        /// Element type from here on.
        dtype: Dtype,
        /// How uint8 values are scaled on the way to a float type.
        scale: Scale,
    },
    /// `torchvision.transforms.v2.Normalize`, per channel, on a float type: (x - mean) / std in
    /// that type, subtraction and division each rounded to it; `mean` and `std` are rounded to
    /// float32 and from there to that type first.
    Normalize {
        /// Subtracted.
        mean: [f64; 3],
        /// Divided by; not zero.
        std: [f64; 3],
    },
    /// Order of the axes of the result, wherever it stands in the recipe.
    Layout {
        /// The order.
        layout: Layout,
    },
}

impl Operation {
    /// The name in a recipe file.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Decode(_) => "decode",
            Self::Resize { .. } => "resize",
            Self::CenterCrop { .. } => "center_crop",
            Self::RandomResizedCrop { .. } => "random_resized_crop",
            Self::RandomHorizontalFlip { .. } => "random_horizontal_flip",
            Self::ToDtype { .. } => "to_dtype",
            Self::Normalize { .. } => "normalize",
            Self::Layout { .. } => "layout",
        }
    }

    /// Whether it draws random numbers.
    pub fn is_random(&self) -> bool {
        matches!(self, Self::RandomResizedCrop { .. } | Self::RandomHorizontalFlip { .. })
    }
}
