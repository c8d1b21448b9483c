//! When a rank says to the others that it is at work.

use super::Collective;
use crate::LoaderConfig;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// So often at the least, where others wait longer than a few times that.
const EVERY: Duration = Duration::from_secs(1);

/// Signs in the time that others wait.
const SIGNS_IN_A_WAIT: u32 = 4;

/// One rank's signs of life. Given by the consumer's thread alone.
#[derive(Debug)]
pub(crate) struct Signs {
    collective: Option<Arc<dyn Collective>>,
    rank: u32,
    every: Duration,
    /// When the next is due; `None`: there is nobody to give one to.
    due: Option<Instant>,
}

impl Signs {
    pub(crate) fn new(config: &LoaderConfig) -> Self {
        let collective = config.collective.clone().filter(|_| config.ranks > 1);
        let every = EVERY.min(config.rank_timeout / SIGNS_IN_A_WAIT);
        let due = collective.is_some().then(|| Instant::now() + every);
        Self { collective, rank: config.rank, every, due }
    }

    /// When the next is due; `None` where there is nobody to give one to.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The rank is at work; says so where that is due.
    pub(crate) fn at_work(&mut self) {
        let (Some(collective), Some(due)) = (&self.collective, self.due) else { return };
        let now = Instant::now();
        if now >= due {
            collective.at_work(self.rank);
            self.due = Some(now + self.every);
        }
    }
}
