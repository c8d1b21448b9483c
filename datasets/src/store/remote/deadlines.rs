//! Time limits of requests for ranges.

use std::time::Duration;

/// How long requests for ranges of a dataset may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// From a request to its answer, and between two pieces of the answer.
    pub quiet: Duration,
    /// For a range, with all retries.
    pub range: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { quiet: Duration::from_secs(15), range: Duration::from_secs(90) }
    }
}
