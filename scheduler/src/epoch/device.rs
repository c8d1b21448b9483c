//! What the scheduler knows of one device: its claims, its generation, its signs of life.

use crate::batch_set::BatchSet;
use crate::config::{Config, DeviceConfig};
use crate::estimate::Estimate;
use crate::types::{Generation, Time};

/// A device that sends progress but publishes nothing is believed for this many stall timeouts.
pub(crate) const PATIENCE_STALLS: u64 = 30;

/// … or for this many of its own batch times, if that is longer.
pub(crate) const PATIENCE_BATCHES: u64 = 4;

/// Why a device gets no more work in this epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// It cannot be reached: nothing is said to it.
    Link,
    /// It stalled too often; it is still there and hears that its work was taken back.
    Stalls,
}

#[derive(Debug, Clone)]
pub(crate) struct Device {
    /// As configured.
    pub(crate) ahead: u32,
    pub(crate) spool_slots: u32,
    /// t_s as learned before, 0 where not known.
    pub(crate) learned_ns: u64,
    /// Its batches that were consumed, and its claims that were taken back.
    pub(crate) consumed: u32,
    pub(crate) revoked: u32,
    pub(crate) generation: Generation,
    /// Granted and not published.
    pub(crate) claimed: BatchSet,
    /// Published or being fetched.
    pub(crate) published: BatchSet,
    /// Ready in host memory and not consumed.
    pub(crate) ready: u32,
    /// Last time it was heard of, or given work after it had none.
    pub(crate) last_sign: Time,
    /// When it began on the batch that it is on, as far as is known.
    pub(crate) busy_since: Time,
    /// Stalled, and not heard of since: gets no work.
    pub(crate) silent: bool,
    pub(crate) lost: Option<Lost>,
    pub(crate) revoke_due: bool,
    pub(crate) stop_said: bool,
    pub(crate) stalls: u32,
    /// Time from beginning a batch to its publish: t_s.
    pub(crate) batch: Estimate,
}

impl Device {
    pub(crate) fn new(config: &Config, at: usize) -> Self {
        let DeviceConfig { ahead, spool_slots, first_generation } = config.devices[at];
        Self {
            ahead,
            spool_slots,
            learned_ns: config.learned.device_ns(at),
            consumed: 0,
            revoked: 0,
            generation: Generation(first_generation),
            claimed: BatchSet::with_capacity(config.batches),
            published: BatchSet::with_capacity(config.batches),
            ready: 0,
            last_sign: 0,
            busy_since: 0,
            silent: false,
            lost: None,
            revoke_due: false,
            stop_said: false,
            stalls: 0,
            batch: Estimate::default(),
        }
    }

    /// May be given work.
    pub(crate) fn usable(&self) -> bool {
        self.lost.is_none() && !self.silent
    }

    /// Holds batches that it may still fail to deliver.
    pub(crate) fn holds_unready(&self) -> bool {
        !self.claimed.is_empty() || !self.published.is_empty()
    }

    /// Slots of the spool that its batches take.
    pub(crate) fn slots(&self) -> u32 {
        self.claimed.len() + self.published.len() + self.ready
    }

    pub(crate) fn heard(&mut self, now: Time) {
        self.last_sign = now;
        self.silent = false;
    }

    /// When it is to be fenced off unless it is heard of (or, at last, publishes); `None` without
    /// outstanding work.
    pub(crate) fn stall_due(&self, config: &Config) -> Option<Time> {
        if self.claimed.is_empty() {
            return None;
        }
        let batch = self.batch.recent_ns().unwrap_or(self.learned_ns);
        let patience = PATIENCE_STALLS
            .saturating_mul(config.stall_timeout_ns)
            .max(PATIENCE_BATCHES.saturating_mul(batch));
        let silence_ends = self.last_sign.saturating_add(config.stall_timeout_ns);
        Some(silence_ends.min(self.busy_since.saturating_add(patience)))
    }

    /// Nanoseconds spent on the batch that it is on, at most `batch_ns`.
    pub(crate) fn progress_ns(&self, now: Time, batch_ns: u64) -> u64 {
        now.saturating_sub(self.busy_since).min(batch_ns)
    }
}
