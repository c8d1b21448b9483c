//! The values that keys of operations can have: element types, layouts, filters, sizes, colours.

/// Defines an enum whose variants have names in recipe files.
macro_rules! named {
    ($type:ident { $($variant:ident = $name:literal),+ $(,)? }) => {
        impl $type {
            /// Every value, in the order in which errors and documents list them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The names of [`Self::ALL`].
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The name in a recipe file.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            /// The value with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|it| it.name() == name)
            }
        }
    };
}

mod augment;
mod padding;
mod series;

pub use augment::{AugmentPolicy, CutBox, ErasingMode, MixMode, MixPartner, TimmInterpolation};
pub use padding::{Fill, Padding, PaddingMode};
pub use series::{DecodingErrors, Encoding, LogBase, MelNorm, MelScale, Packing, PadMode, Planes};

named!(Dtype {
    Uint8 = "uint8",
    Uint16 = "uint16",
    Int32 = "int32",
    Float16 = "float16",
    Float32 = "float32",
});
named!(Layout { Nhwc = "NHWC", Nchw = "NCHW", Nct = "NCT", Nt = "NT", Ntc = "NTC" });
named!(Interpolation {
    Bilinear = "bilinear",
    Bicubic = "bicubic",
    Nearest = "nearest",
    Box = "box",
    Hamming = "hamming",
    Lanczos = "lanczos",
});
named!(WarpInterpolation { Nearest = "nearest", Bilinear = "bilinear", Bicubic = "bicubic" });
named!(ScaleMode { Shortest = "shortest", Longest = "longest" });
named!(BoxFormat { Xyxy = "xyxy", Xywh = "xywh", Cxcywh = "cxcywh" });
named!(MaskType { Uint8 = "uint8", Uint16 = "uint16" });
named!(OutsidePoint { Clamp = "clamp", Keep = "keep", Zero = "zero" });
named!(ColorSpace { Hsv = "hsv", Hls = "hls", Lab = "lab", Ycrcb = "ycrcb" });
named!(DecodeMode {
    Rgb = "rgb",
    Gray = "gray",
    Rgba = "rgba",
    Gray16 = "gray16",
    Rgb16 = "rgb16",
    Float = "float",
});
named!(OnError { Fail = "fail", Lenient = "lenient" });

/// Element type of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// Unsigned byte, 0..=255.
    Uint8,
    /// Unsigned, 0..=65535: pictures of 16 bits.
    Uint16,
    /// Signed, 32 bits: tokens.
    Int32,
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
            Self::Uint16 | Self::Float16 => 2,
            Self::Int32 | Self::Float32 => 4,
        }
    }

    /// The types of pictures, sound and signals, to which a recipe can convert.
    pub const CONVERTIBLE: &[&'static str] = &["uint8", "uint16", "float16", "float32"];

    /// The largest value of an unsigned type, which is scaled to 1; `None` for other types.
    pub fn largest(self) -> Option<u32> {
        match self {
            Self::Uint8 => Some(255),
            Self::Uint16 => Some(65535),
            Self::Int32 | Self::Float16 | Self::Float32 => None,
        }
    }
}

/// How values of an integer type with the maximum 255 or 65535 are converted to a float type.
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
    /// Channel, time (NCT in a batch), of sound and signals: recipes cannot request it.
    #[serde(rename = "NCT")]
    Nct,
    /// Time alone (NT in a batch), of text and of tokens in one plane: recipes cannot request it.
    #[serde(rename = "NT")]
    Nt,
    /// Time, channel (NTC in a batch), of embedded tokens: recipes cannot request it.
    #[serde(rename = "NTC")]
    Ntc,
}

impl Layout {
    /// The layouts that an operation can request.
    pub(in crate::recipe) const OF_IMAGES: &'static [&'static str] =
        &[Self::Nhwc.name(), Self::Nchw.name()];
}

/// Filter of a resize, with Pillow's definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interpolation {
    /// Triangle filter, support 1.
    Bilinear,
    /// Catmull-Rom-like cubic with a = -0.5, support 2.
    Bicubic,
    /// The nearest pixel; antialiasing has no effect on it. Positions are those of Pillow's
    /// `NEAREST`, which torchvision uses for PIL images.
    Nearest,
    /// The mean of equal weights, support 1/2.
    Box,
    /// Hamming-windowed sinc, support 1.
    Hamming,
    /// Lanczos-windowed sinc, support 3.
    Lanczos,
}

/// How a warp computes a pixel from those around its position, with the definitions of Pillow's
/// `Image.transform`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WarpInterpolation {
    /// The pixel that contains the position.
    Nearest,
    /// Linear in 2 x 2 pixels.
    Bilinear,
    /// Cubic with a = -1 in 4 x 4 pixels.
    Bicubic,
}

/// Which side of a picture fills the result of [`crate::recipe::CrumpetsAffine`] at a scale of 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScaleMode {
    /// The shorter one, so that no part of the result is outside of the picture.
    Shortest,
    /// The longer one, so that the result contains the whole picture.
    Longest,
}

/// How a damaged JPEG is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnError {
    /// The sample is an error.
    #[default]
    Fail,
    /// Missing data are filled in as libjpeg does; its warnings are ignored. A file that libjpeg
    /// rejects is an error.
    Lenient,
}

/// Target of a resize.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Size {
    /// The shorter side gets this length in pixels; the aspect ratio is preserved (torchvision:
    /// long = int(size * long / short)).
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
    /// Height and width of the result for a picture of this height and width. A side that exceeds
    /// 32 bits becomes `u32::MAX`; an empty picture stays empty.
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

/// One number for each channel of a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PerChannel {
    /// For a grey picture.
    Grey([f64; 1]),
    /// For a picture with red, green and blue.
    Rgb([f64; 3]),
    /// For a picture with red, green, blue and alpha.
    Rgba([f64; 4]),
}

impl PerChannel {
    /// The numbers in the order of the channels.
    pub fn as_slice(&self) -> &[f64] {
        match self {
            Self::Grey(numbers) => numbers,
            Self::Rgb(numbers) => numbers,
            Self::Rgba(numbers) => numbers,
        }
    }

    /// The number for a channel; a single number applies to all channels.
    pub fn channel(&self, channel: usize) -> f64 {
        match self {
            Self::Grey([number]) => *number,
            Self::Rgb(numbers) => numbers[channel],
            Self::Rgba(numbers) => numbers[channel],
        }
    }

    /// `None` for a number of channels that no picture has.
    pub(in crate::recipe) fn from_slice(numbers: &[f64]) -> Option<Self> {
        match *numbers {
            [grey] => Some(Self::Grey([grey])),
            [red, green, blue] => Some(Self::Rgb([red, green, blue])),
            [red, green, blue, alpha] => Some(Self::Rgba([red, green, blue, alpha])),
            _ => None,
        }
    }
}

impl From<[f64; 3]> for PerChannel {
    fn from(numbers: [f64; 3]) -> Self {
        Self::Rgb(numbers)
    }
}

/// The meaning of the four numbers of a bounding box, with torchvision's names. x counts columns
/// and y rows, and a pixel at column x covers x to x + 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoxFormat {
    /// The upper left and the lower right corner.
    Xyxy,
    /// The upper left corner, width and height.
    Xywh,
    /// The centre, width and height.
    Cxcywh,
}

/// Element type of a mask that is stored as PNG.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaskType {
    /// Grey of 1 or 8 bits, or a palette, whose indices are the elements.
    Uint8,
    /// The same, and grey of 16 bits.
    Uint16,
}

/// A colour space of [`crate::recipe::ConvertColor`], as OpenCV computes it on uint8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColorSpace {
    /// Hue from 0 to 179, saturation, value.
    Hsv,
    /// Hue from 0 to 179, lightness, saturation.
    Hls,
    /// L* times 2.55, a* and b* plus 128, of sRGB with the white point D65.
    Lab,
    /// Y', and Cr and Cb around 128.
    Ycrcb,
}

/// Channels of a decoded picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DecodeMode {
    /// Red, green and blue.
    #[default]
    Rgb,
    /// One grey channel: libjpeg's grayscale output of a JPEG, Pillow's `convert("L")` of others.
    Gray,
    /// Red, green, blue and alpha, which is 255 in files without alpha.
    Rgba,
    /// One grey channel of 16 bits.
    Gray16,
    /// Red, green and blue of 16 bits each.
    Rgb16,
    /// One channel of float32.
    Float,
}

impl DecodeMode {
    /// Channels of the picture.
    pub fn channels(self) -> u32 {
        match self {
            Self::Rgb | Self::Rgb16 => 3,
            Self::Gray | Self::Gray16 | Self::Float => 1,
            Self::Rgba => 4,
        }
    }

    /// Element type of the picture.
    pub fn dtype(self) -> Dtype {
        match self {
            Self::Rgb | Self::Gray | Self::Rgba => Dtype::Uint8,
            Self::Gray16 | Self::Rgb16 => Dtype::Uint16,
            Self::Float => Dtype::Float32,
        }
    }

    /// Bytes of a pixel.
    pub fn pixel_bytes(self) -> usize {
        self.channels() as usize * self.dtype().bytes()
    }

    /// Whether a pixel is not three bytes (or one byte that stands for three equal ones).
    pub fn is_wide(self) -> bool {
        match self {
            Self::Rgb | Self::Gray => false,
            Self::Rgba | Self::Gray16 | Self::Rgb16 | Self::Float => true,
        }
    }
}

/// How a point outside the result is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutsidePoint {
    /// It is moved to the border.
    Clamp,
    /// It is unchanged.
    Keep,
    /// All its numbers become 0.
    Zero,
}
