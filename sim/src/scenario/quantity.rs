//! Quantities of a scenario, written with units: `20ms`, `512MiB`, `500MB/s`.
//!
//! The units are those of job files. A number without a unit is refused, because its unit would be
//! ambiguous.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use meetpoint_format::units::{BYTES, TIMES, parse};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A span of virtual time, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub u64);

/// A count of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

/// Bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bandwidth(pub u64);

/// The text is not a quantity of the expected kind; the message names the expected form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not {wanted}")]
pub struct NotAQuantity {
    text: String,
    wanted: &'static str,
}

const SPAN: &str = "a time with a unit, such as \"100us\", \"20ms\" or \"2s\"";
const BYTE_COUNT: &str = "bytes with a unit, such as \"38MB\" or \"512MiB\"";
const RATE: &str = "bytes a second with a unit, such as \"500MB/s\"";

impl FromStr for Span {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        parse(text, &TIMES).map(Self).ok_or_else(|| not(text, SPAN))
    }
}

impl FromStr for Bytes {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        parse(text, &BYTES).map(Self).ok_or_else(|| not(text, BYTE_COUNT))
    }
}

impl FromStr for Bandwidth {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        let bytes = text.trim().strip_suffix("/s").and_then(|bytes| parse(bytes, &BYTES));
        bytes.filter(|bytes| *bytes > 0).map(Self).ok_or_else(|| not(text, RATE))
    }
}

fn not(text: &str, wanted: &'static str) -> NotAQuantity {
    NotAQuantity { text: text.to_owned(), wanted }
}

/// Writes a value in the largest unit in which it is an integer.
fn show(f: &mut Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let whole =
        units.iter().filter(|(_, factor)| value >= *factor && value.is_multiple_of(*factor));
    let smallest = units.iter().find(|(_, factor)| *factor == 1).expect("each list has one");
    let (unit, factor) = whole.max_by_key(|(_, factor)| *factor).unwrap_or(smallest);
    write!(f, "{}{unit}", value / factor)
}

impl Display for Span {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        show(f, self.0, &TIMES)
    }
}

impl Display for Bytes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        show(f, self.0, &BYTES)
    }
}

impl Display for Bandwidth {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        show(f, self.0, &BYTES)?;
        f.write_str("/s")
    }
}

/// Parses a quantity from a string; errors for other types name the expected form.
struct TextVisitor<T>(&'static str, std::marker::PhantomData<T>);

impl<T: FromStr<Err = NotAQuantity>> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

fn deserialize<'de, T, D>(deserializer: D, wanted: &'static str) -> Result<T, D::Error>
where
    T: FromStr<Err = NotAQuantity>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_str(TextVisitor(wanted, std::marker::PhantomData))
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer, SPAN)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer, BYTE_COUNT)
    }
}

impl<'de> Deserialize<'de> for Bandwidth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer, RATE)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_and_shown_as_people_write_them() {
        for text in ["0ns", "20ms", "1500us", "2s", "7ns"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        assert_eq!("1.5s".parse::<Span>(), Ok(Span(1_500_000_000)));
        assert_eq!("38MB".parse::<Bytes>(), Ok(Bytes(38_000_000)));
        assert_eq!("500MB/s".parse::<Bandwidth>().unwrap().to_string(), "500MB/s");
        assert_eq!(Bytes(3 << 20).to_string(), "3MiB");
    }

    #[test]
    fn anything_else_is_refused_with_what_would_be_right() {
        for text in ["", "5", "5m", "-1s", "infs", "1e3s"] {
            let error = text.parse::<Span>().unwrap_err().to_string();
            assert!(error.contains("such as \"100us\""), "{error}");
        }
        assert!("0MB/s".parse::<Bandwidth>().is_err());
        assert!("500MB".parse::<Bandwidth>().is_err());
    }
}
