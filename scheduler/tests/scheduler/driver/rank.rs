//! One rank: its host, its devices, its accelerator, around one epoch of the scheduler.

use std::collections::BTreeMap;

use meetpoint_scheduler::{
    AcceleratorDecision, BatchIndex, Config, DeviceDecision, DeviceId, Epoch, Generation,
    HostDecision, Outcome, Proposal, Source, Time,
};

use super::device::{Device, Message};
use super::{Clock, Event, Random, Run, Scenario, is_device};

pub(crate) struct Rank {
    pub(crate) number: usize,
    scenario: Scenario,
    pub(crate) epoch: Epoch,
    random: Random,
    devices: Vec<Device>,
    begun: bool,
    preparing: u32,
    accelerator_busy: bool,
    pub(crate) finished: bool,
    ended_ns: Time,
    wake_at: Option<Time>,
    /// Batches in host memory and their source.
    prepared: BTreeMap<u32, Source>,
    /// Published and not fetched yet.
    published: BTreeMap<u32, u16>,
    pub(crate) proposal: Option<Proposal>,
    pub(crate) sequence: Vec<u32>,
    from_device: Vec<bool>,
}

impl Rank {
    pub(crate) fn new(
        number: usize,
        config: &Config,
        scenario: &Scenario,
        clock: &mut Clock,
    ) -> Self {
        let mut random = Random::new(scenario.seed);
        let devices = scenario.device_ns.iter().zip(&scenario.faults).enumerate();
        let devices = devices.take(config.devices.len()).map(|(at, (&batch_ns, faults))| {
            Device::new(at as u16, batch_ns, faults.clone(), random.fork())
        });
        let devices = devices.collect();
        let mut made = Self {
            number,
            scenario: scenario.clone(),
            epoch: Epoch::new(config.clone()).expect("the configuration can be run"),
            random,
            devices,
            begun: false,
            preparing: 0,
            accelerator_busy: false,
            finished: false,
            ended_ns: 0,
            wake_at: None,
            prepared: BTreeMap::new(),
            published: BTreeMap::new(),
            proposal: None,
            sequence: Vec::new(),
            from_device: Vec::new(),
        };
        made.lose_absent(clock);
        made.keep_from_before();
        clock.post(number, scenario.run_ahead_ns, Event::Begin);
        made.poll(clock);
        made
    }

    fn keep_from_before(&mut self) {
        for (device, batch) in self.scenario.kept.clone() {
            let (id, index) = (DeviceId(device), BatchIndex(batch));
            if self.epoch.preloaded(0, id, index) == Outcome::Accepted {
                self.devices[usize::from(device)].slots += 1;
                assert_eq!(self.published.insert(batch, device), None);
            }
        }
    }

    fn lose_absent(&mut self, clock: &mut Clock) {
        for at in 0..self.devices.len() {
            if self.scenario.faults[at].absent {
                self.devices[at].lose();
                self.lost(at as u16, clock);
            }
        }
    }

    /// A device has lost its link. It may return later.
    fn lost(&mut self, number: u16, clock: &mut Clock) {
        self.epoch.device_lost(clock.now, DeviceId(number));
        if let Some(delay) = self.scenario.faults[usize::from(number)].returns_after_ns {
            self.post(clock, delay, Event::Joined(number));
        }
    }

    /// A device returns with empty slots.
    fn join(&mut self, number: u16, now: Time) {
        let ahead = self.random.small(1, 6);
        let joined = self.epoch.device_joined(now, DeviceId(number), ahead);
        let Some(generation) = joined else { return };
        let again = self.epoch.device_joined(now, DeviceId(number), ahead);
        assert_eq!(again, None, "it joined already");
        let device = &mut self.devices[usize::from(number)];
        device.join(generation.0);
        let before = self.published.len();
        self.published.retain(|_, of| *of != number);
        device.slots -= (before - self.published.len()) as u32;
    }

    fn post(&self, clock: &mut Clock, delay: u64, event: Event) {
        clock.post(self.number, delay, event);
    }

    /// Batches that devices hold.
    fn held(&self) -> u64 {
        self.devices.iter().map(Device::held).sum()
    }

    fn time(&mut self, mean: u64) -> u64 {
        if self.scenario.jitter { self.random.around(mean) } else { mean }
    }

    fn host_time(&mut self) -> u64 {
        let (mean, varies) = (self.scenario.host_ns, self.scenario.varies);
        if varies == 0 {
            return self.time(mean);
        }
        let range = mean * varies / 100;
        mean - range + self.random.below(2 * range + 1)
    }

    pub(crate) fn happen(&mut self, event: Event, clock: &mut Clock) {
        let now = clock.now;
        match event {
            Event::Begin => {
                self.begun = true;
                self.epoch.accelerator_ready(now);
            }
            Event::HostDone(batch) => {
                self.preparing -= 1;
                let done = self.epoch.host_finished(now, BatchIndex(batch));
                assert_eq!(done, Outcome::Accepted, "the host was asked to prepare {batch}");
                assert_eq!(self.prepared.insert(batch, Source::Host), None);
                let again = self.epoch.host_finished(now, BatchIndex(batch));
                assert!(matches!(again, Outcome::Void(_)), "batch {batch} was finished twice");
            }
            Event::DeviceDue(device) => self.device_works(device, clock),
            Event::Joined(device) => self.join(device, now),
            Event::Delivered(device, message) => self.deliver(device, message, now),
            Event::FetchDone { device, batch, generation } => {
                self.fetched(device, batch, generation, now);
            }
            Event::StepDone => {
                self.accelerator_busy = false;
                self.epoch.accelerator_ready(now);
            }
            Event::Wake => {
                self.wake_at = None;
                self.epoch.tick(now);
            }
        }
        if self.epoch.config().batches <= 64 {
            self.epoch.check_invariants();
        }
    }

    fn device_works(&mut self, number: u16, clock: &mut Clock) {
        let now = clock.now;
        let device = &mut self.devices[usize::from(number)];
        let (sent, due, died) = (device.work(now), device.due(), device.died());
        for (delay, message) in sent {
            self.post(clock, delay, Event::Delivered(number, message));
        }
        if let Some(due) = due {
            self.post(clock, due.saturating_sub(now), Event::DeviceDue(number));
        }
        if died {
            self.lost(number, clock);
        }
    }

    fn deliver(&mut self, from: u16, message: Message, now: Time) {
        match message {
            Message::Progress => self.epoch.device_progress(now, DeviceId(from)),
            Message::Leaving => self.epoch.device_leaving(now, DeviceId(from)),
            Message::Published { device, batch, generation } => {
                let (index, generation) = (BatchIndex(batch), Generation(generation));
                let taken = self.epoch.device_published(now, DeviceId(device), index, generation);
                if taken == Outcome::Accepted {
                    self.published.insert(batch, device);
                    let most = self.epoch.config().devices[usize::from(device)].spool_slots;
                    let device = &mut self.devices[usize::from(device)];
                    device.slots += 1;
                    assert!(device.slots <= most, "the spool overflows");
                }
            }
            Message::Failed { batch, generation } => {
                let (index, generation) = (BatchIndex(batch), Generation(generation));
                self.epoch.device_rejected(now, DeviceId(from), index, generation);
            }
        }
    }

    fn fetched(&mut self, device: u16, batch: u32, generation: u32, now: Time) {
        let at = usize::from(device);
        let torn = self.random.percent(self.scenario.faults[at].torn);
        let (id, index, fence) = (DeviceId(device), BatchIndex(batch), Generation(generation));
        let outcome = if torn {
            self.epoch.device_rejected(now, id, index, fence)
        } else {
            self.epoch.device_fetched(now, id, index, fence)
        };
        if torn || outcome != Outcome::Accepted {
            self.devices[at].slots -= 1;
        } else {
            assert_eq!(self.prepared.insert(batch, Source::Device(id)), None);
        }
    }

    /// Drops the batches that the host redoes for the other ranks.
    pub(crate) fn drop_discarded(&mut self) {
        while let Some((batch, device)) = self.epoch.discard(0) {
            // One that is being fetched is dropped as void when the fetch ends.
            let had = self.published.remove(&batch.0).is_some()
                || self.prepared.remove(&batch.0).is_some();
            self.devices[usize::from(device.0)].slots -= u32::from(had);
        }
    }

    /// Asks for decisions until there are none.
    pub(crate) fn poll(&mut self, clock: &mut Clock) {
        let mut quiet_rounds = 0;
        loop {
            let before = clock.posted + self.sequence.len() as u64;
            for part in self.random.shuffled([0, 1, 2, 3]) {
                match part {
                    0 => (0..self.devices.len()).for_each(|at| self.poll_device(at, clock)),
                    1 => self.poll_host(clock),
                    2 => self.poll_fetch(clock),
                    _ => {
                        self.poll_accelerator(clock);
                        self.drop_discarded();
                    }
                }
            }
            // A decision for one may have changed that of another: ask again.
            let is_quiet = before == clock.posted + self.sequence.len() as u64;
            quiet_rounds = if is_quiet { quiet_rounds + 1 } else { 0 };
            if self.finished || quiet_rounds == 2 {
                break;
            }
        }
    }

    fn poll_device(&mut self, at: usize, clock: &mut Clock) {
        let shared = matches!(self.epoch.config().holders, meetpoint_scheduler::Holders::Shared);
        loop {
            let decision = self.epoch.device(clock.now, DeviceId(at as u16));
            let device = &mut self.devices[at];
            match decision {
                DeviceDecision::Work(run, generation) => {
                    assert!(run.count > 0 && (shared || run.count == 1));
                    assert!(device.fence.is_none_or(|fence| fence == generation.0));
                    device.append(run.batches().map(|batch| batch.0), generation.0);
                }
                DeviceDecision::Revoke(generation) => {
                    assert!(device.fence.is_none_or(|fence| fence < generation.0), "an old fence");
                    device.fence = Some(generation.0);
                    device.revoke();
                }
                DeviceDecision::Stop => device.stop(),
                DeviceDecision::Idle => break,
            }
        }
        if let Some(due) = self.devices[at].begin(clock.now) {
            self.post(clock, due - clock.now, Event::DeviceDue(at as u16));
        }
    }

    fn poll_host(&mut self, clock: &mut Clock) {
        let threads = self.scenario.workers.max(1);
        let serial = self.scenario.workers == 0;
        // Without workers the consumer prepares only when it has nothing else to do.
        while self.preparing < threads && !(serial && (self.accelerator_busy || !self.begun)) {
            if serial && self.proposal.is_some() {
                return;
            }
            let HostDecision::Prepare(batch) = self.epoch.host(clock.now) else { break };
            self.preparing += 1;
            let slowed = self.scenario.slowed;
            let longer = (slowed.each * self.held()).min(slowed.most);
            let delay = self.host_time() * (100 + longer) / 100;
            self.post(clock, delay, Event::HostDone(batch.0));
        }
    }

    fn poll_fetch(&mut self, clock: &mut Clock) {
        while let Some((batch, device, generation)) = self.epoch.fetch(clock.now) {
            self.published.remove(&batch.0);
            let delay = self.time(self.scenario.fetch_ns);
            let (batch, generation) = (batch.0, generation.0);
            self.post(clock, delay, Event::FetchDone { device: device.0, batch, generation });
        }
    }

    fn poll_accelerator(&mut self, clock: &mut Clock) {
        let serial = self.scenario.workers == 0;
        let busy = self.accelerator_busy || (serial && self.preparing > 0) || !self.begun;
        if busy || self.finished || self.proposal.is_some() {
            return;
        }
        match self.epoch.accelerator(clock.now) {
            AcceleratorDecision::Consume(batch, source) => {
                let by = self.prepared.remove(&batch.0);
                assert_eq!(by, Some(source), "batch {} was not ready", batch.0);
                if let Source::Device(device) = source {
                    self.devices[usize::from(device.0)].slots -= 1;
                }
                self.sequence.push(batch.0);
                self.from_device.push(is_device(source));
                self.accelerator_busy = true;
                let delay = self.time(self.scenario.step_ns);
                self.post(clock, delay, Event::StepDone);
            }
            AcceleratorDecision::WaitUntil(until) => {
                assert!(until > clock.now, "a wait ends in the future");
                assert!(until <= clock.now + 1_000_000_000, "a wait is at most a second");
                if self.wake_at.is_none_or(|at| until < at) {
                    self.wake_at = Some(until);
                    self.post(clock, until - clock.now, Event::Wake);
                }
            }
            AcceleratorDecision::Agree(proposal) => self.proposal = Some(proposal),
            AcceleratorDecision::Done => {
                self.finished = true;
                self.ended_ns = clock.now;
            }
        }
    }

    pub(crate) fn into_run(mut self, now: Time) -> Run {
        self.epoch.check_invariants();
        assert!(self.prepared.is_empty(), "leftover batches: {:?}", self.prepared);
        let batches = self.epoch.config().batches;
        let mut covered = self.sequence.clone();
        covered.sort_unstable();
        assert_eq!(covered, (0..batches).collect::<Vec<_>>(), "C0: every batch exactly once");
        let summary = self.epoch.summary();
        assert_eq!(summary.host_batches + summary.device_batches, batches);
        // After the end only the final decisions for devices follow.
        for device in 0..self.devices.len() as u16 {
            while self.epoch.device(now, DeviceId(device)) != DeviceDecision::Idle {}
        }
        assert_eq!(self.epoch.host(now), HostDecision::Done);
        assert_eq!(self.epoch.fetch(now), None);
        assert_eq!(self.epoch.accelerator(now), AcceleratorDecision::Done);
        Run {
            sequence: self.sequence,
            from_device: self.from_device,
            summary,
            record: self.epoch.record(),
            learned: self.epoch.learned(),
            ended_ns: self.ended_ns,
        }
    }
}
