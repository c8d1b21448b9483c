//! Drives an epoch in virtual time with random delays and faults, and checks all that it is told.
//!
//! It stands for the host's threads, the device and the link between them. What it is told to do it
//! does late, twice, wrongly or never, as the scenario says; the sequence of everything is a
//! function of the scenario.

mod device;
mod random;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use device::{Device, Message};
use meetpoint_scheduler::{
    AcceleratorDecision, BatchIndex, Config, DeviceDecision, DeviceId, Epoch, Generation,
    HostDecision, Outcome, Source, Summary, Time,
};
pub(crate) use random::Random;

/// The only device.
pub(crate) const DEVICE: DeviceId = DeviceId(0);

/// What a run is made of besides the configuration.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    /// Preparing threads; 0: the consumer prepares between steps.
    pub(crate) workers: u32,
    /// Means of random times, in nanoseconds.
    pub(crate) host_ns: u64,
    pub(crate) device_ns: u64,
    pub(crate) step_ns: u64,
    pub(crate) fetch_ns: u64,
    pub(crate) faults: Faults,
}

/// How often the device and its link misbehave; chances are per batch and in percent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    pub(crate) fails: u64,
    pub(crate) torn: u64,
    pub(crate) duplicated: u64,
    pub(crate) late: u64,
    pub(crate) stalls: u64,
    /// Of the stalls, how many are filled with progress messages that are lies.
    pub(crate) lies: u64,
    /// Reports of nothing that was ever granted.
    pub(crate) nonsense: u64,
    pub(crate) dies_after: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    HostDone(u32),
    DeviceDue,
    Delivered(Message),
    FetchDone { batch: u32, generation: u32 },
    StepDone,
    Wake,
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) sequence: Vec<u32>,
    pub(crate) summary: Summary,
    pub(crate) ended_ns: Time,
}

pub(crate) struct World<'a> {
    scenario: &'a Scenario,
    epoch: Epoch,
    random: Random,
    device: Device,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    posted: u64,
    now: Time,
    preparing: u32,
    accelerator_busy: bool,
    finished: bool,
    wake_at: Option<Time>,
    /// Batches in host memory and who brought them.
    prepared: BTreeMap<u32, Source>,
    slots: u32,
    /// The last generation that the device was told of.
    fence: Option<Generation>,
    sequence: Vec<u32>,
}

/// Runs one epoch to its end; panics on whatever must not happen.
pub(crate) fn run(config: &Config, scenario: &Scenario) -> Run {
    let mut random = Random(scenario.seed);
    let device = Device::new(scenario, random.fork());
    let mut world = World {
        scenario,
        epoch: Epoch::new(config.clone()).expect("the configuration can be run"),
        random,
        device,
        events: BinaryHeap::new(),
        posted: 0,
        now: 0,
        preparing: 0,
        accelerator_busy: false,
        finished: false,
        wake_at: None,
        prepared: BTreeMap::new(),
        slots: 0,
        fence: None,
        sequence: Vec::new(),
    };
    world.epoch.accelerator_ready(0);
    world.poll();
    let steps_max = 20_000 + 400 * u64::from(config.batches);
    for _ in 0..steps_max {
        if world.finished {
            return world.into_run();
        }
        let Reverse((time, _, event)) = world.events.pop().expect("somebody is waited for");
        world.now = time;
        world.happen(event);
        world.poll();
    }
    panic!("no end after {steps_max} steps: {:?}\n{:#?}", world.sequence, world.epoch.summary());
}

impl World<'_> {
    fn post(&mut self, delay: u64, event: Event) {
        self.posted += 1;
        self.events.push(Reverse((self.now + delay, self.posted, event)));
    }

    fn happen(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::HostDone(batch) => {
                self.preparing -= 1;
                let done = self.epoch.host_finished(now, BatchIndex(batch));
                assert_eq!(done, Outcome::Accepted, "the host was told to prepare {batch}");
                assert_eq!(self.prepared.insert(batch, Source::Host), None);
                let again = self.epoch.host_finished(now, BatchIndex(batch));
                assert!(matches!(again, Outcome::Void(_)), "batch {batch} was finished twice");
            }
            Event::DeviceDue => self.device_works(),
            Event::Delivered(message) => self.deliver(message),
            Event::FetchDone { batch, generation } => self.fetched(batch, generation),
            Event::StepDone => {
                self.accelerator_busy = false;
                self.epoch.accelerator_ready(now);
            }
            Event::Wake => {
                self.wake_at = None;
                self.epoch.tick(now);
            }
        }
        self.epoch.check_invariants();
    }

    fn device_works(&mut self) {
        let now = self.now;
        for (delay, message) in self.device.work(now) {
            self.post(delay, Event::Delivered(message));
        }
        if let Some(due) = self.device.due() {
            self.post(due.saturating_sub(now), Event::DeviceDue);
        }
        if self.device.died() {
            self.epoch.device_lost(now, DEVICE);
        }
    }

    fn deliver(&mut self, message: Message) {
        let now = self.now;
        match message {
            Message::Progress => self.epoch.device_progress(now, DEVICE),
            Message::Published { device, batch, generation } => {
                let (batch, generation) = (BatchIndex(batch), Generation(generation));
                let taken = self.epoch.device_published(now, DeviceId(device), batch, generation);
                if taken == Outcome::Accepted {
                    self.slots += 1;
                    assert!(
                        self.slots <= self.epoch.config().devices[0].spool_slots,
                        "the spool overflows"
                    );
                }
            }
            Message::Failed { batch, generation } => {
                let (batch, generation) = (BatchIndex(batch), Generation(generation));
                self.epoch.device_rejected(now, DEVICE, batch, generation);
            }
        }
    }

    fn fetched(&mut self, batch: u32, generation: u32) {
        let torn = self.random.percent(self.scenario.faults.torn);
        let (index, fence) = (BatchIndex(batch), Generation(generation));
        let outcome = if torn {
            self.epoch.device_rejected(self.now, DEVICE, index, fence)
        } else {
            self.epoch.device_fetched(self.now, DEVICE, index, fence)
        };
        if torn || outcome != Outcome::Accepted {
            self.slots -= 1;
        } else {
            assert_eq!(self.prepared.insert(batch, Source::Device(DEVICE)), None);
        }
    }

    /// Asks for decisions until nobody is told anything.
    fn poll(&mut self) {
        loop {
            let before = self.posted + self.sequence.len() as u64;
            for part in self.random.shuffled([0, 1, 2, 3]) {
                match part {
                    0 => self.poll_device(),
                    1 => self.poll_host(),
                    2 => self.poll_fetch(),
                    _ => self.poll_accelerator(),
                }
            }
            if self.finished || before == self.posted + self.sequence.len() as u64 {
                break;
            }
        }
    }

    fn poll_device(&mut self) {
        loop {
            match self.epoch.device(self.now, DEVICE) {
                DeviceDecision::Work(run, generation) => {
                    assert!(run.count > 0);
                    assert!(self.fence.is_none_or(|fence| fence == generation));
                    let batches = (0..run.count)
                        .map(|i| if run.descending { run.first.0 - i } else { run.first.0 + i });
                    self.device.append(batches, generation.0);
                }
                DeviceDecision::Revoke(generation) => {
                    assert!(self.fence.is_none_or(|fence| fence < generation), "a fence fell");
                    self.fence = Some(generation);
                    self.device.revoke();
                }
                DeviceDecision::Stop => self.device.stop(),
                DeviceDecision::Idle => break,
            }
        }
        if let Some(due) = self.device.begin(self.now) {
            self.post(due - self.now, Event::DeviceDue);
        }
    }

    fn poll_host(&mut self) {
        let threads = self.scenario.workers.max(1);
        // Without workers the consumer prepares only when it has nothing else to do.
        while self.preparing < threads && !(self.scenario.workers == 0 && self.accelerator_busy) {
            let HostDecision::Prepare(batch) = self.epoch.host(self.now) else { break };
            self.preparing += 1;
            let delay = self.random.around(self.scenario.host_ns);
            self.post(delay, Event::HostDone(batch.0));
        }
    }

    fn poll_fetch(&mut self) {
        while let Some((batch, device, generation)) = self.epoch.fetch(self.now) {
            assert_eq!(device, DEVICE);
            let delay = self.random.around(self.scenario.fetch_ns);
            self.post(delay, Event::FetchDone { batch: batch.0, generation: generation.0 });
        }
    }

    fn poll_accelerator(&mut self) {
        if self.accelerator_busy || (self.scenario.workers == 0 && self.preparing > 0) {
            return;
        }
        match self.epoch.accelerator(self.now) {
            AcceleratorDecision::Consume(batch, source) => {
                let by = self.prepared.remove(&batch.0);
                assert_eq!(by, Some(source), "batch {} was not ready", batch.0);
                self.slots -= u32::from(source != Source::Host);
                self.sequence.push(batch.0);
                self.accelerator_busy = true;
                let delay = self.random.around(self.scenario.step_ns);
                self.post(delay, Event::StepDone);
            }
            AcceleratorDecision::WaitUntil(until) => {
                assert!(until > self.now, "a wait ends in the future");
                assert!(until <= self.now + 1_000_000_000, "a wait is at most a second");
                if self.wake_at.is_none_or(|at| until < at) {
                    self.wake_at = Some(until);
                    self.post(until - self.now, Event::Wake);
                }
            }
            AcceleratorDecision::Agree(_) => panic!("one rank decides alone"),
            AcceleratorDecision::Done => self.finished = true,
        }
    }

    fn into_run(mut self) -> Run {
        self.epoch.check_invariants();
        assert!(self.prepared.is_empty(), "batches are left over: {:?}", self.prepared);
        let batches = self.epoch.config().batches;
        let mut covered = self.sequence.clone();
        covered.sort_unstable();
        assert_eq!(covered, (0..batches).collect::<Vec<_>>(), "C0: every batch exactly once");
        let summary = self.epoch.summary();
        assert_eq!(summary.host_batches + summary.device_batches, batches);
        // Nothing is said or taken after the end but the last words to the device.
        while self.epoch.device(self.now, DEVICE) != DeviceDecision::Idle {}
        assert_eq!(self.epoch.host(self.now), HostDecision::Done);
        assert_eq!(self.epoch.fetch(self.now), None);
        assert_eq!(self.epoch.accelerator(self.now), AcceleratorDecision::Done);
        Run { sequence: self.sequence, summary, ended_ns: self.now }
    }
}
