//! Declarations of options of strategies: the values that each accepts.

use std::fmt;
use std::ops::RangeInclusive;

use super::StrategyName;

/// A value of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// One of [`AcceptedValues::words`].
    Word(&'static str),
    /// A whole number within [`AcceptedValues::whole`].
    Whole(u32),
    /// A share between 0 and 1 under [`AcceptedValues::share`], in millionths.
    Share(u32),
}

/// Number of parts (millionths) in a share of 1.
pub(crate) const SHARE_PARTS: u32 = 1_000_000;

/// The values of an option: one of some words, a whole number, or a share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedValues {
    /// The words.
    pub words: &'static [&'static str],
    /// Whole numbers.
    pub whole: Option<WholeRange>,
    /// A share between 0 and 1.
    pub share: Option<Share>,
}

/// The range of whole numbers that an option accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeRange {
    /// From the smallest to the largest.
    pub range: RangeInclusive<u32>,
    /// The counted quantity, such as "the devices' batches".
    pub counts: &'static str,
}

/// A share between 0 and 1 that an option accepts, written as a table with one key: `{time = 0.7}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The key.
    pub key: &'static str,
    /// The meaning of the share, such as "the share of time in a mix of both".
    pub means: &'static str,
}

/// An option of a strategy, as its file declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionSpec {
    /// Its name in job files.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// The values that it accepts.
    pub takes: AcceptedValues,
}

/// An unknown option, or a value that an option does not accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongOption {
    /// The strategy has no such option.
    #[error(
        "strategy {strategy} has no option {option:?}; it has {}",
        if .known.is_empty() { "none".to_owned() } else { .known.join(", ") }
    )]
    Unknown {
        /// The strategy.
        strategy: StrategyName,
        /// The given value.
        option: String,
        /// Its options.
        known: Vec<&'static str>,
    },
    /// The option does not accept the value.
    #[error("{strategy}.{option} is {value}; set it to {takes}")]
    Value {
        /// The strategy.
        strategy: StrategyName,
        /// The option.
        option: &'static str,
        /// The given value.
        value: Value,
        /// The values that it accepts.
        takes: AcceptedValues,
    },
}

impl WholeRange {
    /// Any number.
    pub(crate) const fn any(counts: &'static str) -> Self {
        Self { range: 0..=u32::MAX, counts }
    }

    /// A range of numbers.
    pub(crate) const fn within(least: u32, most: u32, counts: &'static str) -> Self {
        Self { range: RangeInclusive::new(least, most), counts }
    }
}

impl AcceptedValues {
    /// An empty declaration.
    pub(crate) const NOTHING: Self = Self { words: &[], whole: None, share: None };

    /// The value of a text, if the option accepts it.
    pub fn word(&self, text: &str) -> Option<Value> {
        self.words.iter().find(|&&word| word == text).map(|&word| Value::Word(word))
    }

    /// The value of a whole number, if the option accepts it.
    pub fn number(&self, number: u64) -> Option<Value> {
        let number = u32::try_from(number).ok()?;
        self.whole.as_ref()?.range.contains(&number).then_some(Value::Whole(number))
    }

    /// The value of a share from 0 to 1, if the option accepts it.
    pub fn part(&self, share: f64) -> Option<Value> {
        let is_share = self.share.is_some() && (0.0..=1.0).contains(&share);
        is_share.then(|| Value::Share((share * f64::from(SHARE_PARTS)).round() as u32))
    }

    /// Whether it accepts a value.
    pub fn contains(&self, value: Value) -> bool {
        match value {
            Value::Word(word) => self.words.contains(&word),
            Value::Whole(number) => self.number(number.into()).is_some(),
            Value::Share(parts) => self.share.is_some() && parts <= SHARE_PARTS,
        }
    }
}

/// The text for the remedy of an error: `"equal-finish", "optimal" or the devices' batches`.
impl fmt::Display for AcceptedValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.words.iter().map(|word| format!("{word:?}")).collect();
        let whole = self.whole.as_ref().map(|whole| {
            let (least, most) = (whole.range.start(), whole.range.end());
            match (words.is_empty(), *most) {
                (true, _) => format!("a whole number from {least} to {most}"),
                (false, u32::MAX) => whole.counts.to_owned(),
                (false, most) => format!("{}, from {least} to {most}", whole.counts),
            }
        });
        let share =
            self.share.as_ref().map(|share| format!("{}, {{{} = 0.7}}", share.means, share.key));
        let others: Vec<String> = whole.into_iter().chain(share).collect();
        match others.is_empty() {
            true => write!(f, "one of {}", words.join(", ")),
            false if words.is_empty() => f.write_str(&others.join(" or ")),
            false => write!(f, "{} or {}", words.join(", "), others.join(" or ")),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => f.write_str(word),
            Self::Whole(number) => write!(f, "{number}"),
            Self::Share(parts) => write!(f, "{}", share(*parts)),
        }
    }
}

/// A share between 0 and 1 from its millionths.
pub(crate) fn share(parts: u32) -> f64 {
    f64::from(parts) / f64::from(SHARE_PARTS)
}

/// The texts of a table of words.
pub(crate) const fn texts<T: Copy, const N: usize>(
    words: &[(&'static str, T); N],
) -> [&'static str; N] {
    let mut texts = [""; N];
    let mut at = 0;
    while at < N {
        texts[at] = words[at].0;
        at += 1;
    }
    texts
}

/// The word for a value of an enum.
pub(crate) fn word_of<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> Value {
    let word = words.iter().find(|(_, meaning)| meaning == value);
    Value::Word(word.expect("every value has a word").0)
}

/// Sets the value of a word; `false` for an unknown word.
pub(crate) fn set_word<T: Copy>(words: &[(&'static str, T)], value: Value, to: &mut T) -> bool {
    let Value::Word(text) = value else { return false };
    let found = words.iter().find(|(word, _)| *word == text);
    if let Some((_, meaning)) = found {
        *to = *meaning;
    }
    found.is_some()
}
