//! The state of one device: its claims, its generation, the time of its last message.

use std::collections::VecDeque;

use crate::estimate::Estimate;
use crate::terms::{DeviceConfig, Terms};
use crate::types::{BatchIndex, Generation, Time};

/// A device that reports progress but publishes nothing is tolerated for this many stall timeouts.
pub(crate) const PATIENCE_STALLS: u64 = 30;

/// … or for this many of its own batch times, if that is longer.
pub(crate) const PATIENCE_BATCHES: u64 = 4;

/// Maximum initial capacity of a list of batches.
const LIST_MAX: usize = 1 << 10;

/// Why a device gets no more work in this epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceLoss {
    /// It cannot be reached: nothing is sent to it.
    Link,
    /// It is about to end: nothing is sent to it, and what it published stays valid.
    Leaving,
    /// It stalled too often; it is still connected and is notified that its work was taken back.
    Stalls,
    /// Waiting for it would make the epoch longer than without it; it is notified as well.
    Slow,
}

/// Batches in order of arrival; most are removed at one of the ends.
#[derive(Debug, Clone)]
pub(crate) struct List(VecDeque<BatchIndex>);

impl List {
    fn with_room(most: u32) -> Self {
        Self(VecDeque::with_capacity((most as usize).min(LIST_MAX)))
    }

    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.0.len()).expect("an epoch has no more batches than a u32 counts")
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push(&mut self, batch: BatchIndex) {
        self.0.push_back(batch);
    }

    pub(crate) fn pop(&mut self) -> Option<BatchIndex> {
        self.0.pop_front()
    }

    /// Its position in the list.
    pub(crate) fn place(&self, batch: BatchIndex) -> u32 {
        let at = self.0.iter().position(|&other| other == batch);
        at.map_or(0, |at| u32::try_from(at).expect("a list is no longer than an epoch"))
    }

    pub(crate) fn any_below(&self, batch: BatchIndex) -> bool {
        self.0.iter().any(|&other| other < batch)
    }

    pub(crate) fn contains(&self, batch: BatchIndex) -> bool {
        self.0.contains(&batch)
    }

    pub(crate) fn remove(&mut self, batch: BatchIndex) {
        if self.0.front() == Some(&batch) {
            self.0.pop_front();
        } else if self.0.back() == Some(&batch) {
            self.0.pop_back();
        } else {
            let at = self.0.iter().position(|&other| other == batch);
            self.0.remove(at.expect("only what is in the list is removed"));
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Device {
    /// As configured.
    pub(crate) ahead: u32,
    pub(crate) spool_slots: u32,
    /// Under `auto`: whether other ranks may use it too. Then it publishes several batches in
    /// succession, and none while it works for other ranks, so its recent batches alone may show
    /// too high a rate.
    pub(crate) serves_ranks: bool,
    /// t_s from earlier epochs, 0 if not known.
    pub(crate) learned_ns: u64,
    pub(crate) generation: Generation,
    /// Granted and not published.
    pub(crate) claimed: List,
    /// Published or being fetched.
    pub(crate) published: List,
    /// Ready in host memory and not consumed.
    pub(crate) ready: u32,
    /// Numbers of its consumed batches and of its claims that were taken back.
    pub(crate) consumed: u32,
    pub(crate) revoked: u32,
    /// Time of its last message, or of receiving work after it had none.
    pub(crate) last_sign: Time,
    /// When it began its current batch, as far as is known.
    pub(crate) busy_since: Time,
    /// Whether it stalled and has sent no message since; it then gets no work.
    pub(crate) silent: bool,
    pub(crate) lost: Option<DeviceLoss>,
    pub(crate) revoke_due: bool,
    pub(crate) stop_said: bool,
    pub(crate) stalls: u32,
    /// Time from beginning a batch to its publish: t_s.
    pub(crate) batch: Estimate,
    /// Its contribution to the sums of the board.
    pub(crate) counted_usable: bool,
    pub(crate) counted_rate: u64,
}

impl Device {
    pub(crate) fn new(terms: &Terms, at: usize) -> Self {
        let DeviceConfig { ahead, spool_slots, first_generation } = terms.devices[at];
        Self {
            ahead,
            spool_slots,
            serves_ranks: false,
            learned_ns: terms.learned.device_ns(at),
            generation: Generation(first_generation),
            claimed: List::with_room(ahead.min(spool_slots).min(terms.batches)),
            published: List::with_room(spool_slots.min(terms.batches)),
            ready: 0,
            consumed: 0,
            revoked: 0,
            last_sign: 0,
            busy_since: 0,
            silent: false,
            lost: None,
            revoke_due: false,
            stop_said: false,
            stalls: 0,
            batch: Estimate::default(),
            counted_usable: false,
            counted_rate: 0,
        }
    }

    /// Whether it may be given work.
    pub(crate) fn usable(&self) -> bool {
        self.lost.is_none() && !self.silent
    }

    /// Whether it holds batches that it may still fail to deliver.
    pub(crate) fn holds_unready(&self) -> bool {
        !self.claimed.is_empty() || !self.published.is_empty()
    }

    /// Whether it holds batches before this one that it may still fail to deliver.
    pub(crate) fn holds_unready_below(&self, batch: BatchIndex) -> bool {
        self.claimed.any_below(batch) || self.published.any_below(batch)
    }

    /// Slots of the spool that its batches occupy.
    pub(crate) fn slots(&self) -> u32 {
        self.claimed.len() + self.published.len() + self.ready
    }

    /// t_s, as measured or else as learned in earlier epochs; 0 if not known.
    pub(crate) fn batch_ns(&self) -> u64 {
        let least = if self.serves_ranks { self.batch.mean_ns() } else { 0 };
        self.batch.recent_ns().map_or(self.learned_ns, |recent| recent.max(least))
    }

    /// When it is fenced off unless it sends a message (or, eventually, publishes); `None` without
    /// outstanding work.
    pub(crate) fn stall_due(&self, terms: &Terms) -> Option<Time> {
        if self.claimed.is_empty() {
            return None;
        }
        let patience = PATIENCE_STALLS
            .saturating_mul(terms.stall_timeout_ns)
            .max(PATIENCE_BATCHES.saturating_mul(self.batch_ns()));
        let silence_ends = self.last_sign.saturating_add(terms.stall_timeout_ns);
        Some(silence_ends.min(self.busy_since.saturating_add(patience)))
    }

    /// Nanoseconds spent on its current batch, at most `batch_ns`.
    pub(crate) fn progress_ns(&self, now: Time, batch_ns: u64) -> u64 {
        if self.claimed.is_empty() { 0 } else { now.saturating_sub(self.busy_since).min(batch_ns) }
    }

    /// When it is expected to finish everything granted to it.
    pub(crate) fn expected_end(&self) -> Time {
        let work_ns = u64::from(self.claimed.len()).saturating_mul(self.batch_ns());
        self.busy_since.saturating_add(work_ns)
    }
}
