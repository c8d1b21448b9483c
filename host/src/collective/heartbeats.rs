//! When a rank sends a heartbeat to the others.

use super::Collective;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest interval between heartbeats, if the others' timeout is much longer.
const EVERY: Duration = Duration::from_secs(1);

/// Heartbeats per timeout of the others.
const HEARTBEATS_PER_TIMEOUT: u32 = 4;

/// One rank's heartbeats, sent only from the consumer's thread.
#[derive(Debug)]
pub(crate) struct Heartbeats {
    collective: Option<Arc<dyn Collective>>,
    rank: u32,
    every: Duration,
    /// When the next one is due; `None` without other ranks.
    due: Option<Instant>,
}

impl Heartbeats {
    /// Those of `rank` among others, which wait for it for `timeout`; none without a collective.
    pub(crate) fn new(
        collective: Option<Arc<dyn Collective>>,
        rank: u32,
        timeout: Duration,
    ) -> Self {
        let every = EVERY.min(timeout / HEARTBEATS_PER_TIMEOUT);
        let due = collective.is_some().then(|| Instant::now() + every);
        Self { collective, rank, every, due }
    }

    /// When the next one is due; `None` without other ranks.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Sends a heartbeat if it is due.
    pub(crate) fn at_work(&mut self) {
        let (Some(collective), Some(due)) = (&self.collective, self.due) else { return };
        let now = Instant::now();
        if now >= due {
            collective.at_work(self.rank);
            self.due = Some(now + self.every);
        }
    }
}
