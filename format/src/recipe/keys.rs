//! The keys of one operation's table: typed access, each fault with its line and column.

use super::error::{Problem, RecipeError};
use super::nearest::nearest;
use super::operation::Scale;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The word for [`Scale::Divide`].
pub(super) const DIVIDE: &str = "divide";

/// One `[[operation]]` table.
pub(super) struct Keys<'t> {
    text: &'t str,
    index: usize,
    /// Where the table begins in the text.
    start: usize,
    /// Value of the key `name`.
    pub(super) name: &'t str,
    entries: &'t DeTable<'t>,
}

impl<'t> Keys<'t> {
    /// A table that has a name.
    pub(super) fn new(
        text: &'t str,
        index: usize,
        start: usize,
        entries: &'t DeTable<'t>,
    ) -> Result<Self, RecipeError> {
        let keys = Self { text, index, start, name: "?", entries };
        let remedy = "name = \"...\", such as name = \"decode\"";
        let value = keys.required("name", remedy)?;
        let DeValue::String(name) = value.get_ref() else {
            return Err(keys.wrong_type("name", value, remedy));
        };
        Ok(Self { name, ..keys })
    }

    /// Refuses a key that is neither `name` nor one of `known`.
    pub(super) fn allow(&self, known: &[&str]) -> Result<(), RecipeError> {
        let stranger = self
            .entries
            .keys()
            .filter(|key| key.get_ref() != "name" && !known.contains(&key.get_ref().as_ref()))
            .min_by_key(|key| key.span().start);
        let Some(key) = stranger else {
            return Ok(());
        };
        let guess = nearest(key.get_ref(), known).map(|near| format!("did you mean `{near}`? "));
        let known = match known {
            [] => "it has no keys but `name`".to_owned(),
            _ => format!("its keys are {}", known.join(", ")),
        };
        let problem = format!("unknown key `{}`", key.get_ref());
        let remedy = guess.unwrap_or_default() + &known;
        Err(self.fault(key.span().start, &problem, &remedy))
    }

    /// Where a key's value begins; where there is no such key, the name or the table.
    pub(super) fn offset_of(&self, key: &str) -> usize {
        let value = self.entries.get(key).or_else(|| self.entries.get("name"));
        value.map_or(self.start, |value| value.span().start)
    }

    /// `size`: an integer, or [height, width].
    pub(super) fn size(&self) -> Result<(u32, Option<u32>), RecipeError> {
        let remedy = "pixels as a whole number, or [height, width]";
        let value = self.required("size", remedy)?;
        match value.get_ref() {
            DeValue::Integer(_) => Ok((self.pixels(value, remedy)?, None)),
            DeValue::Array(sides) => match &sides[..] {
                [height, width] => {
                    let height = self.pixels(height, remedy)?;
                    Ok((height, Some(self.pixels(width, remedy)?)))
                }
                _ => Err(self.wrong_length("size", value, sides.len(), remedy)),
            },
            _ => Err(self.wrong_type("size", value, remedy)),
        }
    }

    /// A truth value.
    pub(super) fn switch(&self, key: &str, default: bool) -> Result<bool, RecipeError> {
        match self.entries.get(key) {
            None => Ok(default),
            Some(value) => match value.get_ref() {
                DeValue::Boolean(on) => Ok(*on),
                _ => Err(self.wrong_type(key, value, "true or false")),
            },
        }
    }

    /// How to scale.
    pub(super) fn scale(&self) -> Result<Scale, RecipeError> {
        let Some(value) = self.entries.get("scale") else { return Ok(Scale::default()) };
        match value.get_ref() {
            DeValue::Boolean(false) => Ok(Scale::None),
            DeValue::Boolean(true) => Ok(Scale::Multiply),
            DeValue::String(word) if word == DIVIDE => Ok(Scale::Divide),
            _ => Err(self.wrong_type("scale", value, "true, false or \"divide\"")),
        }
    }

    /// A number.
    pub(super) fn number(&self, key: &str, default: f64) -> Result<f64, RecipeError> {
        let value = self.entries.get(key);
        value.map_or(Ok(default), |value| self.float(key, value, "a number"))
    }

    /// An array of exactly `N` numbers; a key without a default is required.
    pub(super) fn numbers<const N: usize>(
        &self,
        key: &str,
        default: Option<[f64; N]>,
        remedy: &str,
    ) -> Result<[f64; N], RecipeError> {
        let value = match (self.entries.get(key), default) {
            (None, Some(default)) => return Ok(default),
            _ => self.required(key, remedy)?,
        };
        let DeValue::Array(elements) = value.get_ref() else {
            return Err(self.wrong_type(key, value, remedy));
        };
        let numbers: Vec<f64> = elements
            .iter()
            .map(|element| self.float(key, element, remedy))
            .collect::<Result<_, _>>()?;
        <[f64; N]>::try_from(numbers)
            .map_err(|numbers| self.wrong_length(key, value, numbers.len(), remedy))
    }

    /// One of a few words; a key without a default is required.
    pub(super) fn one_of<T: Copy>(
        &self,
        key: &str,
        known: &[(&'static str, T)],
        default: Option<T>,
    ) -> Result<T, RecipeError> {
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        let remedy = format!("one of \"{}\"", words.join("\", \""));
        let value = match (self.entries.get(key), default) {
            (None, Some(default)) => return Ok(default),
            _ => self.required(key, &remedy)?,
        };
        let DeValue::String(found) = value.get_ref() else {
            return Err(self.wrong_type(key, value, &remedy));
        };
        if let Some((_, choice)) = known.iter().find(|(word, _)| word == found) {
            return Ok(*choice);
        }
        let guess = nearest(found, &words).map(|near| format!("did you mean \"{near}\"? "));
        let problem = format!("`{key}` is {found:?}");
        Err(self.fault(value.span().start, &problem, &(guess.unwrap_or_default() + &remedy)))
    }

    /// A fault of this operation at a place in the text.
    pub(super) fn fault(&self, offset: usize, problem: &str, remedy: &str) -> RecipeError {
        let (number, name) = (self.index + 1, self.name);
        Problem::of_recipe(format!("operation {number} ({name}): {problem}"), remedy)
            .at(Some(line_and_column(self.text, offset)))
    }

    fn required(&self, key: &str, remedy: &str) -> Result<&'t Spanned<DeValue<'t>>, RecipeError> {
        self.entries.get(key).ok_or_else(|| {
            self.fault(self.offset_of("name"), &format!("the key `{key}` is missing"), remedy)
        })
    }

    fn pixels(&self, value: &Spanned<DeValue<'_>>, remedy: &str) -> Result<u32, RecipeError> {
        let DeValue::Integer(number) = value.get_ref() else {
            return Err(self.wrong_type("size", value, remedy));
        };
        u32::from_str_radix(number.as_str(), number.radix()).map_err(|_| {
            let problem = format!("`size` holds {number}");
            self.fault(value.span().start, &problem, "pixels from 1 to 65535")
        })
    }

    /// A float, or an integer where a float is meant.
    fn float(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        remedy: &str,
    ) -> Result<f64, RecipeError> {
        match value.get_ref() {
            DeValue::Float(number) => number.as_str().parse().ok(),
            DeValue::Integer(number) => {
                i64::from_str_radix(number.as_str(), number.radix()).ok().map(|it| it as f64)
            }
            _ => None,
        }
        .ok_or_else(|| self.wrong_type(key, value, remedy))
    }

    fn wrong_type(&self, key: &str, value: &Spanned<DeValue<'_>>, remedy: &str) -> RecipeError {
        let problem = format!("`{key}` holds {}", kind(value.get_ref()));
        self.fault(value.span().start, &problem, remedy)
    }

    fn wrong_length(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        got: usize,
        remedy: &str,
    ) -> RecipeError {
        let problem = format!("`{key}` is an array of {got}");
        self.fault(value.span().start, &problem, remedy)
    }
}

/// What a value is, in words.
pub(super) fn kind(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text {text:?}"),
        DeValue::Integer(number) => format!("the whole number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(on) => on.to_string(),
        DeValue::Datetime(date) => format!("the date {date}"),
        DeValue::Array(_) => "an array".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// Line and column of a byte of the text, both counted from 1, columns in characters.
pub(super) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    // Every character has exactly one byte that does not continue another.
    let column = before[line_start..].iter().filter(|byte| (**byte & 0xc0) != 0x80).count() + 1;
    (line, column)
}
