//! `color_jitter`: brightness, contrast, saturation and hue, changed at random.

use super::Data;
use crate::recipe::declaration::{
    Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
    RandomParameter, numbers,
};
use crate::recipe::error::Fault;
use crate::recipe::sample_type::SampleType;
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.ColorJitter` on PIL images, with Pillow's arithmetic.
///
/// An interval of [1, 1], for the hue of [0, 0], leaves its property unchanged. The random
/// parameters, in this order:
///
/// 1. the order of application: in the list brightness, contrast, saturation, hue, the element at i
///    is swapped with that at `up_to(i)`, for i = 3, 2, 1;
/// 2. a factor `uniform_in(low, high)` for each property that is not left alone, in the order of
///    the list.
///
/// Brightness, contrast and saturation are Pillow's `ImageEnhance` with that factor: each value x
/// of a channel becomes d + factor * (x - d), where d is 0 for brightness, the mean luma of the
/// picture rounded to the nearest whole number (halves up) for contrast, and the luma of the pixel
/// for saturation; factor, product and sum are float32, the result is clipped to 0..=255 and
/// truncated. The hue is that of Pillow's mode HSV, 8 bits, to which trunc(factor * 255) is added
/// modulo 256.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColorJitter {
    /// Factors of the brightness.
    pub brightness: (f64, f64),
    /// Factors of the contrast.
    pub contrast: (f64, f64),
    /// Factors of the saturation.
    pub saturation: (f64, f64),
    /// Shifts of the hue as shares of the circle.
    pub hue: (f64, f64),
}

/// A key whose property is unchanged unless it is given.
const fn factors(name: &'static str, middle: f64, about: &'static str) -> Key {
    let (bounds, default) = if middle == 0.0 {
        (Bounds { least: -0.5, is_least_excluded: false, most: Some(0.5) }, &[0.0, 0.0])
    } else {
        (Bounds { least: 0.0, is_least_excluded: false, most: None }, &[1.0, 1.0])
    };
    let kind = KeyType::Interval { bounds, middle: Some(middle) };
    Key::optional(name, kind, numbers(default), about)
}

impl ColorJitter {
    /// Bounds of the factor of each property, in the order of the list; `None` if it is unchanged.
    pub fn factors(&self) -> [Option<(f64, f64)>; 4] {
        let unless =
            |bounds: (f64, f64), neutral: f64| (bounds != (neutral, neutral)).then_some(bounds);
        let Self { brightness, contrast, saturation, hue } = *self;
        [unless(brightness, 1.0), unless(contrast, 1.0), unless(saturation, 1.0), unless(hue, 0.0)]
    }
}

impl Data for ColorJitter {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "color_jitter",
        about: "changes brightness, contrast, saturation and hue by random factors",
        phase: Phase::Pixels,
        targets: OnTargets::Leaves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[
            RandomParameter { name: "order", distribution: "a permutation of the four, uniform" },
            RandomParameter {
                name: "brightness_factor",
                distribution: "uniform in `brightness`, if that is set",
            },
            RandomParameter {
                name: "contrast_factor",
                distribution: "uniform in `contrast`, if that is set",
            },
            RandomParameter {
                name: "saturation_factor",
                distribution: "uniform in `saturation`, if that is set",
            },
            RandomParameter {
                name: "hue_factor",
                distribution: "uniform in `hue`, if that is set",
            },
        ],
        keys: &[
            factors("brightness", 1.0, "factors of the brightness; x: [1 - x, 1 + x]"),
            factors("contrast", 1.0, "factors of the contrast; x: [1 - x, 1 + x]"),
            factors("saturation", 1.0, "factors of the saturation; x: [1 - x, 1 + x]"),
            factors("hue", 0.0, "shifts of the hue as shares of the circle; x: [-x, x]"),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            brightness: values.interval("brightness"),
            contrast: values.interval("contrast"),
            saturation: values.interval("saturation"),
            hue: values.interval("hue"),
        }
    }

    fn values(&self) -> Vec<Value> {
        let Self { brightness, contrast, saturation, hue } = *self;
        [brightness, contrast, saturation, hue].map(Value::from).to_vec()
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        let is_plain =
            InputType::IMAGE.dtypes.contains(&sample.dtype.name()) && sample.channels != 4;
        if is_plain || self.hue == (0.0, 0.0) {
            return Ok(());
        }
        let (dtype, channels) = (sample.dtype.name(), sample.channels);
        let problem = format!(
            "is set, but the picture has values of {dtype} and {channels} \
                               channels here, and a hue takes uint8 with 1 or 3"
        );
        Err(Fault::of_value("hue", problem, "leave it out"))
    }
}
