//! The declaration of a key of an operation: its type, range and default.

use crate::recipe::value::{Described, Value};
use crate::recipe::vocabulary::{Interpolation, WarpInterpolation};
use serde::Serialize;
use std::borrow::Cow;

/// Largest height or width that a recipe can request, in pixels: that of a JPEG.
pub(in crate::recipe) const SIDE_MAX: u32 = 65535;

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

    pub(in crate::recipe) fn contains(&self, number: f64) -> bool {
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
    pub(in crate::recipe) const fn probability(default: f64) -> Self {
        let default = Value::Number(default);
        Self::optional("p", KeyType::Number(Bounds::UNIT), default, "the probability")
    }

    /// The operations that an operation contains.
    pub(in crate::recipe) const fn operations() -> Self {
        const EXAMPLE: &[Described] =
            &[Described { name: "random_grayscale", keys: Cow::Borrowed(&[]) }];
        let example = Value::Operations(Cow::Borrowed(EXAMPLE));
        let about = "the operations; each has its own random parameters";
        Self::required("operations", KeyType::Operations, example, about)
    }

    /// `interpolation`, of an operation that resizes.
    pub(in crate::recipe) const fn interpolation() -> Self {
        let choices = Interpolation::NAMES;
        let (kind, default) = (KeyType::Word { choices }, Value::Word(choices[0]));
        Self::optional("interpolation", kind, default, "the filter, as Pillow defines it")
    }

    /// `interpolation`, of an operation that moves each pixel of a picture.
    pub(in crate::recipe) const fn warp_interpolation(default: WarpInterpolation) -> Self {
        let kind = KeyType::Word { choices: WarpInterpolation::NAMES };
        let about = "how a pixel is computed, as Pillow defines it";
        Self::optional("interpolation", kind, Value::Word(default.name()), about)
    }

    /// `antialias`, of an operation that resizes.
    pub(in crate::recipe) const fn antialias() -> Self {
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
    pub(in crate::recipe) fn instruction(&self) -> String {
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
pub(in crate::recipe) const fn numbers(numbers: &'static [f64]) -> Value {
    Value::Numbers(Cow::Borrowed(numbers))
}
