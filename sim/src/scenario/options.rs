//! The tables of strategies in a scenario: `[mte]`, `[windowed]`, … beside the scenario's own keys.
//!
//! The strategies declare these tables and their keys. A scenario is read in one pass: tables named
//! after a strategy become its options, everything else becomes fields.

use std::fmt::{self, Formatter};

use meetpoint_scheduler::{StrategyName, StrategyOptions};
use serde::de::{DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};

use super::Scenario;

impl<'de> Deserialize<'de> for Scenario {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut options = StrategyOptions::default();
        let fields = &[];
        let scenario =
            Self::of_fields(OptionSplitter { inner: deserializer, options: &mut options, fields })?;
        Ok(Self { options, ..scenario })
    }
}

/// The strategies that have a table.
fn tables() -> impl Iterator<Item = StrategyName> {
    StrategyName::ALL.into_iter().filter(|name| !name.options().is_empty())
}

/// A wrapper of a deserializer, its visitor or its map, which separates the tables of strategies.
struct OptionSplitter<'o, T> {
    inner: T,
    options: &'o mut StrategyOptions,
    /// Keys of the scenario itself.
    fields: &'static [&'static str],
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for OptionSplitter<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let Self { inner, options, fields } = self;
        inner.deserialize_any(OptionSplitter { inner: visitor, options, fields })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let Self { inner, options, .. } = self;
        inner.deserialize_struct(name, fields, OptionSplitter { inner: visitor, options, fields })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for OptionSplitter<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        let Self { inner, options, fields } = self;
        inner.visit_map(OptionSplitter { inner: map, options, fields })
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for OptionSplitter<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let mut seed = Some(seed);
        loop {
            let key = Key { seed: &mut seed, fields: self.fields };
            match self.inner.next_key_seed(key)? {
                None => return Ok(None),
                Some(KeyTarget::Field(field)) => return Ok(Some(field)),
                Some(KeyTarget::Table(name)) => self.options.set(self.inner.next_value_seed(name)?),
            }
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(seed)
    }
}

/// What a key of the file names.
enum KeyTarget<F> {
    Field(F),
    Table(StrategyName),
}

/// Reads a key; the first key of a field consumes the seed.
struct Key<'s, K> {
    seed: &'s mut Option<K>,
    fields: &'static [&'static str],
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for Key<'_, K> {
    type Value = KeyTarget<K::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de, K: DeserializeSeed<'de>> Visitor<'de> for Key<'_, K> {
    type Value = KeyTarget<K::Value>;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        if let Some(name) = tables().find(|name| name.as_str() == text) {
            return Ok(KeyTarget::Table(name));
        }
        if !self.fields.contains(&text) {
            let tables = tables().map(StrategyName::as_str);
            let known: Vec<String> =
                self.fields.iter().copied().chain(tables).map(|key| format!("`{key}`")).collect();
            let known = known.join(", ");
            return Err(E::custom(format!("unknown field `{text}`, expected one of {known}")));
        }
        let seed = self.seed.take().expect("a key is one field");
        seed.deserialize(text.into_deserializer()).map(KeyTarget::Field)
    }
}
