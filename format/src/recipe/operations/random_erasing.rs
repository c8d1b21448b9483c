//! `random_erasing`: replaces rectangles of a tensor by a value or by noise.

use super::Data;
use crate::recipe::declaration::{
    APPLIED, Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
    RandomParameter, numbers,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{Dtype, ErasingMode, PerChannel, SampleType};

/// `torchvision.transforms.v2.RandomErasing`, and the `RandomErasing` of timm: on a tensor of H
/// rows and W columns, rectangles that are replaced. Drawn are, in this order:
///
/// 1. `uniform() < p`: whether anything is replaced; if not, nothing more is drawn;
/// 2. count = `min_count` + `up_to(max_count - min_count)`, drawn only if these differ;
/// 3. for each rectangle, up to ten tries: area = H * W * `uniform_in(scale.0, scale.1)` / count,
///    aspect = exp(`uniform_in(ln(ratio.0), ln(ratio.1))`), h = round(sqrt(area * aspect)) and
///    w = round(sqrt(area / aspect)), halves to the even number, until h < H and w < W; then
///    top = `up_to(H - h)`, left = `up_to(W - w)`, and what the mode draws. A rectangle that no try
///    finds is left out.
///
/// The modes are those of [`ErasingMode`]. All of it in float64, `exp` and `ln` as in musl's libm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomErasing {
    /// Probability.
    pub p: f64,
    /// Bounds of the area of all rectangles together as a share of the tensor's.
    pub scale: (f64, f64),
    /// Bounds of height over width.
    pub ratio: (f64, f64),
    /// The replacement of the elements.
    pub mode: ErasingMode,
    /// The value of [`ErasingMode::Constant`], of each channel or of all.
    pub value: PerChannel,
    /// Least number of rectangles.
    pub min_count: u32,
    /// Largest number of rectangles.
    pub max_count: u32,
}

/// Maximum number of rectangles.
const COUNT_MAX: u32 = 64;

const fn interval(is_least_excluded: bool, most: Option<f64>) -> KeyType {
    KeyType::Interval { bounds: Bounds { least: 0.0, is_least_excluded, most }, middle: None }
}

const COUNT: KeyType = KeyType::WholeIn { least: 1, most: COUNT_MAX };

impl Data for RandomErasing {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_erasing",
        about: "replaces rectangles of the tensor with probability `p`",
        phase: Phase::Tensor,
        targets: OnTargets::Leaves,
        takes: &[InputType::ANY_IMAGE, InputType::TENSOR],
        gives: OutputType::TENSOR,
        needs: Needs::All,
        random: &[
            APPLIED,
            RandomParameter { name: "count", distribution: "uniform in `min_count`..=`max_count`" },
            RandomParameter {
                name: "area",
                distribution: "share of the tensor's, uniform in `scale`, / count; up to 10 tries",
            },
            RandomParameter {
                name: "aspect",
                distribution: "height / width, its logarithm uniform in that of `ratio`; with area",
            },
            RandomParameter { name: "top", distribution: "uniform over the rows where it fits" },
            RandomParameter {
                name: "left",
                distribution: "uniform over the columns where it fits",
            },
            RandomParameter { name: "noise", distribution: "standard normal, as `mode` says" },
        ],
        keys: &[
            Key::probability(0.5),
            Key::optional(
                "scale",
                interval(false, Some(1.0)),
                numbers(&[0.02, 0.33]),
                "shares of the tensor's area",
            ),
            Key::optional("ratio", interval(true, None), numbers(&[0.3, 3.3]), "height over width"),
            Key::optional(
                "mode",
                KeyType::Word { choices: ErasingMode::NAMES },
                Value::Word(ErasingMode::NAMES[0]),
                "the replacement of the elements: `value`, one normal number per channel, or one \
                 per element",
            ),
            Key::optional(
                "value",
                KeyType::PerChannel,
                numbers(&[0.0]),
                "the value of each channel, or of all channels",
            ),
            Key::optional("min_count", COUNT, Value::Whole(1), "the minimum number of rectangles"),
            Key::optional("max_count", COUNT, Value::Whole(1), "the maximum number of rectangles"),
        ],
    };

    fn read(values: &Values) -> Self {
        let value = PerChannel::from_slice(values.numbers("value"));
        Self {
            p: values.number("p"),
            scale: values.interval("scale"),
            ratio: values.interval("ratio"),
            mode: values.named("mode", ErasingMode::from_name),
            value: value.expect("the length was checked"),
            min_count: values.whole("min_count"),
            max_count: values.whole("max_count"),
        }
    }

    fn values(&self) -> Vec<Value> {
        let Self { p, scale, ratio, mode, value, min_count, max_count } = *self;
        vec![
            Value::Number(p),
            scale.into(),
            ratio.into(),
            Value::Word(mode.name()),
            Value::Numbers(value.as_slice().to_vec().into()),
            Value::Whole(min_count),
            Value::Whole(max_count),
        ]
    }

    /// The value must be finite in the element type, and noise needs a float type.
    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        let Self { mode, value, min_count, max_count, .. } = *self;
        if max_count < min_count {
            let problem = format!("is {max_count}, below `min_count`, {min_count}");
            return Err(Fault::of_value("max_count", problem, "at least `min_count`"));
        }
        let (values, channels) = (value.as_slice(), sample.channels as usize);
        if values.len() != 1 && values.len() != channels {
            let problem =
                format!("has length {}, but the number of channels is {channels}", values.len());
            return Err(Fault::of_value("value", problem, "one number, or one per channel"));
        }
        if mode != ErasingMode::Constant {
            if values.iter().any(|value| *value != 0.0) {
                let problem = format!("has no effect with mode = \"{}\"", mode.name());
                return Err(Fault::of_value("value", problem, "remove it"));
            }
            if sample.dtype.largest().is_some() {
                let (mode, dtype) = (mode.name(), sample.dtype.name());
                let problem = format!("is \"{mode}\", but the values are {dtype} here");
                let remedy = "put to_dtype with dtype = \"float32\" (and scale = true) before it";
                return Err(Fault::of_value("mode", problem, remedy));
            }
        }
        let exists = |value: &f64| match sample.dtype {
            Dtype::Uint8 | Dtype::Uint16 => {
                let largest = sample.dtype.largest().map_or(0.0, f64::from);
                (0.0..=largest).contains(value) && value.fract() == 0.0
            }
            Dtype::Int32 => value.fract() == 0.0 && value.abs() <= f64::from(i32::MAX),
            // Float16 rounds to infinity from here on.
            Dtype::Float16 => value.abs() < 65520.0,
            Dtype::Float32 => (*value as f32).is_finite(),
        };
        match values.iter().find(|value| !exists(value)) {
            None => Ok(()),
            Some(value) => {
                let name = sample.dtype.name();
                let problem = format!("holds {value:?}, which is not a finite {name}");
                Err(Fault::of_value("value", problem, format!("values of {name}")))
            }
        }
    }
}
