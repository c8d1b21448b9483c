//! Adapts how much a host prepares at a time to measurements while it runs.
//!
//! It changes only the numbers of workers and of batches ahead, never which batch is prepared, its
//! content or the order of an epoch.
//!
//! In reading order: this file (measurements and changes), `window` (the mean time of a batch and
//! its error), [`Tuner`] (the decisions).

mod tuner;
mod window;

pub use tuner::Tuner;

use crate::types::Time;
use serde::{Deserialize, Serialize};

/// How much the host prepares at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Concurrency {
    /// Threads that prepare, at least 1.
    pub workers: u32,
    /// Maximum number of batches claimed and not consumed, as [`crate::Terms::host_ahead`]; at
    /// least 1.
    pub ahead: u32,
}

/// The resources that a tuner may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Cores that the process may use. Workers are added up to this number.
    pub cores: u32,
    /// Maximum number of batches ahead that fit in the memory budget.
    pub ahead_max: u32,
}

/// Measurements while some batches were consumed. Times are nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// Batches consumed, at least 1.
    pub batches: u32,
    /// How long it took, at least 1.
    pub duration_ns: Time,
    /// Part of it during which the consumer waited for batches of the host.
    pub wait_ns: Time,
    /// Time during which workers prepared batches that were finished within it, summed over
    /// workers.
    pub busy_ns: Time,
    /// Processor time of the process.
    pub cpu_ns: Time,
}

/// A change that a tuner can try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TuningChange {
    /// More workers, and batches ahead for them.
    AddWorkers,
    /// Fewer workers, if there are more than cores.
    RemoveWorkers,
    /// More batches ahead.
    RaiseAhead,
}

impl TuningChange {
    /// Every change, in the order of `TuningChange::number`.
    pub const ALL: [Self; 3] = [Self::AddWorkers, Self::RemoveWorkers, Self::RaiseAhead];

    /// Its index in [`TuningChange::ALL`].
    fn number(self) -> usize {
        match self {
            Self::AddWorkers => 0,
            Self::RemoveWorkers => 1,
            Self::RaiseAhead => 2,
        }
    }
}

/// The result of a change.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// It is being tried: the consumer waited for this share of the time.
    Tried {
        /// From 0 to 1.
        waited_share: f64,
    },
    /// A batch takes this share of the time that it took before: the change is kept.
    Kept {
        /// Below 1.
        time_ratio: f64,
    },
    /// A batch takes this share of the time that it took before, too much to keep the change.
    RolledBack {
        /// Around or above 1.
        time_ratio: f64,
    },
    /// The host could not apply the change.
    Refused,
}

/// A decision of a tuner.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tuned {
    /// The change.
    #[serde(rename = "move")]
    pub tried: TuningChange,
    /// The result of the change.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The numbers before the change.
    pub before: Concurrency,
    /// The numbers from now on.
    pub now: Concurrency,
}
