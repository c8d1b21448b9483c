//! The state that strategies read: the ledger, the devices, the times.

use std::collections::VecDeque;

use crate::device::{Device, DeviceLoss};
use crate::estimate::{Estimate, Steps};
use crate::learned::CommonTimes;
use crate::ledger::{Began, Ledger, State};
use crate::terms::Terms;
use crate::types::{BatchIndex, DeviceId, Generation, Profile, Source, Time};

/// Rates are batches in this many nanoseconds, so that sums of them are exact.
pub(crate) const RATE_NS: u64 = 1 << 44;

/// Maximum initial capacity of a queue.
const QUEUE_MAX: usize = 1 << 14;

#[derive(Debug, Clone)]
pub(crate) struct Board {
    pub(crate) terms: Terms,
    /// Batches are consumed as they become ready.
    pub(crate) any_order: bool,
    /// Whether a ready device batch is certain to be consumed. False with several ranks, and under
    /// `auto`, which may abandon the devices.
    pub(crate) ready_is_safe: bool,
    /// Devices may be abandoned at any time: `auto` selected the strategy for this epoch.
    pub(crate) is_guarded: bool,
    /// Whether the guard of `auto` allows work for devices.
    pub(crate) grants_allowed: bool,
    /// Maximum number of host batches claimed and not consumed from now on; at most
    /// [`Terms::host_ahead`].
    pub(crate) host_ahead: u32,
    /// The latest time seen.
    pub(crate) now: Time,
    /// Time during which devices had work.
    pub(crate) beside_ns: Time,
    /// Time that the host has lost because of devices, as `auto` measures it.
    pub(crate) slowed_ns: Time,
    pub(crate) ledger: Ledger,
    pub(crate) devices: Vec<Device>,
    /// Sum of the lookaheads of all devices.
    pub(crate) ahead_of_devices: u32,
    pub(crate) steps: Steps,
    /// Published batches in the order of publishing. May contain batches that were taken back
    /// since. Like the two below, used only by strategies that consume in any order.
    pub(crate) publish_order: VecDeque<BatchIndex>,
    /// Ready batches by source, in the order of becoming ready.
    pub(crate) ready_host: VecDeque<BatchIndex>,
    pub(crate) ready_device: VecDeque<BatchIndex>,
    /// Device batches that are being fetched.
    pub(crate) fetching: u32,
    /// Device batches that are in host memory and not consumed.
    pub(crate) fetched: u32,
    pub(crate) revoked: u32,
    pub(crate) void_reports: u32,
    usable: u32,
    lost: u32,
    /// Batches of all usable devices per [`RATE_NS`], as far as known.
    rate: u64,
    /// No device is fenced off before this time.
    stall_bound: Time,
}

impl Board {
    pub(crate) fn new(terms: Terms, any_order: bool) -> Self {
        let at_most = |count: u32| (count.min(terms.batches) as usize).min(QUEUE_MAX);
        let queue = |count: u32| if any_order { at_most(count) } else { 0 };
        let mut made = Self {
            any_order,
            ready_is_safe: terms.ranks == 1,
            is_guarded: false,
            grants_allowed: true,
            host_ahead: terms.host_ahead,
            now: 0,
            beside_ns: 0,
            slowed_ns: 0,
            ledger: Ledger::new(&terms),
            devices: (0..terms.devices.len()).map(|at| Device::new(&terms, at)).collect(),
            ahead_of_devices: terms
                .devices
                .iter()
                .fold(0, |sum, device| sum.saturating_add(device.ahead)),
            steps: Steps::default(),
            // Stale entries are removed once they outnumber live ones; see `note_published`.
            publish_order: VecDeque::with_capacity(queue(terms.spool_slots()) * 2 + 1),
            ready_host: VecDeque::with_capacity(queue(terms.host_ahead)),
            ready_device: VecDeque::with_capacity(queue(terms.fetch_ahead)),
            fetching: 0,
            fetched: 0,
            revoked: 0,
            void_reports: 0,
            usable: 0,
            lost: 0,
            rate: 0,
            stall_bound: Time::MAX,
            terms,
        };
        for at in 0..made.devices.len() {
            made.refresh(DeviceId(u16::try_from(at).expect("checked with the configuration")));
        }
        made
    }

    pub(crate) fn device(&self, device: DeviceId) -> &Device {
        &self.devices[usize::from(device.0)]
    }

    pub(crate) fn device_mut(&mut self, device: DeviceId) -> &mut Device {
        &mut self.devices[usize::from(device.0)]
    }

    /// Updates the sums after a change of a device: its usability, its speed or its deadline.
    pub(crate) fn refresh(&mut self, id: DeviceId) {
        let device = &mut self.devices[usize::from(id.0)];
        let usable = device.usable();
        let rate = match (usable, device.batch_ns()) {
            (false, _) | (_, 0) => 0,
            (true, batch_ns) => RATE_NS / batch_ns,
        };
        let changed = usable != device.counted_usable || rate != device.counted_rate;
        self.rate = self.rate - device.counted_rate + rate;
        self.usable = self.usable + u32::from(usable) - u32::from(device.counted_usable);
        device.counted_usable = usable;
        device.counted_rate = rate;
        if let Some(due) = device.stall_due(&self.terms) {
            self.stall_bound = self.stall_bound.min(due);
        }
        if changed {
            let part = self.ledger.parts.of(id);
            self.ledger.parts.notice(part);
        }
    }

    /// What begins now.
    pub(crate) fn began(&self) -> Began {
        Began { at: self.now, beside_ns: self.beside_ns }
    }

    /// Number of devices that may be given work.
    pub(crate) fn usable_devices(&self) -> u32 {
        self.usable
    }

    /// Whether some device may still receive work from a part.
    pub(crate) fn usable(&self, part: usize) -> bool {
        match self.ledger.parts.shared() {
            true => self.usable > 0,
            false => self.devices.get(part).is_some_and(Device::usable),
        }
    }

    /// Batches of a part that devices have claimed and not published.
    pub(crate) fn claimed_of(&self, part: usize) -> u32 {
        match self.ledger.parts.shared() {
            true => self.ledger.device_claimed(),
            false => self.devices[part].claimed.len(),
        }
    }

    pub(crate) fn all_lost(&self) -> bool {
        self.lost as usize == self.devices.len()
    }

    /// Whether the host may still have to redo a batch of a device.
    pub(crate) fn any_at_risk(&self) -> bool {
        let safe = if self.ready_is_safe { self.fetched } else { 0 };
        self.ledger.device_open() > safe
    }

    /// t_c: the recent value, otherwise that learned in earlier epochs; 0 if not known.
    pub(crate) fn host_ns(&self) -> u64 {
        self.steps.host().recent_ns().unwrap_or(self.terms.learned.host_ns)
    }

    /// t_g: the recent value, otherwise that learned in earlier epochs, otherwise the step alone; 0
    /// if not known.
    pub(crate) fn ready_ns(&self) -> u64 {
        let known = |time: u64| (time > 0).then_some(time);
        let measured = self.steps.device().recent_ns();
        let learned = measured.or(known(self.terms.learned.ready_ns));
        learned.or(self.steps.train().recent_ns()).unwrap_or(0)
    }

    /// t_s of a part: of its device, or of all usable devices together; 0 if not known.
    pub(crate) fn part_ns(&self, part: usize) -> u64 {
        if !self.ledger.parts.shared() || self.devices.len() == 1 {
            return self.devices[part].batch_ns();
        }
        RATE_NS.checked_div(self.rate).unwrap_or(0)
    }

    /// Batches of all usable devices except this one per [`RATE_NS`].
    pub(crate) fn rate_of_others(&self, id: DeviceId) -> u64 {
        self.rate - self.device(id).counted_rate
    }

    /// Preparation time of one host batch; 0 if not known.
    pub(crate) fn preparation_ns(&self) -> u64 {
        let measured = self.steps.preparation().recent_ns();
        measured.unwrap_or(self.terms.learned.preparation_ns)
    }

    /// This rank's contribution to the common times, from which `auto` selects a strategy.
    pub(crate) fn known(&self) -> CommonTimes {
        if !self.is_guarded {
            return CommonTimes::UNKNOWN;
        }
        let times = self.devices.iter().map(Device::batch_ns);
        let rate = times.filter_map(|time| RATE_NS.checked_div(time)).sum::<u64>();
        let known = CommonTimes {
            host_ns: self.host_ns(),
            ready_ns: self.ready_ns(),
            device_ns: RATE_NS.checked_div(rate).unwrap_or(0),
            preparation_ns: self.preparation_ns(),
            spool_slots: self.terms.spool_slots(),
            background: self.terms.background(),
        };
        known.or_unknown()
    }

    /// Means over this epoch; 0 for times without a measurement.
    pub(crate) fn measured(&self) -> Profile {
        Profile {
            host_ns: self.steps.host().mean_ns(),
            device_ns: self.devices.first().map_or(0, |device| device.batch.mean_ns()),
            ready_ns: self.steps.device().mean_ns(),
        }
    }

    /// Whether the host and every device that is not lost have enough measurements or learned
    /// times.
    pub(crate) fn times_known(&self, samples: u32) -> bool {
        let enough = |estimate: &Estimate, learned: u64| learned > 0 || estimate.count() >= samples;
        let learned = &self.terms.learned;
        enough(self.steps.host(), learned.host_ns)
            && self.devices.iter().all(|d| d.lost.is_some() || enough(&d.batch, d.learned_ns))
    }

    /// Queues a published batch for fetching. Stale entries are removed once they outnumber live
    /// ones, so the queue is at most twice the size of the spools.
    pub(crate) fn note_published(&mut self, batch: BatchIndex) {
        if self.publish_order.len() == self.publish_order.capacity()
            && self.publish_order.len() >= 2 * self.ledger.device_finished() as usize
        {
            let ledger = &self.ledger;
            self.publish_order.retain(|queued| ledger.state(*queued) == State::Published);
        }
        self.publish_order.push_back(batch);
    }

    /// The first batch in order of publishing that is not being fetched.
    pub(crate) fn next_published(&mut self) -> Option<BatchIndex> {
        // Skips entries of batches that were taken back since.
        while let Some(batch) = self.publish_order.pop_front() {
            if self.ledger.state(batch) == State::Published {
                return Some(batch);
            }
        }
        None
    }

    /// Takes back the batches that a device has not published.
    fn take_back_claimed(&mut self, id: DeviceId) {
        let device = &mut self.devices[usize::from(id.0)];
        while let Some(batch) = device.claimed.pop() {
            device.revoked += 1;
            self.ledger.take_back(batch);
            self.revoked += 1;
        }
    }

    /// Takes back the batches that a device has published and those being fetched from it.
    fn take_back_published(&mut self, id: DeviceId) {
        let device = &mut self.devices[usize::from(id.0)];
        while let Some(batch) = device.published.pop() {
            device.revoked += 1;
            if self.ledger.state(batch) == State::Fetching {
                self.fetching -= 1;
            }
            self.ledger.take_back(batch);
            self.revoked += 1;
        }
    }

    /// Takes back one batch that a device has published or that is ready.
    pub(crate) fn take_back_finished(&mut self, batch: BatchIndex, id: DeviceId, state: State) {
        let device = &mut self.devices[usize::from(id.0)];
        device.revoked += 1;
        self.revoked += 1;
        match state {
            State::Ready => {
                device.ready -= 1;
                self.fetched -= 1;
            }
            State::Fetching => {
                device.published.remove(batch);
                self.fetching -= 1;
            }
            State::Free | State::Claimed | State::Published | State::Consumed => {
                device.published.remove(batch);
            }
        }
        self.ledger.take_back(batch);
    }

    /// Takes back unpublished work and voids later reports about it.
    pub(crate) fn fence(&mut self, id: DeviceId) {
        self.take_back_claimed(id);
        let device = self.device_mut(id);
        // Generations are exhausted, and the next would repeat an old one: give up the device.
        match device.generation.0.checked_add(1) {
            Some(next) => {
                device.generation = Generation(next);
                device.revoke_due = true;
            }
            None => self.give_up(id, DeviceLoss::Stalls),
        }
        self.refresh(id);
    }

    /// Gives up a device for this epoch. If it is only slow, or about to end, its published batches
    /// stay valid.
    pub(crate) fn give_up(&mut self, id: DeviceId, why: DeviceLoss) {
        self.take_back_claimed(id);
        if matches!(why, DeviceLoss::Link | DeviceLoss::Stalls) {
            self.take_back_published(id);
        }
        let device = self.device_mut(id);
        let first = device.lost.is_none();
        if matches!(why, DeviceLoss::Link | DeviceLoss::Leaving) {
            device.revoke_due = false;
            device.stop_said = true;
        }
        device.lost = Some(why);
        self.lost += u32::from(first);
        self.refresh(id);
    }

    /// A device whose link was lost has a new link, so it may get work again, under the next
    /// generation. `None` if it is not lost, was lost for another reason, or has no next
    /// generation.
    pub(crate) fn rejoin(&mut self, id: DeviceId, ahead: u32) -> Option<Generation> {
        let now = self.now;
        let device = self.devices.get_mut(usize::from(id.0))?;
        if device.lost != Some(DeviceLoss::Link) {
            return None;
        }
        let generation = Generation(device.generation.0.checked_add(1)?);
        device.generation = generation;
        let ahead = ahead.max(1);
        let others = self.ahead_of_devices.saturating_sub(device.ahead);
        self.ahead_of_devices = others.saturating_add(ahead);
        device.ahead = ahead;
        device.lost = None;
        device.silent = false;
        device.stop_said = false;
        device.last_sign = now;
        device.busy_since = now;
        self.lost -= 1;
        self.refresh(id);
        Some(generation)
    }

    /// The next device past its deadline; scans only if there may be one.
    pub(crate) fn next_stalled(&mut self) -> Option<DeviceId> {
        if self.now < self.stall_bound {
            return None;
        }
        self.stall_bound = Time::MAX;
        let mut stalled = None;
        for (at, device) in self.devices.iter().enumerate() {
            let Some(due) = device.stall_due(&self.terms) else { continue };
            if due <= self.now && stalled.is_none() {
                stalled = Some(DeviceId(u16::try_from(at).expect("counted by a u16")));
            }
            self.stall_bound = self.stall_bound.min(due);
        }
        stalled
    }

    /// No device is fenced off before this time.
    pub(crate) fn stall_bound(&self) -> Time {
        self.stall_bound
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
