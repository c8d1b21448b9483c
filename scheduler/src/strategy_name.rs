//! The names of the strategies: the closed set that job files, scenarios, reports and records use.

use std::fmt;
use std::str::FromStr;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

for_each_strategy!(define_names);

/// The text is not the name of a strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a strategy; choose one of {}", StrategyName::TEXTS.join(", "))]
pub struct UnknownStrategy {
    /// The given value.
    pub text: String,
}

impl fmt::Display for StrategyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for StrategyName {
    type Err = UnknownStrategy;

    fn from_str(text: &str) -> Result<Self, UnknownStrategy> {
        let named = Self::ALL.into_iter().find(|name| name.as_str() == text);
        named.ok_or_else(|| UnknownStrategy { text: text.to_owned() })
    }
}

impl Serialize for StrategyName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for StrategyName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = StrategyName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of \"{}\"", StrategyName::TEXTS.join("\", \""))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<StrategyName, E> {
        text.parse().map_err(|_| E::unknown_variant(text, StrategyName::TEXTS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_through_text() {
        for name in StrategyName::ALL {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        let text = "fastest".to_owned();
        assert_eq!("fastest".parse::<StrategyName>(), Err(UnknownStrategy { text }));
    }
}
