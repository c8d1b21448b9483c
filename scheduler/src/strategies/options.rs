//! The options of all strategies, as set by a job or a scenario.

use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, Unexpected, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::AnyStrategy;
use super::option::{AcceptedValues, OptionSpec, Value, share};
use crate::strategy_name::StrategyName;

/// Every strategy with its options, so that any of them can be run.
///
/// Serialized as a map of the strategies that have options to their maps of options and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrategyOptions([AnyStrategy; StrategyName::ALL.len()]);

impl Default for StrategyOptions {
    fn default() -> Self {
        Self(StrategyName::ALL.map(StrategyName::with_defaults))
    }
}

impl StrategyOptions {
    /// A strategy with its options.
    pub fn strategy(&self, name: StrategyName) -> AnyStrategy {
        self.0[name as usize]
    }

    /// Replaces the options of a strategy.
    pub fn set(&mut self, strategy: impl Into<AnyStrategy>) {
        let strategy = strategy.into();
        self.0[strategy.name() as usize] = strategy;
    }

    /// Replaces the options of one strategy.
    #[must_use]
    pub fn with(mut self, strategy: impl Into<AnyStrategy>) -> Self {
        self.set(strategy);
        self
    }

    /// The strategies that have options.
    pub fn iter(&self) -> impl Iterator<Item = AnyStrategy> {
        self.0.into_iter().filter(|strategy| !strategy.options().is_empty())
    }
}

impl Serialize for StrategyOptions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|strategy| (strategy.name(), OptionsOf(strategy))))
    }
}

/// The options of one strategy as a map.
struct OptionsOf(AnyStrategy);

impl Serialize for OptionsOf {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let options = self.0.options();
        let mut map = serializer.serialize_map(Some(options.len()))?;
        for (spec, value) in options {
            match (value, &spec.takes.share) {
                (Value::Word(word), _) => map.serialize_entry(spec.name, word)?,
                (Value::Whole(number), _) => map.serialize_entry(spec.name, &number)?,
                (Value::Share(parts), form) => {
                    let key = form.as_ref().map_or("share", |form| form.key);
                    let table = std::collections::BTreeMap::from([(key, share(parts))]);
                    map.serialize_entry(spec.name, &table)?;
                }
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for StrategyOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(StrategyOptionsVisitor)
    }
}

struct StrategyOptionsVisitor;

impl<'de> Visitor<'de> for StrategyOptionsVisitor {
    type Value = StrategyOptions;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("strategies with their options")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StrategyOptions, A::Error> {
        let mut all = StrategyOptions::default();
        while let Some(name) = map.next_key::<StrategyName>()? {
            all.set(map.next_value_seed(name)?);
        }
        Ok(all)
    }
}

/// Reads a map of options: returns the strategy of this name with them, and with defaults for the
/// others.
impl<'de> DeserializeSeed<'de> for StrategyName {
    type Value = AnyStrategy;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<AnyStrategy, D::Error> {
        deserializer.deserialize_map(OptionsVisitor(self))
    }
}

struct OptionsVisitor(StrategyName);

impl<'de> Visitor<'de> for OptionsVisitor {
    type Value = AnyStrategy;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a table with the options of {}", self.0)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AnyStrategy, A::Error> {
        let mut strategy = self.0.with_defaults();
        let options = self.0.options();
        while let Some(spec) = map.next_key_seed(KeySeed(&options))? {
            let value = map.next_value_seed(ValueSeed(&spec.takes))?;
            strategy.set(spec.name, value).map_err(A::Error::custom)?;
        }
        Ok(strategy)
    }
}

/// Reads the name of one of these options.
struct KeySeed<'o>(&'o [(&'static OptionSpec, Value)]);

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = &'static OptionSpec;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for KeySeed<'_> {
    type Value = &'static OptionSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of an option")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        let found = self.0.iter().find(|(spec, _)| spec.name == text);
        found.map(|(spec, _)| *spec).ok_or_else(|| {
            let names: Vec<String> =
                self.0.iter().map(|(spec, _)| format!("`{}`", spec.name)).collect();
            let known = if names.is_empty() { "no options".to_owned() } else { names.join(", ") };
            E::custom(format!("unknown field `{text}`, expected {known}"))
        })
    }
}

/// Reads a value that an option accepts.
struct ValueSeed<'t>(&'t AcceptedValues);

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        let found = self.0.word(text);
        found.ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        let found = self.0.number(number);
        found.ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        let found = u64::try_from(number).ok().and_then(|number| self.0.number(number));
        found.ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let Some(form) = &self.0.share else {
            return Err(A::Error::invalid_type(Unexpected::Map, &self));
        };
        let mut share = None;
        while let Some(key) = map.next_key::<String>()? {
            if key != form.key {
                let known = format!("unknown field `{key}`, expected `{}`", form.key);
                return Err(A::Error::custom(known));
            }
            share = Some(map.next_value_seed(ShareSeed(self.0))?);
        }
        share.ok_or_else(|| A::Error::missing_field(form.key))
    }
}

/// Reads a share between 0 and 1.
struct ShareSeed<'t>(&'t AcceptedValues);

impl<'de> DeserializeSeed<'de> for ShareSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let number = f64::deserialize(deserializer)?;
        let found = self.0.part(number);
        let range = &"a number from 0 to 1";
        found.ok_or_else(|| D::Error::invalid_value(Unexpected::Float(number), range))
    }
}
