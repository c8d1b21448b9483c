//! The declaration of an operation: its keys, the types of its input and output, its random
//! parameters.
//!
//! Parsing, checking, hashing, the schema, the documentation's tables and the Python classes follow
//! from these declarations. This file must never name an operation.

use super::value::{Described, Value};
use super::vocabulary::WarpInterpolation;
use serde::{Serialize, Serializer};
use std::borrow::Cow;

/// Largest height or width that a recipe can request, in pixels: that of a JPEG.
pub(super) const SIDE_MAX: u32 = 65535;

/// Everything about an operation that does not depend on its values.
#[derive(Debug, PartialEq, Serialize)]
pub struct Declaration {
    /// Name in a recipe file.
    pub name: &'static str,
    /// Its description, in one line.
    pub about: &'static str,
    /// The phase of preparing a sample in which it is executed.
    pub phase: Phase,
    /// Its effect on the targets of a sample.
    pub targets: OnTargets,
    /// Accepted types of input.
    pub takes: &'static [InputType],
    /// Type of its output.
    pub gives: OutputType,
    /// How much of its input it needs.
    pub needs: Needs,
    /// Its random parameters, in the order in which they are drawn; empty if it is deterministic.
    pub random: &'static [RandomParameter],
    /// Its keys, in the order of the documentation.
    pub keys: &'static [Key],
}

impl Declaration {
    /// Whether it has random parameters.
    pub fn is_random(&self) -> bool {
        !self.random.is_empty()
    }
}

/// Everything about a type of target that does not depend on its values.
#[derive(Debug, PartialEq, Serialize)]
pub struct TargetDeclaration {
    /// Name in a recipe file.
    pub name: &'static str,
    /// What it holds, in one line.
    pub about: &'static str,
    /// Its keys, in the order of the documentation.
    pub keys: &'static [Key],
}

/// The effect of an operation on the targets of a sample: masks, boxes and points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTargets {
    /// It does not change them, because it does not move pixels.
    Leaves,
    /// It transforms them in the same way as the pixels.
    Moves,
    /// It moves pixels in ways that no target can follow.
    Refuses,
}

impl OnTargets {
    /// The name in the schema.
    pub fn name(self) -> &'static str {
        match self {
            Self::Leaves => "leaves",
            Self::Moves => "moves",
            Self::Refuses => "refuses",
        }
    }
}

/// The phase of preparing a sample or a batch in which an operation is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// By the decoder, on the encoded bytes.
    Decode,
    /// While rows are decoded, resized and stored: crops, resizes and flips, in one pass.
    Geometry,
    /// On a whole picture in memory, all channels of a pixel together.
    Pixels,
    /// From a whole picture in memory to another, which may have another size.
    Picture,
    /// On sound, a spectrogram or a signal: one operation after another, each on the whole series.
    Series,
    /// On a text, its tokens or their embeddings: one operation after another, each on the whole
    /// text.
    Text,
    /// On the values of the tensor, each by itself.
    Elements,
    /// On the whole tensor, after all its elements.
    Tensor,
    /// Not executed by itself: it contains operations and decides for each sample which of them are
    /// executed, and in which order.
    Choice,
    /// On a whole batch, after its samples.
    Batch,
}

/// Type of a value that operations take and return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueKind {
    /// The bytes of a file.
    Encoded,
    /// A picture of any size.
    Image,
    /// Sound: float32 for each channel and step in time, at a known sample rate.
    Audio,
    /// Float32 for each channel, frequency and step in time.
    Spectrogram,
    /// Measurements: float32 for each channel and step in time.
    Signal,
    /// Characters: the bytes of their UTF-8.
    Text,
    /// Token ids of a text, int32, in 1 to 3 planes.
    Tokens,
    /// A vector of floats for each token.
    Embedding,
    /// As an output: the same type as the input.
    Same,
    /// Elements of a type and order of axes.
    Tensor,
    /// The tensors of all samples of a batch, with their labels as rows of float32.
    Batch,
}

impl ValueKind {
    /// The name in the schema.
    pub fn name(self) -> &'static str {
        match self {
            Self::Encoded => "encoded",
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Spectrogram => "spectrogram",
            Self::Signal => "signal",
            Self::Text => "text",
            Self::Tokens => "tokens",
            Self::Embedding => "embedding",
            Self::Same => "same",
            Self::Tensor => "tensor",
            Self::Batch => "batch",
        }
    }
}

/// A type of input. Height and width are variable in all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct InputType {
    /// Kind of value.
    pub kind: ValueKind,
    /// Element types.
    pub dtypes: &'static [&'static str],
    /// Numbers of channels; empty: any number.
    pub channels: &'static [u32],
}

impl InputType {
    /// The bytes of a file.
    pub const ENCODED: Self = Self { kind: ValueKind::Encoded, dtypes: &[], channels: &[] };
    /// A picture of 8 bits, RGB or grey.
    pub const IMAGE: Self = Self { kind: ValueKind::Image, dtypes: &["uint8"], channels: &[1, 3] };
    /// A picture of any mode.
    pub const ANY_IMAGE: Self = Self {
        kind: ValueKind::Image,
        dtypes: &["uint8", "uint16", "float32"],
        channels: &[1, 3, 4],
    };
    /// A picture of 8 bits with alpha.
    pub const RGBA: Self = Self { channels: &[4], ..Self::IMAGE };
    /// A picture of 16 bits or of floats.
    pub const ELEMENTS: Self = Self { dtypes: &["uint16", "float32"], ..Self::IMAGE };
    /// A picture of floats.
    pub const FLOAT_IMAGE: Self = Self { dtypes: &["float32"], ..Self::IMAGE };
    /// A tensor of any element type.
    pub const TENSOR: Self = Self {
        kind: ValueKind::Tensor,
        dtypes: &["uint8", "uint16", "float16", "float32"],
        channels: &[1, 3, 4],
    };
    /// A tensor of a float type.
    pub const FLOATS: Self = Self { dtypes: &["float16", "float32"], ..Self::TENSOR };
    /// Sound.
    pub const AUDIO: Self = Self { kind: ValueKind::Audio, dtypes: &["float32"], channels: &[] };
    /// A spectrogram.
    pub const SPECTROGRAM: Self = Self { kind: ValueKind::Spectrogram, ..Self::AUDIO };
    /// A signal.
    pub const SIGNAL: Self = Self { kind: ValueKind::Signal, ..Self::AUDIO };
    /// Sound, a spectrogram or a signal.
    pub const SERIES: &'static [Self] = &[Self::AUDIO, Self::SPECTROGRAM, Self::SIGNAL];
    /// Text.
    pub const TEXT: Self = Self { kind: ValueKind::Text, dtypes: &["uint8"], channels: &[1] };
    /// Tokens in one plane.
    pub const TOKENS: Self = Self { kind: ValueKind::Tokens, dtypes: &["int32"], channels: &[1] };
    /// Tokens with segments and positions.
    pub const PACKABLE: Self = Self { channels: &[3], ..Self::TOKENS };
    /// Text, tokens or their embeddings.
    pub const TEXTS: &'static [ValueKind] =
        &[ValueKind::Text, ValueKind::Tokens, ValueKind::Embedding];
    /// Sound with 1 to 4 channels.
    pub const FEW_AUDIO: Self = Self { channels: &[1, 2, 3, 4], ..Self::AUDIO };
    /// A spectrogram with 1 to 4 channels.
    pub const FEW_SPECTROGRAM: Self = Self { channels: &[1, 2, 3, 4], ..Self::SPECTROGRAM };
    /// A signal with 1 to 4 channels.
    pub const FEW_SIGNAL: Self = Self { channels: &[1, 2, 3, 4], ..Self::SIGNAL };
    /// A batch of any element type.
    pub const BATCH: Self = Self { kind: ValueKind::Batch, ..Self::TENSOR };
}

/// Type of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OutputType {
    /// Kind of value.
    pub kind: ValueKind,
    /// Element type.
    pub dtype: Property,
    /// Height and width in pixels.
    pub size: Property,
    /// Channels.
    pub channels: Property,
}

impl OutputType {
    /// A picture with size and channels of the input.
    pub const IMAGE: Self = Self {
        kind: ValueKind::Image,
        dtype: Property::Same,
        size: Property::Same,
        channels: Property::Same,
    };
    /// A tensor with type, size and channels of the input.
    pub const TENSOR: Self = Self { kind: ValueKind::Tensor, ..Self::IMAGE };
    /// Sound, a spectrogram or a signal, whichever the input is.
    pub const SERIES: Self = Self { kind: ValueKind::Same, ..Self::IMAGE };
    /// A batch whose tensors have type, size and channels of the input.
    pub const BATCH: Self = Self { kind: ValueKind::Batch, ..Self::IMAGE };
}

/// How a property of the output is determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Property {
    /// Equal to that of the input.
    Same,
    /// By the file.
    Variable,
    /// By the value of a key.
    Key(&'static str),
    /// Always this value.
    Is(&'static str),
}

impl std::fmt::Display for Property {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Same => f.write_str("same"),
            Self::Variable => f.write_str("variable"),
            Self::Key(key) => write!(f, "key {key}"),
            Self::Is(value) => f.write_str(value),
        }
    }
}

impl Serialize for Property {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// How much of its input an operation needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Needs {
    /// All of it.
    All,
    /// A region, so that the rest need not be decoded.
    Region,
    /// As much as the operation after it.
    AsNext,
}

/// A random parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RandomParameter {
    /// Name.
    pub name: &'static str,
    /// Distribution, naming the keys that it depends on.
    pub distribution: &'static str,
}

/// A random parameter: whether an operation is applied, with the probability of the key `p`.
pub(super) const APPLIED: RandomParameter =
    RandomParameter { name: "applied", distribution: "true with probability `p`" };
/// The sign of the magnitude with which a policy applies an operation.
pub(super) const SIGN: RandomParameter = RandomParameter {
    name: "sign",
    distribution: "negative with probability 0.5, where the operation has a sign",
};

/// A key of an operation.
#[derive(Debug, PartialEq, Serialize)]
pub struct Key {
    /// Name in a recipe file.
    pub name: &'static str,
    /// Meaning, as a phrase that follows a comma.
    pub about: &'static str,
    /// Type and range.
    #[serde(flatten)]
    pub kind: KeyType,
    /// Value of a key that is left out, or an example for a key that must be given.
    #[serde(flatten)]
    pub presence: Presence,
    /// Whether the canonical form contains the key only if its value differs from the default. True
    /// for keys that were added to an existing operation, so that the hash of older recipes does
    /// not change.
    pub is_omitted_by_default: bool,
}

/// Whether a key must be given.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// It must; this is an example value.
    Example(Value),
    /// It need not; this is its default.
    Default(Value),
}

/// Type and range of a key.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum KeyType {
    /// True or false.
    Switch,
    /// One of some words.
    Word {
        /// The words.
        choices: &'static [&'static str],
    },
    /// True, false, or one of some words.
    SwitchOrWord {
        /// The words.
        choices: &'static [&'static str],
    },
    /// A whole number of pixels, or height and width.
    Size {
        /// What a whole number means.
        whole: WholeSize,
        /// Least length of a side.
        least: u32,
        /// Largest length of a side.
        most: u32,
    },
    /// One of some whole numbers.
    Whole {
        /// The numbers.
        choices: &'static [u32],
    },
    /// A number.
    Number(Bounds),
    /// Two numbers, the first not above the second.
    Interval {
        /// Range of both numbers.
        #[serde(flatten)]
        bounds: Bounds,
        /// The middle, if a single number x may replace the interval: it then means [middle - x,
        /// middle + x], with the lower end limited to the bounds.
        middle: Option<f64>,
    },
    /// One number for each channel.
    PerChannel,
    /// A whole number in a range.
    WholeIn {
        /// Least number.
        least: u32,
        /// Largest number.
        most: u32,
    },
    /// A whole number in a range, or one of some words.
    WholeOrWord {
        /// Least number.
        least: u32,
        /// Largest number.
        most: u32,
        /// The words.
        choices: &'static [&'static str],
    },
    /// Whole numbers in a range, one or more; a single one may be given without an array.
    WholeList {
        /// Maximum number of them.
        count_max: usize,
        /// Least number.
        least: u32,
        /// Largest number.
        most: u32,
    },
    /// Whole numbers in a range; if one is enough, it may be given without an array.
    Wholes {
        /// Permitted counts.
        counts: &'static [usize],
        /// Least number.
        least: u32,
        /// Largest number.
        most: u32,
    },
    /// Numbers in a range; if one is enough, it may be given without an array.
    Numbers {
        /// Permitted counts.
        counts: &'static [usize],
        /// Range of each number.
        #[serde(flatten)]
        bounds: Bounds,
    },
    /// One weight for each operation of the key `operations`, or none if all are equal.
    Weights,
    /// Operations, each a table with a name and keys.
    Operations,
    /// The path of a file; a relative path is resolved against the folder of the recipe file.
    File,
    /// The SHA-256 of the file that another key names, in 64 lower-case hexadecimal digits.
    Sha256,
    /// Names of columns, each once.
    Names,
    /// Pairs of different whole numbers of at least 0.
    Pairs {
        /// Maximum number of pairs.
        count_max: usize,
    },
}

/// What a whole number means as a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WholeSize {
    /// The shorter side; the aspect ratio is preserved.
    ShorterSide,
    /// Both sides.
    Square,
}

/// A range of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bounds {
    /// Least number.
    pub least: f64,
    /// Whether the least number itself is excluded.
    pub is_least_excluded: bool,
    /// Largest number; `None`: any finite number.
    pub most: Option<f64>,
}

impl Bounds {
    /// A probability or a share.
    pub const UNIT: Self = Self { least: 0.0, is_least_excluded: false, most: Some(1.0) };

    /// Any finite number above 0.
    pub const POSITIVE: Self = Self { least: 0.0, is_least_excluded: true, most: None };

    /// Any finite number of at least 0.
    pub const NOT_NEGATIVE: Self = Self { least: 0.0, is_least_excluded: false, most: None };

    /// An angle in degrees.
    pub const DEGREES: Self = Self { least: -360.0, is_least_excluded: false, most: Some(360.0) };

    /// A position in pixels, which may be outside of a picture, in a range in which positions are
    /// exact to a fraction of a pixel.
    pub const POSITION: Self =
        Self { least: -2_147_483_648.0, is_least_excluded: false, most: Some(2_147_483_648.0) };

    pub(super) fn contains(&self, number: f64) -> bool {
        let is_above =
            if self.is_least_excluded { self.least < number } else { self.least <= number };
        is_above && number.is_finite() && self.most.is_none_or(|most| number <= most)
    }
}

impl KeyType {
    /// A size in pixels.
    pub const fn size(whole: WholeSize) -> Self {
        Self::Size { whole, least: 1, most: SIDE_MAX }
    }

    /// The type in words.
    pub fn type_text(&self) -> String {
        match self {
            Self::Switch => "boolean".to_owned(),
            Self::Word { choices } => quoted(choices),
            Self::SwitchOrWord { choices } => format!("boolean, or {}", quoted(choices)),
            Self::Size { .. } => "integer, or [height, width]".to_owned(),
            Self::Whole { .. } => "integer".to_owned(),
            Self::Number(_) => "number".to_owned(),
            Self::Interval { middle: None, .. } => "[low, high]".to_owned(),
            Self::Interval { middle: Some(_), .. } => "number, or [low, high]".to_owned(),
            Self::PerChannel => "one number per channel".to_owned(),
            Self::WholeIn { .. } => "integer".to_owned(),
            Self::WholeOrWord { choices, .. } => format!("integer, or {}", quoted(choices)),
            Self::WholeList { count_max, .. } => format!("integer, or up to {count_max} integers"),
            Self::Wholes { counts, .. } => counted(counts, "integer"),
            Self::Numbers { counts, .. } => counted(counts, "number"),
            Self::Weights => "one number per operation".to_owned(),
            Self::Operations => "array of operations".to_owned(),
            Self::File => "path".to_owned(),
            Self::Sha256 => "64 hexadecimal digits".to_owned(),
            Self::Names => "array of names".to_owned(),
            Self::Pairs { .. } => "array of [index, index]".to_owned(),
        }
    }

    /// The range in words; empty if the type determines it.
    pub fn range_text(&self) -> String {
        match self {
            Self::Switch
            | Self::Word { .. }
            | Self::SwitchOrWord { .. }
            | Self::PerChannel
            | Self::Operations
            | Self::File
            | Self::Sha256
            | Self::Names => String::new(),
            Self::Pairs { count_max } => format!("up to {count_max} pairs"),
            Self::Weights => "0 or more, not all 0".to_owned(),
            Self::Size { least, most, .. }
            | Self::WholeIn { least, most }
            | Self::WholeOrWord { least, most, .. }
            | Self::WholeList { least, most, .. }
            | Self::Wholes { least, most, .. } => format!("{least} to {most}"),
            Self::Whole { choices } => {
                let choices: Vec<String> = choices.iter().map(u32::to_string).collect();
                choices.join(" or ")
            }
            Self::Number(Bounds { least, is_least_excluded, most })
            | Self::Numbers { bounds: Bounds { least, is_least_excluded, most }, .. } => {
                match (most, is_least_excluded) {
                    (Some(most), _) => format!("{least} to {most}"),
                    (None, true) => format!("more than {least}"),
                    (None, false) => format!("{least} or more"),
                }
            }
            Self::Interval { bounds: Bounds { least, is_least_excluded, most }, .. } => {
                let above = if *is_least_excluded { "<" } else { "<=" };
                let most = most.map(|most| format!(" <= {most}")).unwrap_or_default();
                format!("{least} {above} low <= high{most}")
            }
        }
    }
}

/// The permitted counts of a thing in words: "number, or 2 or 4 numbers".
fn counted(counts: &[usize], thing: &str) -> String {
    let (one, more): (Vec<usize>, Vec<usize>) = counts.iter().partition(|count| **count == 1);
    let more: Vec<String> = more.iter().map(usize::to_string).collect();
    match (one.is_empty(), more.is_empty()) {
        (_, true) => thing.to_owned(),
        (true, false) => format!("{} {thing}s", more.join(" or ")),
        (false, false) => format!("{thing}, or {} {thing}s", more.join(" or ")),
    }
}

fn quoted(words: &[&str]) -> String {
    format!("\"{}\"", words.join("\", \""))
}

impl Key {
    /// A required key, with an example value.
    pub const fn required(
        name: &'static str,
        kind: KeyType,
        example: Value,
        about: &'static str,
    ) -> Self {
        let presence = Presence::Example(example);
        Self { name, about, kind, presence, is_omitted_by_default: false }
    }

    /// A key with a default.
    pub const fn optional(
        name: &'static str,
        kind: KeyType,
        default: Value,
        about: &'static str,
    ) -> Self {
        let presence = Presence::Default(default);
        Self { name, about, kind, presence, is_omitted_by_default: false }
    }

    /// A key with a default, which the canonical form omits while it has that value.
    pub const fn added(
        name: &'static str,
        kind: KeyType,
        default: Value,
        about: &'static str,
    ) -> Self {
        let presence = Presence::Default(default);
        Self { name, about, kind, presence, is_omitted_by_default: true }
    }

    /// An optional key without a default: if it is missing, there is no value.
    pub const fn absent(name: &'static str, kind: KeyType, about: &'static str) -> Self {
        Self::optional(name, kind, Value::Absent, about)
    }

    /// The probability of an operation that is applied at random.
    pub(super) const fn probability(default: f64) -> Self {
        let default = Value::Number(default);
        Self::optional("p", KeyType::Number(Bounds::UNIT), default, "the probability")
    }

    /// The operations that an operation contains.
    pub(super) const fn operations() -> Self {
        const EXAMPLE: &[Described] =
            &[Described { name: "random_grayscale", keys: Cow::Borrowed(&[]) }];
        let example = Value::Operations(Cow::Borrowed(EXAMPLE));
        let about = "the operations; each has its own random parameters";
        Self::required("operations", KeyType::Operations, example, about)
    }

    /// `interpolation`, of an operation that resizes.
    pub(super) const fn interpolation() -> Self {
        let choices = super::vocabulary::Interpolation::NAMES;
        let (kind, default) = (KeyType::Word { choices }, Value::Word(choices[0]));
        Self::optional("interpolation", kind, default, "the filter, as Pillow defines it")
    }

    /// `interpolation`, of an operation that moves each pixel of a picture.
    pub(super) const fn warp_interpolation(default: WarpInterpolation) -> Self {
        let kind = KeyType::Word { choices: WarpInterpolation::NAMES };
        let about = "how a pixel is computed, as Pillow defines it";
        Self::optional("interpolation", kind, Value::Word(default.name()), about)
    }

    /// `antialias`, of an operation that resizes.
    pub(super) const fn antialias() -> Self {
        let about = "whether the filter widens when it shrinks, as Pillow's always does";
        Self::optional("antialias", KeyType::Switch, Value::Switch(true), about)
    }

    /// The default as TOML, or "required".
    pub fn default_text(&self) -> String {
        match &self.presence {
            Presence::Example(_) => "required".to_owned(),
            Presence::Default(value) => value.to_toml(),
        }
    }

    /// The remedy for a wrong value.
    pub(super) fn instruction(&self) -> String {
        format!("set `{}` to {}", self.name, self.expected())
    }

    /// Describes a valid value.
    fn expected(&self) -> String {
        let (about, range) = (self.about, self.kind.range_text());
        match self.kind {
            KeyType::Switch => "true or false".to_owned(),
            KeyType::Word { choices } => format!("one of {}", quoted(choices)),
            KeyType::SwitchOrWord { choices } => format!("true, false or {}", quoted(choices)),
            KeyType::Size { .. } => format!("pixels from {range}, or [height, width]"),
            KeyType::Whole { .. } => range,
            KeyType::Number(_) => format!("a number from {range}: {about}"),
            KeyType::Interval { middle: None, .. } => format!("[low, high], {about}, with {range}"),
            KeyType::Interval { bounds, middle: Some(middle) } => {
                let number = match bounds.most {
                    Some(most) => format!("a number from 0 to {}", most - middle),
                    None => "a number of at least 0".to_owned(),
                };
                format!("{number}, or [low, high] with {range}")
            }
            KeyType::PerChannel => {
                "one number per channel, such as [0.485, 0.456, 0.406]".to_owned()
            }
            KeyType::WholeIn { .. } => format!("a whole number from {range}: {about}"),
            KeyType::WholeOrWord { .. }
            | KeyType::WholeList { .. }
            | KeyType::Wholes { .. }
            | KeyType::Numbers { .. } => {
                format!("{about}: {}, {range}", self.kind.type_text())
            }
            KeyType::Weights => format!("one number per operation, each {range}"),
            KeyType::File => format!("the path of {about}"),
            KeyType::Sha256 => "64 lower-case hexadecimal digits, or leave it out".to_owned(),
            KeyType::Names => "names of columns, such as [\"labels\"]".to_owned(),
            KeyType::Pairs { count_max } => {
                format!("up to {count_max} pairs of indices, such as [[1, 2], [3, 4]]")
            }
            KeyType::Operations => {
                "a list of at least one operation, such as `random_grayscale`".to_owned()
            }
        }
    }
}

/// Numbers as a value, in a declaration.
pub(super) const fn numbers(numbers: &'static [f64]) -> Value {
    Value::Numbers(Cow::Borrowed(numbers))
}
