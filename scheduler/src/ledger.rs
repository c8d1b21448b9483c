//! The state of every batch of an epoch: its holder, its generation and its progress.
//!
//! ```text
//!          host                  ┌────────────────────────────► Ready ──► Consumed
//! Free ──► Claimed ──────────────┘                               ▲ │
//!          device                                                │ │
//!   ▲      Claimed ──► Published ──► Fetching ───────────────────┘ │
//!   └─────────┴────────────┴────────────┴──────────────────────────┘  taken back
//! ```
//!
//! Only open batches have an entry, so memory is proportional to open batches instead of N: a batch
//! without an entry is either untouched (see `parts`) or consumed. An invalid transition is a bug
//! of the scheduler and panics; invalid *reports* are rejected earlier.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::parts::Parts;
use crate::terms::Terms;
use crate::types::{BatchIndex, DeviceId, Generation, Source, Time};

/// The progress of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Free,
    Claimed,
    Published,
    Fetching,
    Ready,
    Consumed,
}

/// When a batch was claimed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Began {
    pub(crate) at: Time,
    /// The time until then during which devices had work.
    pub(crate) beside_ns: Time,
}

/// An open batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) source: Source,
    pub(crate) generation: Generation,
    pub(crate) state: State,
    /// Whether a device held it before.
    pub(crate) redone: bool,
    /// When the host claimed it; unused for a device's batch.
    pub(crate) began: Began,
}

/// A hash of batch indices, which an attacker cannot choose.
#[derive(Debug, Clone, Default)]
pub(crate) struct BatchIndexHasher(u64);

impl Hasher for BatchIndexHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(u32::from(byte));
        }
    }

    fn write_u32(&mut self, word: u32) {
        let mixed = (self.0 ^ u64::from(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

/// Maximum initial capacity.
const OPEN_MAX: usize = 1 << 16;

#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    open: HashMap<u32, Entry, BuildHasherDefault<BatchIndexHasher>>,
    pub(crate) parts: Parts,
    batches: u32,
    /// Batches that the host claimed and that are not consumed.
    host_open: u32,
    /// The ready batches among these.
    host_ready: u32,
    /// Batches that devices claimed and did not publish.
    device_claimed: u32,
    /// Published or being fetched.
    device_published: u32,
    /// Ready batches of devices.
    device_ready: u32,
    consumed_by_host: u32,
    consumed_by_device: u32,
}

impl Ledger {
    pub(crate) fn new(terms: &Terms) -> Self {
        let slots = terms.devices.iter().map(|device| device.spool_slots as usize + 1);
        let most = slots.fold(terms.host_ahead as usize, usize::saturating_add);
        // Twice the maximum of open batches: a table that is more than half full may grow in order
        // to drop the tombstones of removed entries.
        let room = most.min(terms.batches as usize).min(OPEN_MAX) * 2 + 16;
        Self {
            open: HashMap::with_capacity_and_hasher(room, BuildHasherDefault::default()),
            parts: Parts::new(terms),
            batches: terms.batches,
            host_open: 0,
            host_ready: 0,
            device_claimed: 0,
            device_published: 0,
            device_ready: 0,
            consumed_by_host: 0,
            consumed_by_device: 0,
        }
    }

    pub(crate) fn batches(&self) -> u32 {
        self.batches
    }

    /// Number of batches that were never claimed.
    pub(crate) fn untouched(&self) -> u32 {
        self.parts.untouched()
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

    pub(crate) fn device_claimed(&self) -> u32 {
        self.device_claimed
    }

    /// Device batches that are published or ready and not consumed.
    pub(crate) fn device_finished(&self) -> u32 {
        self.device_published + self.device_ready
    }

    /// Device batches that are open.
    pub(crate) fn device_open(&self) -> u32 {
        self.device_claimed + self.device_finished()
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
        batch.0 < self.batches
    }

    pub(crate) fn entry(&self, batch: BatchIndex) -> Option<Entry> {
        self.open.get(&batch.0).copied()
    }

    /// Open batches, unordered.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (BatchIndex, Entry)> + '_ {
        self.open.iter().map(|(batch, entry)| (BatchIndex(*batch), *entry))
    }

    pub(crate) fn state(&self, batch: BatchIndex) -> State {
        match self.open.get(&batch.0) {
            Some(entry) => entry.state,
            None if self.parts.is_untouched(batch) => State::Free,
            None => State::Consumed,
        }
    }

    /// Whether a device holds or held it.
    pub(crate) fn is_device_s(&self, batch: BatchIndex) -> bool {
        self.open.get(&batch.0).is_some_and(|entry| entry.source != Source::Host)
    }

    /// Free → Claimed by the host.
    pub(crate) fn claim_for_host(&mut self, batch: BatchIndex, began: Began) {
        self.claim(batch, Source::Host, Generation(0), began);
        self.host_open += 1;
    }

    /// Free → Claimed by a device.
    pub(crate) fn claim_for_device(
        &mut self,
        batch: BatchIndex,
        device: DeviceId,
        generation: Generation,
    ) {
        self.claim(batch, Source::Device(device), generation, Began::default());
        self.device_claimed += 1;
    }

    fn claim(&mut self, batch: BatchIndex, source: Source, generation: Generation, began: Began) {
        let before = self.open.get(&batch.0);
        let redone = before.is_some();
        if let Some(entry) = before {
            assert_eq!(entry.state, State::Free, "batch {} is held", batch.0);
            self.parts.reclaim(batch);
        } else {
            self.parts.take(batch, source == Source::Host);
        }
        let state = State::Claimed;
        self.open.insert(batch.0, Entry { source, generation, state, redone, began });
    }

    /// Claimed by the host → Ready.
    pub(crate) fn finish_at_host(&mut self, batch: BatchIndex) {
        self.step(batch, State::Claimed, State::Ready);
        self.host_ready += 1;
    }

    /// Claimed by a device → Published.
    pub(crate) fn publish(&mut self, batch: BatchIndex) {
        self.step(batch, State::Claimed, State::Published);
        self.device_claimed -= 1;
        self.device_published += 1;
    }

    /// Published → Fetching.
    pub(crate) fn begin_fetch(&mut self, batch: BatchIndex) {
        self.step(batch, State::Published, State::Fetching);
    }

    /// Fetching → Ready.
    pub(crate) fn finish_fetch(&mut self, batch: BatchIndex) {
        self.step(batch, State::Fetching, State::Ready);
        self.device_published -= 1;
        self.device_ready += 1;
    }

    /// Held by a device → Free.
    pub(crate) fn take_back(&mut self, batch: BatchIndex) {
        let entry = self.open.get_mut(&batch.0).expect("only a held batch is taken back");
        assert_ne!(entry.source, Source::Host, "the host's batches are not taken back");
        match entry.state {
            State::Claimed => self.device_claimed -= 1,
            State::Published | State::Fetching => self.device_published -= 1,
            State::Ready => self.device_ready -= 1,
            State::Free | State::Consumed => panic!("batch {} is not held", batch.0),
        }
        entry.state = State::Free;
        self.parts.free(batch);
    }

    /// Ready → Consumed.
    pub(crate) fn consume(&mut self, batch: BatchIndex) -> Source {
        self.step(batch, State::Ready, State::Consumed);
        let source = self.open.remove(&batch.0).expect("the entry exists").source;
        match source {
            Source::Host => {
                self.host_open -= 1;
                self.host_ready -= 1;
                self.consumed_by_host += 1;
            }
            Source::Device(_) => {
                self.device_ready -= 1;
                self.consumed_by_device += 1;
            }
        }
        source
    }

    fn step(&mut self, batch: BatchIndex, from: State, to: State) {
        let entry = self.open.get_mut(&batch.0).expect("only a held batch changes state");
        assert_eq!(entry.state, from, "batch {} cannot become {to:?}", batch.0);
        entry.state = to;
    }
}
