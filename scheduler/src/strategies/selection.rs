//! The selection of `auto` for an epoch, and its reason.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::AnyStrategy;

/// The selection of `auto` for an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Selection {
    /// The selected strategy.
    pub strategy: AnyStrategy,
    /// The reason.
    pub why: Reason,
}

/// The reason for a selection. `Display` gives a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// There is no device.
    NoDevice,
    /// Nothing is known yet, so the adaptive strategy is selected.
    NothingKnown,
    /// The strategy with the shortest expected time, and the time of the host alone, in
    /// nanoseconds.
    Fastest {
        /// The expected time.
        expected_ns: u64,
        /// T0.
        host_only_ns: u64,
    },
    /// The record determines it.
    Replayed,
    /// There are several ranks, which do not know each other's times yet.
    Adapts,
    /// No strategy is expected to be faster than the host alone.
    NoGain,
    /// The goal is best met by this share of the devices.
    BestMix {
        /// Batches of the devices.
        share: u32,
    },
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.strategy.name(), self.why)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDevice => f.write_str("there is no device"),
            Self::NothingKnown => f.write_str(
                "the times of the devices are not known yet, and this strategy adapts to them",
            ),
            Self::Fastest { expected_ns, host_only_ns } => {
                let saved = 1.0 - *expected_ns as f64 / (*host_only_ns).max(1) as f64;
                write!(
                    f,
                    "expected to take {:.1} % less time than the host alone, by the learned times",
                    saved * 100.0
                )
            }
            Self::Replayed => f.write_str("as recorded"),
            Self::Adapts => f.write_str("all ranks use it, and agree on each step"),
            Self::NoGain => f.write_str("no device is expected to make the epoch shorter"),
            Self::BestMix { share } => {
                write!(f, "the goal is best met with {share} batches at the devices")
            }
        }
    }
}
