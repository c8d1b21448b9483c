//! Who decides, by the names of job files.

use std::fmt::{self, Formatter};

use meetpoint_scheduler::WINDOW_DEFAULT;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A strategy's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StrategyName {
    /// The host prepares everything.
    HostOnly,
    /// The devices prepare everything.
    DeviceOnly,
    /// Moving towards each other.
    Mte,
    /// Weighted round robin.
    #[default]
    Wrr,
    /// Weighted round robin with its interleave fixed beforehand.
    WrrFrozen,
    /// Moving towards each other, with a switch that follows what is measured.
    MteFeedback,
    /// Window after window, each from both ends.
    Windowed,
    /// Picks among them.
    Auto,
}

impl StrategyName {
    /// Every strategy.
    pub const ALL: [Self; 8] = [
        Self::HostOnly,
        Self::DeviceOnly,
        Self::Mte,
        Self::Wrr,
        Self::WrrFrozen,
        Self::MteFeedback,
        Self::Windowed,
        Self::Auto,
    ];

    /// As in job files.
    pub fn name(self) -> &'static str {
        match self {
            Self::HostOnly => "host-only",
            Self::DeviceOnly => "device-only",
            Self::Mte => "mte",
            Self::Wrr => "wrr",
            Self::WrrFrozen => "wrr-frozen",
            Self::MteFeedback => "mte-feedback",
            Self::Windowed => "windowed",
            Self::Auto => "auto",
        }
    }
}

/// Which batches devices are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChoiceName {
    /// The last of the epoch's order.
    #[default]
    Tail,
    /// Those that save the host most time for the devices', once both are known.
    Saving,
}

/// `[mte]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MteChoice {
    /// How the device's share is found.
    pub split: SplitChoice,
    /// Order in which the device's part is consumed.
    pub tail: TailName,
}

/// How many batches `mte` gives to the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SplitChoice {
    /// `"equal-finish"`: both ends finish together.
    #[default]
    EqualFinish,
    /// `"optimal"`: the epoch ends soonest.
    Optimal,
    /// A number: so many.
    Fixed(u32),
}

/// Order of the device's part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TailName {
    /// As produced, from the back.
    #[default]
    Descending,
    /// As the host alone would.
    Ascending,
}

/// `[windowed]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WindowedChoice {
    /// W: batches of a window.
    pub window: u32,
}

impl Default for WindowedChoice {
    fn default() -> Self {
        Self { window: WINDOW_DEFAULT }
    }
}

/// `[auto]`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AutoChoice {
    /// What is to be least.
    pub goal: GoalName,
    /// What the order must be.
    pub order: OrderName,
}

impl Default for AutoChoice {
    fn default() -> Self {
        Self { goal: GoalName::Throughput, order: OrderName::Any }
    }
}

/// What `auto` aims for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GoalName {
    /// `"throughput"`: the least time.
    Throughput,
    /// `"energy"`: the least energy.
    Energy,
    /// `{ time = λ }`: λ·time + (1−λ)·energy.
    Mix(f64),
}

/// What order `auto` must give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrderName {
    /// Any.
    Any,
    /// One that a record replays (C3).
    Replayable,
    /// That of the host alone (C4).
    Baseline,
}

impl<'de> Deserialize<'de> for GoalName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordOrShare)
    }
}

struct WordOrShare;

impl<'de> Visitor<'de> for WordOrShare {
    type Value = GoalName;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(
            "\"throughput\", \"energy\" or the share of time in a mix of both, { time = 0.7 }",
        )
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<GoalName, E> {
        match text {
            "throughput" => Ok(GoalName::Throughput),
            "energy" => Ok(GoalName::Energy),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<GoalName, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Mix {
            time: f64,
        }
        let Mix { time } = Mix::deserialize(MapAccessDeserializer::new(map))?;
        Ok(GoalName::Mix(time))
    }
}

impl<'de> Deserialize<'de> for SplitChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordOrNumber)
    }
}

struct WordOrNumber;

impl Visitor<'_> for WordOrNumber {
    type Value = SplitChoice;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("\"equal-finish\", \"optimal\" or the devices' batches")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<SplitChoice, E> {
        match text {
            "equal-finish" => Ok(SplitChoice::EqualFinish),
            "optimal" => Ok(SplitChoice::Optimal),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
        }
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<SplitChoice, E> {
        u32::try_from(number)
            .map(SplitChoice::Fixed)
            .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(number), &self))
    }
}
