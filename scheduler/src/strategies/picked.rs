//! What `auto` picked, and why.

use std::fmt;

use super::AnyStrategy;

/// What `auto` decided for an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Picked {
    /// What the epoch is run with.
    pub strategy: AnyStrategy,
    /// Why.
    pub why: Why,
}

/// Why `auto` picked what it did. Display gives a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// There is no device.
    NoDevice,
    /// Nothing is known yet: the strategy that adapts by itself.
    NothingKnown,
    /// Least expected time, in nanoseconds, beside that of the host alone.
    Fastest {
        /// Expected.
        expected_ns: u64,
        /// T0.
        host_only_ns: u64,
    },
    /// It was given with the record.
    Replayed,
    /// Several ranks, which do not know each other's times yet.
    Adapts,
    /// No strategy is expected to be faster than the host alone.
    NoGain,
    /// The goal is best met by this share of the devices.
    BestMix {
        /// Batches of the devices.
        share: u32,
    },
}

impl fmt::Display for Picked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.strategy.name();
        match self.why {
            Why::NoDevice => write!(f, "{name}: there is no device"),
            Why::NothingKnown => {
                write!(f, "{name}: nothing is known of the devices yet, and it adapts by itself")
            }
            Why::Fastest { expected_ns, host_only_ns } => {
                let saved = 1.0 - expected_ns as f64 / host_only_ns.max(1) as f64;
                write!(
                    f,
                    "{name}: by the times learned beside the devices, {:.1} % less than the host \
                     alone",
                    saved * 100.0
                )
            }
            Why::Replayed => write!(f, "{name}: as recorded"),
            Why::Adapts => {
                write!(f, "{name}: all ranks run it, and agree on each step as they go")
            }
            Why::NoGain => write!(f, "{name}: no device is expected to make the epoch shorter"),
            Why::BestMix { share } => {
                write!(f, "{name}: the goal is best met with {share} batches at the devices")
            }
        }
    }
}
