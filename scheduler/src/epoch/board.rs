//! Everything that the strategies look at: the ledger, the devices, the times.

use std::collections::VecDeque;

use crate::config::{Config, Strategy};
use crate::epoch::device::{Device, Lost};
use crate::estimate::{Steps, measured_or};
use crate::ledger::{Ledger, State};
use crate::types::{BatchIndex, DeviceId, Generation, Profile, Source, Time};

#[derive(Debug, Clone)]
pub(crate) struct Board {
    pub(crate) config: Config,
    /// The latest time that was told.
    pub(crate) now: Time,
    pub(crate) ledger: Ledger,
    pub(crate) devices: Vec<Device>,
    pub(crate) steps: Steps,
    /// Published batches in the order of publishing. May name batches that were taken back since.
    /// Like the two below, kept only under a strategy that consumes in any order.
    pub(crate) publish_order: VecDeque<BatchIndex>,
    /// Ready batches by source, in the order of becoming ready.
    pub(crate) ready_host: VecDeque<BatchIndex>,
    pub(crate) ready_device: VecDeque<BatchIndex>,
    /// Device batches that are being fetched.
    pub(crate) fetching: u32,
    /// Device batches in host memory, not consumed.
    pub(crate) fetched: u32,
    pub(crate) revoked: u32,
    pub(crate) void_reports: u32,
}

impl Board {
    pub(crate) fn new(config: Config) -> Self {
        let at_most = |count: u32| count.min(config.batches) as usize;
        // Stale entries make room by compaction once as many as live ones are possible; see
        // `note_published`.
        let any_order = matches!(config.strategy, Strategy::Wrr);
        let queue = |count: u32| if any_order { at_most(count) } else { 0 };
        Self {
            now: 0,
            ledger: Ledger::new(config.batches),
            devices: (0..config.devices.len()).map(|at| Device::new(&config, at)).collect(),
            steps: Steps::default(),
            publish_order: VecDeque::with_capacity(queue(config.spool_slots().saturating_mul(2))),
            ready_host: VecDeque::with_capacity(queue(config.host_ahead)),
            ready_device: VecDeque::with_capacity(queue(config.fetch_ahead)),
            fetching: 0,
            fetched: 0,
            revoked: 0,
            void_reports: 0,
            config,
        }
    }

    pub(crate) fn device_mut(&mut self, device: DeviceId) -> &mut Device {
        &mut self.devices[usize::from(device.0)]
    }

    /// Batches are consumed as they become ready.
    pub(crate) fn any_order(&self) -> bool {
        matches!(self.config.strategy, Strategy::Wrr)
    }

    /// Some device may still be given work.
    pub(crate) fn any_usable(&self) -> bool {
        self.devices.iter().any(Device::usable)
    }

    pub(crate) fn all_lost(&self) -> bool {
        self.devices.iter().all(|device| device.lost.is_some())
    }

    /// Some device holds batches that it may yet fail to deliver.
    pub(crate) fn any_unready(&self) -> bool {
        self.devices.iter().any(Device::holds_unready)
    }

    /// Recent times, from the profile where nothing was measured; 0 where not known.
    pub(crate) fn times(&self, device: &Device) -> Profile {
        let learned = &self.config.learned;
        Profile {
            host_ns: measured_or(self.steps.host(), learned.host_ns).unwrap_or(0),
            device_ns: measured_or(&device.batch, device.learned_ns).unwrap_or(0),
            ready_ns: measured_or(self.steps.device(), learned.ready_ns).unwrap_or(0),
        }
    }

    /// What was measured in this epoch, means over all of it; 0 where nothing was.
    pub(crate) fn measured(&self) -> Profile {
        Profile {
            host_ns: self.steps.host().mean_ns(),
            device_ns: self.devices.first().map_or(0, |device| device.batch.mean_ns()),
            ready_ns: self.steps.device().mean_ns(),
        }
    }

    /// Queues a published batch for fetching. Never allocates: a batch is published at most once,
    /// so a full queue holds either stale entries, which go, or no more than the spool.
    pub(crate) fn note_published(&mut self, batch: BatchIndex) {
        if self.publish_order.len() == self.publish_order.capacity() {
            let ledger = &self.ledger;
            self.publish_order.retain(|queued| ledger.state(*queued) == State::Published);
        }
        assert!(
            self.publish_order.len() < self.publish_order.capacity(),
            "spool slots bound what is published"
        );
        self.publish_order.push_back(batch);
    }

    /// The batch that was published first and is not fetched, by order of publishing.
    pub(crate) fn next_published(&mut self) -> Option<BatchIndex> {
        // Entries of batches that were taken back since are passed over.
        while let Some(batch) = self.publish_order.pop_front() {
            if self.ledger.state(batch) == State::Published {
                return Some(batch);
            }
        }
        None
    }

    /// Takes back what a device has not published.
    fn take_back_claimed(&mut self, device: DeviceId) {
        let device = &mut self.devices[usize::from(device.0)];
        while let Some(batch) = device.claimed.first() {
            device.claimed.remove(batch);
            device.revoked += 1;
            self.ledger.take_back(batch);
            self.revoked += 1;
        }
    }

    /// Takes back what a device published and what is being fetched from it.
    fn take_back_published(&mut self, device: DeviceId) {
        let device = &mut self.devices[usize::from(device.0)];
        while let Some(batch) = device.published.first() {
            device.published.remove(batch);
            device.revoked += 1;
            if self.ledger.state(batch) == State::Fetching {
                self.fetching -= 1;
            }
            self.ledger.take_back(batch);
            self.revoked += 1;
        }
    }

    /// Work that was not published is taken back, and what is reported of it later is void.
    pub(crate) fn fence(&mut self, id: DeviceId) {
        self.take_back_claimed(id);
        let device = self.device_mut(id);
        // A generation beyond the last cannot be told apart from an old one: give the device up.
        match device.generation.0.checked_add(1) {
            Some(next) => {
                device.generation = Generation(next);
                device.revoke_due = true;
            }
            None => self.give_up(id, Lost::Stalls),
        }
    }

    /// Nothing more comes from this device in this epoch.
    pub(crate) fn give_up(&mut self, id: DeviceId, why: Lost) {
        self.take_back_claimed(id);
        self.take_back_published(id);
        let device = self.device_mut(id);
        device.lost = Some(why);
        if why == Lost::Link {
            device.revoke_due = false;
            device.stop_said = true;
        }
    }

    /// Marks a ready batch consumed.
    pub(crate) fn consume(&mut self, batch: BatchIndex) -> Source {
        let source = self.ledger.consume(batch);
        if let Source::Device(device) = source {
            let device = self.device_mut(device);
            device.ready -= 1;
            device.consumed += 1;
            self.fetched -= 1;
        }
        self.steps.consumed(self.now, source);
        source
    }
}
