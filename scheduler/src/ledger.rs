//! The state of every batch of an epoch: who holds it, under which generation, and how far it is.
//!
//! ```text
//!          host                  ┌────────────────────────────► Ready ──► Consumed
//! Free ──► Claimed ──────────────┘                               ▲
//!          device                                                │
//!   ▲      Claimed ──► Published ──► Fetching ───────────────────┘
//!   └─────────┴────────────┴────────────┘  revoked, rejected, lost
//! ```
//!
//! Batches that nobody ever claimed are one range, `lo..back`: the host claims from `lo`, a device
//! from `back` (or both from `lo`). Batches that were taken back are in a set of their own. A wrong
//! transition is a defect of the scheduler and panics; wrong *reports* are sorted out before.

use crate::batch_set::BatchSet;
use crate::types::{BatchIndex, DeviceId, Generation, Source};

/// How far a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Free,
    Claimed,
    Published,
    Fetching,
    Ready,
    Consumed,
}

/// Stands for the host where a device's number would be.
const HOST: u16 = u16::MAX;

/// Eight bytes a batch.
#[derive(Debug, Clone, Copy)]
struct Entry {
    generation: u32,
    holder: u16,
    state: State,
}

#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    entries: Vec<Entry>,
    /// Lowest batch that was never claimed. Never falls.
    lo: u32,
    /// One above the highest batch that was never claimed. Never rises: this is the grant.
    back: u32,
    /// Batches that a device held and gave back, not claimed since.
    freed: BatchSet,
    /// Batches that the host claimed and that are not consumed.
    host_open: u32,
    /// Of these, the ready ones.
    host_ready: u32,
    consumed_by_host: u32,
    consumed_by_device: u32,
}

impl Ledger {
    pub(crate) fn new(batches: u32) -> Self {
        let entry = Entry { generation: 0, holder: HOST, state: State::Free };
        Self {
            entries: vec![entry; batches as usize],
            lo: 0,
            back: batches,
            freed: BatchSet::with_capacity(batches),
            host_open: 0,
            host_ready: 0,
            consumed_by_host: 0,
            consumed_by_device: 0,
        }
    }

    pub(crate) fn batches(&self) -> u32 {
        u32::try_from(self.entries.len()).expect("made from a u32")
    }

    pub(crate) fn lo(&self) -> u32 {
        self.lo
    }

    pub(crate) fn back(&self) -> u32 {
        self.back
    }

    /// How many were never claimed.
    pub(crate) fn untouched(&self) -> u32 {
        self.back - self.lo
    }

    pub(crate) fn is_untouched(&self, batch: BatchIndex) -> bool {
        (self.lo..self.back).contains(&batch.0)
    }

    pub(crate) fn freed(&self) -> &BatchSet {
        &self.freed
    }

    pub(crate) fn host_open(&self) -> u32 {
        self.host_open
    }

    pub(crate) fn host_ready(&self) -> u32 {
        self.host_ready
    }

    /// Claimed by the host and not finished.
    pub(crate) fn host_working(&self) -> u32 {
        self.host_open - self.host_ready
    }

    pub(crate) fn consumed(&self) -> u32 {
        self.consumed_by_host + self.consumed_by_device
    }

    pub(crate) fn consumed_by_host(&self) -> u32 {
        self.consumed_by_host
    }

    pub(crate) fn consumed_by_device(&self) -> u32 {
        self.consumed_by_device
    }

    pub(crate) fn holds(&self, batch: BatchIndex) -> bool {
        (batch.0 as usize) < self.entries.len()
    }

    pub(crate) fn state(&self, batch: BatchIndex) -> State {
        self.entries[batch.0 as usize].state
    }

    pub(crate) fn source(&self, batch: BatchIndex) -> Source {
        match self.entries[batch.0 as usize].holder {
            HOST => Source::Host,
            device => Source::Device(DeviceId(device)),
        }
    }

    /// The generation under which a device claimed it.
    pub(crate) fn generation(&self, batch: BatchIndex) -> Generation {
        Generation(self.entries[batch.0 as usize].generation)
    }

    /// Free → Claimed by the host: the lowest or highest untouched one, or one that was freed.
    pub(crate) fn claim_for_host(&mut self, batch: BatchIndex) {
        if self.is_untouched(batch) {
            if batch.0 == self.lo {
                self.lo += 1;
            } else {
                assert_eq!(batch.0 + 1, self.back, "untouched batches are claimed at the ends");
                self.back -= 1;
            }
        } else {
            self.freed.remove(batch);
        }
        self.step(batch, State::Free, State::Claimed);
        self.entries[batch.0 as usize].holder = HOST;
        self.host_open += 1;
    }

    /// Free → Claimed by a device: the lowest or highest untouched one.
    pub(crate) fn claim_for_device(
        &mut self,
        device: DeviceId,
        generation: Generation,
        from_back: bool,
    ) -> BatchIndex {
        assert!(self.untouched() > 0, "a grant is never larger than what is untouched");
        assert_ne!(device.0, HOST, "that number stands for the host");
        let batch = if from_back {
            self.back -= 1;
            BatchIndex(self.back)
        } else {
            self.lo += 1;
            BatchIndex(self.lo - 1)
        };
        self.step(batch, State::Free, State::Claimed);
        let entry = &mut self.entries[batch.0 as usize];
        entry.holder = device.0;
        entry.generation = generation.0;
        batch
    }

    /// Claimed by the host → Ready.
    pub(crate) fn finish_at_host(&mut self, batch: BatchIndex) {
        assert_eq!(self.source(batch), Source::Host, "the host finishes what it claimed");
        self.step(batch, State::Claimed, State::Ready);
        self.host_ready += 1;
    }

    /// Claimed by a device → Published.
    pub(crate) fn publish(&mut self, batch: BatchIndex) {
        assert_ne!(self.source(batch), Source::Host, "only devices publish");
        self.step(batch, State::Claimed, State::Published);
    }

    /// Published → Fetching.
    pub(crate) fn begin_fetch(&mut self, batch: BatchIndex) {
        self.step(batch, State::Published, State::Fetching);
    }

    /// Fetching → Ready.
    pub(crate) fn finish_fetch(&mut self, batch: BatchIndex) {
        self.step(batch, State::Fetching, State::Ready);
    }

    /// Claimed by a device, Published or Fetching → Free.
    pub(crate) fn take_back(&mut self, batch: BatchIndex) {
        let entry = &mut self.entries[batch.0 as usize];
        assert!(
            entry.holder != HOST
                && matches!(entry.state, State::Claimed | State::Published | State::Fetching),
            "only what a device holds unready is taken back, batch {} is {:?}",
            batch.0,
            entry.state
        );
        entry.state = State::Free;
        self.freed.insert(batch);
    }

    /// Ready → Consumed.
    pub(crate) fn consume(&mut self, batch: BatchIndex) -> Source {
        self.step(batch, State::Ready, State::Consumed);
        let source = self.source(batch);
        match source {
            Source::Host => {
                self.host_open -= 1;
                self.host_ready -= 1;
                self.consumed_by_host += 1;
            }
            Source::Device(_) => self.consumed_by_device += 1,
        }
        source
    }

    fn step(&mut self, batch: BatchIndex, from: State, to: State) {
        let entry = &mut self.entries[batch.0 as usize];
        assert_eq!(entry.state, from, "batch {} cannot become {to:?}", batch.0);
        entry.state = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_takes_eight_bytes() {
        assert_eq!(size_of::<Entry>(), 8);
    }

    #[test]
    fn both_ends_claim_until_they_meet() {
        let mut ledger = Ledger::new(3);
        ledger.claim_for_host(BatchIndex(0));
        assert_eq!(ledger.claim_for_device(DeviceId(0), Generation(1), true), BatchIndex(2));
        assert_eq!(ledger.claim_for_device(DeviceId(0), Generation(1), false), BatchIndex(1));
        assert_eq!(ledger.untouched(), 0);
        ledger.take_back(BatchIndex(1));
        assert_eq!(ledger.freed().first(), Some(BatchIndex(1)));
        ledger.claim_for_host(BatchIndex(1));
        assert_eq!(ledger.source(BatchIndex(1)), Source::Host);
    }

    #[test]
    #[should_panic(expected = "batch 0 cannot become Consumed")]
    fn a_batch_that_is_not_ready_is_not_consumed() {
        let mut ledger = Ledger::new(1);
        ledger.claim_for_host(BatchIndex(0));
        ledger.consume(BatchIndex(0));
    }
}
