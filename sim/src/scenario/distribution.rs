//! How long something takes: a constant, a random distribution, or measured times.
//!
//! In a scenario a text such as `"20ms"` is a constant; a table names its `kind`.

use std::fmt::{self, Formatter};

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::error::ScenarioError;
use super::quantity::Span;

/// A distribution of times.
#[derive(Debug, Clone, PartialEq)]
pub enum Distribution {
    /// Always this.
    Constant(Span),
    /// exp(N(μ, σ²)) with this mean: μ = ln(mean) − σ²/2.
    Lognormal {
        /// The mean, not the median.
        mean: Span,
        /// σ of the logarithm; 0.3 is a jitter of about 30 %.
        sigma: f64,
    },
    /// Uniform from `low` to `high`.
    Uniform {
        /// Minimum.
        low: Span,
        /// Maximum.
        high: Span,
    },
    /// Given values, drawn at random with replacement.
    Empirical(Values),
    /// Given values in their order, repeated after the last.
    Trace(Values),
    /// Slow periods: `base`, times `factor` while virtual time is within `lasting` of a multiple of
    /// `every`.
    Burst {
        /// Outside of the slow periods.
        base: Box<Distribution>,
        /// Time from the beginning of one slow period to the next.
        every: Span,
        /// Length of a slow period.
        lasting: Span,
        /// Slow-down factor in a slow period.
        factor: f64,
    },
}

/// Measured times, in the scenario itself or in a file that the caller reads.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Values {
    /// File with one time per line, which the caller reads; see [`super::Scenario::fill_traces`].
    pub file: Option<String>,
    /// The times.
    pub values: Vec<Span>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum Table {
    Constant { time: Span },
    Lognormal { mean: Span, sigma: f64 },
    Uniform { low: Span, high: Span },
    Empirical { file: Option<String>, values: Option<Vec<Span>> },
    Trace { file: Option<String>, values: Option<Vec<Span>> },
    Burst { base: Distribution, every: Span, lasting: Span, factor: f64 },
}

impl From<Table> for Distribution {
    fn from(table: Table) -> Self {
        let values =
            |file, values: Option<Vec<Span>>| Values { file, values: values.unwrap_or_default() };
        match table {
            Table::Constant { time } => Self::Constant(time),
            Table::Lognormal { mean, sigma } => Self::Lognormal { mean, sigma },
            Table::Uniform { low, high } => Self::Uniform { low, high },
            Table::Empirical { file, values: list } => Self::Empirical(values(file, list)),
            Table::Trace { file, values: list } => Self::Trace(values(file, list)),
            Table::Burst { base, every, lasting, factor } => {
                Self::Burst { base: Box::new(base), every, lasting, factor }
            }
        }
    }
}

impl Default for Distribution {
    fn default() -> Self {
        Self::Constant(Span(0))
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimeOrTable)
    }
}

struct TimeOrTable;

impl<'de> Visitor<'de> for TimeOrTable {
    type Value = Distribution;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a time such as \"20ms\", or a table such as { kind = \"lognormal\", mean = \"20ms\", \
             sigma = 0.3 }; kinds are constant, lognormal, uniform, empirical, trace, burst",
        )
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Distribution, E> {
        text.parse().map(Distribution::Constant).map_err(E::custom)
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Distribution, M::Error> {
        Table::deserialize(MapAccessDeserializer::new(map)).map(Distribution::from)
    }
}

impl Distribution {
    /// A constant number of nanoseconds.
    pub fn constant_ns(ns: u64) -> Self {
        Self::Constant(Span(ns))
    }

    /// Its mean in nanoseconds, including slow periods in proportion to their length.
    pub fn mean_ns(&self) -> f64 {
        match self {
            Self::Constant(time) | Self::Lognormal { mean: time, .. } => time.0 as f64,
            Self::Uniform { low, high } => (low.0 as f64 + high.0 as f64) / 2.0,
            Self::Empirical(values) | Self::Trace(values) => {
                let sum: f64 = values.values.iter().map(|value| value.0 as f64).sum();
                sum / values.values.len().max(1) as f64
            }
            Self::Burst { base, every, lasting, factor } => {
                let slow = lasting.0 as f64 / every.0.max(1) as f64;
                base.mean_ns() * (1.0 + slow * (factor - 1.0))
            }
        }
    }

    /// Appends the values whose file has not been read yet.
    pub(super) fn unread<'a>(&'a mut self, found: &mut Vec<&'a mut Values>) {
        match self {
            Self::Empirical(values) | Self::Trace(values) => {
                if values.file.is_some() && values.values.is_empty() {
                    found.push(values);
                }
            }
            Self::Burst { base, .. } => base.unread(found),
            Self::Constant(_) | Self::Lognormal { .. } | Self::Uniform { .. } => {}
        }
    }

    /// Checks its parameters; an error names `key`.
    pub(super) fn check(&self, key: &str) -> Result<(), ScenarioError> {
        let wrong = |name: &str, problem: String, remedy: &str| {
            Err(ScenarioError::new(format!("{key}.{name}"), problem, remedy))
        };
        match self {
            Self::Constant(_) => Ok(()),
            Self::Lognormal { mean, sigma } => {
                if mean.0 == 0 {
                    return wrong("mean", "is 0".to_owned(), "a time above 0");
                }
                if !(0.0..=3.0).contains(sigma) {
                    return wrong("sigma", format!("is {sigma}"), "a number from 0 to 3");
                }
                Ok(())
            }
            Self::Uniform { low, high } if low > high => {
                wrong("low", format!("is {low}, above high, which is {high}"), "low ≤ high")
            }
            Self::Uniform { .. } => Ok(()),
            Self::Empirical(values) | Self::Trace(values) => {
                match (&values.file, &values.values[..]) {
                    (_, [_, ..]) => Ok(()),
                    (Some(file), []) => wrong(
                        "file",
                        format!("{file} was not read"),
                        "a file with one time per line",
                    ),
                    (None, []) => {
                        wrong("values", "is empty".to_owned(), "a list of times, or `file`")
                    }
                }
            }
            Self::Burst { base, every, lasting, factor } => {
                if every.0 == 0 || lasting > every {
                    let problem = format!("is {lasting} of every {every}");
                    return wrong("lasting", problem, "at most `every`, which is above 0");
                }
                if !(*factor > 0.0 && factor.is_finite()) {
                    return wrong("factor", format!("is {factor}"), "a number above 0");
                }
                base.check(&format!("{key}.base"))
            }
        }
    }
}
