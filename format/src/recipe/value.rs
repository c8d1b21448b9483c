//! The value of a key, as stored in a recipe file, the canonical form and the schema.

use serde::ser::{Serialize, SerializeMap, Serializer};
use std::borrow::Cow;

/// The value of a key.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A boolean.
    Switch(bool),
    /// One of the words that the key declares.
    Word(&'static str),
    /// A whole number.
    Whole(u32),
    /// Height and width in pixels.
    Sides([u32; 2]),
    /// A number.
    Number(f64),
    /// A lower and an upper bound, one number for each channel or operation, or coordinates.
    Numbers(Cow<'static, [f64]>),
    /// Whole numbers; a single one is written as a number.
    Wholes(#[serde(serialize_with = "one_or_more")] Cow<'static, [u32]>),
    /// Names of columns.
    Names(Cow<'static, [String]>),
    /// Pairs of whole numbers.
    Pairs(Cow<'static, [[u32; 2]]>),
    /// The path of a file.
    File(Cow<'static, str>),
    /// A checksum in hexadecimal digits.
    Digest(Cow<'static, str>),
    /// The operations that an operation contains.
    Operations(Cow<'static, [Described]>),
    /// No value: the key is left out.
    Absent,
}

/// A single number as such, several as an array.
fn one_or_more<S: Serializer>(numbers: &[u32], serializer: S) -> Result<S::Ok, S::Error> {
    match numbers {
        [number] => serializer.serialize_u32(*number),
        _ => serializer.collect_seq(numbers),
    }
}

/// An operation as data: its name and the values of its keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    /// Name in a recipe file.
    pub name: &'static str,
    /// Keys and their values.
    pub keys: Cow<'static, [(&'static str, Value)]>,
}

impl Described {
    /// The name, under the given key, and the other keys with their values as text.
    fn members(
        &self,
        name: &'static str,
        spell: impl Fn(&Value) -> String,
    ) -> Vec<(&'static str, String)> {
        let name = (name, spell(&Value::Word(self.name)));
        let keys = self.keys.iter().map(|(key, value)| (*key, spell(value)));
        std::iter::once(name).chain(keys).collect()
    }

    /// An inline table in TOML.
    fn to_toml(&self) -> String {
        let members = self.members("name", Value::to_toml).into_iter();
        let members: Vec<String> = members.map(|(key, value)| format!("{key} = {value}")).collect();
        format!("{{ {} }}", members.join(", "))
    }

    /// The canonical form of an operation.
    pub(super) fn to_json(&self) -> String {
        self.to_json_with("name")
    }

    /// The canonical form, with the given key for the name: keys in alphabetical order.
    pub(super) fn to_json_with(&self, name: &'static str) -> String {
        let mut members = self.members(name, Value::to_json);
        members.sort_by_key(|(key, _)| *key);
        let members: Vec<String> =
            members.into_iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        format!("{{{}}}", members.join(","))
    }
}

impl Serialize for Described {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.keys.len() + 1))?;
        map.serialize_entry("name", self.name)?;
        for (key, value) in self.keys.iter() {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl Value {
    /// The value in TOML.
    ///
    /// `{:?}` of a float is the shortest text that parses to it, and always a TOML float.
    pub fn to_toml(&self) -> String {
        self.spell(", ", |number| format!("{number:?}"), Described::to_toml)
    }

    /// The value in the canonical form.
    pub(super) fn to_json(&self) -> String {
        self.spell(",", plain_decimal, Described::to_json)
    }

    fn spell(
        &self,
        comma: &str,
        float: impl Fn(f64) -> String,
        operation: impl Fn(&Described) -> String,
    ) -> String {
        match self {
            Self::Word(word) => format!("\"{word}\""),
            Self::Switch(on) => on.to_string(),
            Self::Whole(number) => number.to_string(),
            Self::Sides([height, width]) => format!("[{height}{comma}{width}]"),
            Self::Number(number) => float(*number),
            Self::Numbers(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(|number| float(*number)).collect();
                format!("[{}]", numbers.join(comma))
            }
            Self::Wholes(numbers) => match &numbers[..] {
                [number] => number.to_string(),
                numbers => {
                    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
                    format!("[{}]", numbers.join(comma))
                }
            },
            Self::Names(names) => {
                let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
                format!("[{}]", names.join(comma))
            }
            Self::Pairs(pairs) => {
                let pair = |[one, other]: &[u32; 2]| format!("[{one}{comma}{other}]");
                let pairs: Vec<String> = pairs.iter().map(pair).collect();
                format!("[{}]", pairs.join(comma))
            }
            Self::Operations(operations) => {
                let operations: Vec<String> = operations.iter().map(operation).collect();
                format!("[{}]", operations.join(comma))
            }
            Self::File(text) | Self::Digest(text) => quoted(text),
            Self::Absent => "none".to_owned(),
        }
    }
}

impl From<(f64, f64)> for Value {
    fn from((low, high): (f64, f64)) -> Self {
        Self::Numbers(vec![low, high].into())
    }
}

impl From<Option<(f64, f64)>> for Value {
    fn from(pair: Option<(f64, f64)>) -> Self {
        pair.map_or(Self::Absent, Self::from)
    }
}

/// A quoted text, valid in both TOML and JSON: the two agree about non-ASCII characters and about
/// the escapes of quotes, backslashes and control characters.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control.is_control() && u32::from(control) < 0x80 => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(control)));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// The fewest digits that parse to the number, never with an exponent; both zeros are "0".
fn plain_decimal(number: f64) -> String {
    if number == 0.0 { "0".to_owned() } else { format!("{number}") }
}

/// The values of all keys of an operation that is being read, of the declared types.
///
/// Each getter panics for a key that the operation does not declare with that type; a test reads
/// every operation.
#[derive(Debug)]
pub(super) struct Values(pub(super) Vec<(&'static str, Value)>);

impl Values {
    fn get(&self, key: &str) -> &Value {
        let found = self.0.iter().find(|(name, _)| *name == key);
        &found.unwrap_or_else(|| panic!("`{key}` is not declared")).1
    }

    /// A boolean, or `None` for a word.
    pub(super) fn switch_or_word(&self, key: &str) -> Option<bool> {
        match self.get(key) {
            Value::Switch(on) => Some(*on),
            Value::Word(_) => None,
            other => panic!("`{key}` is {other:?}, neither a boolean nor a word"),
        }
    }

    pub(super) fn switch(&self, key: &str) -> bool {
        self.switch_or_word(key).unwrap_or_else(|| panic!("`{key}` is a word"))
    }

    /// A word, converted to the value that it names.
    pub(super) fn named<T>(&self, key: &str, from_name: impl Fn(&str) -> Option<T>) -> T {
        let Value::Word(word) = self.get(key) else { panic!("`{key}` is not a word") };
        from_name(word).unwrap_or_else(|| panic!("`{key}` declares the unknown word {word}"))
    }

    pub(super) fn whole(&self, key: &str) -> u32 {
        let Value::Whole(number) = self.get(key) else { panic!("`{key}` is not a whole number") };
        *number
    }

    /// Height and width; `Err` with the number if the value is one number.
    pub(super) fn size(&self, key: &str) -> Result<(u32, u32), u32> {
        match *self.get(key) {
            Value::Sides([height, width]) => Ok((height, width)),
            Value::Whole(side) => Err(side),
            ref other => panic!("`{key}` is {other:?}, not a size"),
        }
    }

    /// Height and width; a single whole number sets both.
    pub(super) fn sides(&self, key: &str) -> (u32, u32) {
        self.size(key).unwrap_or_else(|side| (side, side))
    }

    pub(super) fn number(&self, key: &str) -> f64 {
        let Value::Number(number) = self.get(key) else { panic!("`{key}` is not a number") };
        *number
    }

    pub(super) fn numbers(&self, key: &str) -> &[f64] {
        let Value::Numbers(numbers) = self.get(key) else { panic!("`{key}` is not an array") };
        numbers
    }

    pub(super) fn wholes(&self, key: &str) -> &[u32] {
        let Value::Wholes(numbers) = self.get(key) else { panic!("`{key}` is not whole numbers") };
        numbers
    }

    /// A number of an optional key.
    pub(super) fn optional_whole(&self, key: &str) -> Option<u32> {
        (*self.get(key) != Value::Absent).then(|| self.whole(key))
    }

    /// Height and width of an optional key.
    pub(super) fn optional_sides(&self, key: &str) -> Option<(u32, u32)> {
        (*self.get(key) != Value::Absent).then(|| self.sides(key))
    }

    /// A number, or `None` for a word.
    pub(super) fn whole_or_word(&self, key: &str) -> Option<u32> {
        match self.get(key) {
            Value::Whole(number) => Some(*number),
            Value::Word(_) => None,
            other => panic!("`{key}` is {other:?}, neither a whole number nor a word"),
        }
    }

    /// Two numbers of an optional key.
    pub(super) fn optional_pair(&self, key: &str) -> Option<(f64, f64)> {
        (*self.get(key) != Value::Absent).then(|| self.interval(key))
    }

    /// A number of an optional key.
    pub(super) fn optional_number(&self, key: &str) -> Option<f64> {
        (*self.get(key) != Value::Absent).then(|| self.number(key))
    }

    /// A word of an optional key, converted to the value that it names.
    pub(super) fn optional_named<T>(
        &self,
        key: &str,
        from_name: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        (*self.get(key) != Value::Absent).then(|| self.named(key, from_name))
    }

    /// The path of a file.
    pub(super) fn file(&self, key: &str) -> &str {
        let Value::File(path) = self.get(key) else { panic!("`{key}` is not a path") };
        path
    }

    /// A checksum of an optional key.
    pub(super) fn optional_digest(&self, key: &str) -> Option<&str> {
        match self.get(key) {
            Value::Absent => None,
            Value::Digest(digits) => Some(digits),
            other => panic!("`{key}` is {other:?}, not a checksum"),
        }
    }

    pub(super) fn names(&self, key: &str) -> &[String] {
        let Value::Names(names) = self.get(key) else { panic!("`{key}` is not names") };
        names
    }

    pub(super) fn pairs(&self, key: &str) -> &[[u32; 2]] {
        let Value::Pairs(pairs) = self.get(key) else { panic!("`{key}` is not pairs") };
        pairs
    }

    pub(super) fn operations(&self, key: &str) -> &[Described] {
        let Value::Operations(found) = self.get(key) else { panic!("`{key}` has no operations") };
        found
    }

    pub(super) fn interval(&self, key: &str) -> (f64, f64) {
        let [low, high] = self.numbers(key) else { panic!("`{key}` is not an interval") };
        (*low, *high)
    }
}
