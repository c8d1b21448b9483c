//! Which attempt of which run a rank belongs to.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// An attempt of a run: a launcher that restarts all ranks counts it up, so that ranks of an
/// earlier attempt, which may still live on another host, never take part in a later one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Attempt {
    /// The launcher's name of the run; may be empty.
    pub run: String,
    /// From 0.
    pub number: u64,
}

impl Attempt {
    /// The order of two attempts of a run; `None` for attempts of different runs.
    pub(super) fn order(&self, other: &Self) -> Option<Ordering> {
        (self.run == other.run).then(|| self.number.cmp(&other.number))
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attempt {}", self.number)?;
        match &self.run[..] {
            "" => Ok(()),
            run => write!(f, " of run {run}"),
        }
    }
}
