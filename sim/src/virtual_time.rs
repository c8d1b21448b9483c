//! Runs the scheduler that ships in virtual time, on a machine of constants.
//!
//! Without workers the consumer prepares between steps, as the host's loader does; with workers
//! they prepare in the background. The device works its queue one batch after the other. Bringing
//! a slot into host memory takes no time of its own: what cannot be hidden of it is part of the
//! step (`direct_read_ns`).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use meetpoint_scheduler::{
    AcceleratorDecision, BatchIndex, Config, DeviceConfig, DeviceDecision, DeviceId, Epoch,
    Generation, Holders, HostDecision, Learned, Profile, Source, Strategy, Summary, Time,
};

use crate::error::Error;

/// What the machine takes for a batch, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// t_p: preparation of a batch by one worker, or by the consumer.
    pub preparation_ns: u64,
    /// w: background workers; 0: the consumer prepares.
    pub workers: u32,
    /// t_t: a training step.
    pub train_ns: u64,
    /// t_d: what a step on a device batch takes longer.
    pub direct_read_ns: u64,
    /// t_s: a batch at the device.
    pub device_ns: u64,
    /// The device falls silent for good before its n-th batch (from 0) is published.
    pub device_dies_at: Option<u32>,
}

/// What a simulated epoch came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simulation {
    /// T: from the start to the end of the last step.
    pub total_ns: u64,
    /// What was consumed, in order.
    pub sequence: Vec<(BatchIndex, Source)>,
    /// The scheduler's own account.
    pub summary: Summary,
    /// Time of all host preparation: core-nanoseconds.
    pub host_busy_ns: u64,
    /// Time that the device worked.
    pub device_busy_ns: u64,
    /// Time that the accelerator was in a step.
    pub accelerator_busy_ns: u64,
}

impl Machine {
    /// Its true t_c, t_s and t_g.
    pub fn profile(&self) -> Profile {
        let host_ns = match u64::from(self.workers) {
            0 => self.preparation_ns + self.train_ns,
            workers => (self.preparation_ns / workers).max(self.train_ns),
        };
        let ready_ns = self.train_ns + self.direct_read_ns;
        Profile { host_ns, device_ns: self.device_ns, ready_ns }
    }

    /// A configuration that suits it: its profile known, two batches of prefetch per worker, a
    /// lookahead of four, a spool that never limits.
    pub fn config(&self, batches: u32, strategy: Strategy) -> Config {
        Config {
            batches,
            strategy,
            host_ahead: (self.workers * 3).max(1),
            fetch_ahead: 4,
            devices: vec![DeviceConfig { ahead: 4, spool_slots: batches, first_generation: 1 }],
            holders: Holders::Shared,
            stall_timeout_ns: self.device_ns.saturating_mul(10).max(1),
            stalls_max: 3,
            profile_batches: 8,
            learned: Learned::from_profile(&self.profile(), 1),
            replay: None,
            ranks: 1,
            costs: None,
        }
    }
}

const DEVICE: DeviceId = DeviceId(0);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    HostDone(BatchIndex),
    DeviceDone,
    StepDone,
    Wake,
}

struct World<'a> {
    machine: &'a Machine,
    epoch: Epoch,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    posted: u64,
    now: Time,
    preparing: u32,
    in_step: bool,
    wake_at: Option<Time>,
    queue: VecDeque<(BatchIndex, Generation)>,
    device_due: Option<Time>,
    device_begun: u32,
    dropped_dues: u32,
    done: bool,
    result: Simulation,
}

/// Runs one epoch to its end.
pub fn simulate(config: &Config, machine: &Machine) -> Result<Simulation, Error> {
    let epoch = Epoch::new(config.clone())?;
    let result = Simulation {
        total_ns: 0,
        sequence: Vec::with_capacity(config.batches as usize),
        summary: epoch.summary(),
        host_busy_ns: 0,
        device_busy_ns: 0,
        accelerator_busy_ns: 0,
    };
    let mut world = World {
        machine,
        epoch,
        events: BinaryHeap::new(),
        posted: 0,
        now: 0,
        preparing: 0,
        in_step: false,
        wake_at: None,
        queue: VecDeque::new(),
        device_due: None,
        device_begun: 0,
        dropped_dues: 0,
        done: false,
        result,
    };
    world.epoch.accelerator_ready(0);
    world.poll();
    while !world.done {
        let Reverse((time, _, event)) =
            world.events.pop().expect("a waiting accelerator posts a wake-up");
        world.now = time;
        world.happen(event);
        world.poll();
    }
    world.result.total_ns = world.now;
    world.result.summary = world.epoch.summary();
    Ok(world.result)
}

impl World<'_> {
    fn post(&mut self, delay: u64, event: Event) {
        self.posted += 1;
        self.events.push(Reverse((self.now.saturating_add(delay), self.posted, event)));
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::HostDone(batch) => {
                self.preparing -= 1;
                self.epoch.host_finished(self.now, batch);
            }
            Event::DeviceDone if self.dropped_dues > 0 => self.dropped_dues -= 1,
            Event::DeviceDone => {
                self.device_due = None;
                self.result.device_busy_ns += self.machine.device_ns;
                if let Some((batch, generation)) = self.queue.pop_front() {
                    self.epoch.device_published(self.now, DEVICE, batch, generation);
                }
            }
            Event::StepDone => {
                self.in_step = false;
                self.epoch.accelerator_ready(self.now);
            }
            Event::Wake => {
                self.wake_at = None;
                self.epoch.tick(self.now);
            }
        }
    }

    fn poll(&mut self) {
        self.poll_device();
        while let Some((batch, device, generation)) = self.epoch.fetch(self.now) {
            self.epoch.device_fetched(self.now, device, batch, generation);
        }
        if self.machine.workers > 0 {
            self.poll_host(self.machine.workers);
            self.poll_accelerator();
        } else if self.preparing == 0 {
            self.poll_accelerator();
            if !self.in_step && !self.done {
                self.poll_host(1);
            }
        }
        // A consumed batch frees a place, a claim may have fixed the split.
        self.poll_device();
    }

    fn poll_device(&mut self) {
        loop {
            match self.epoch.device(self.now, DEVICE) {
                DeviceDecision::Work(run, generation) => {
                    let first = run.first.0;
                    self.queue.extend((0..run.count).map(|offset| {
                        let batch = if run.descending { first - offset } else { first + offset };
                        (BatchIndex(batch), generation)
                    }));
                }
                DeviceDecision::Revoke(_) => {
                    self.queue.clear();
                    if let Some(due) = self.device_due.take() {
                        // Its completion is still among the events.
                        self.dropped_dues += 1;
                        let spent = self.machine.device_ns - due.saturating_sub(self.now);
                        self.result.device_busy_ns += spent;
                    }
                }
                DeviceDecision::Stop | DeviceDecision::Idle => break,
            }
        }
        if self.device_due.is_none() && !self.queue.is_empty() {
            if self.machine.device_dies_at.is_some_and(|at| self.device_begun >= at) {
                return;
            }
            self.device_begun += 1;
            self.device_due = Some(self.now.saturating_add(self.machine.device_ns));
            self.post(self.machine.device_ns, Event::DeviceDone);
        }
    }

    fn poll_host(&mut self, threads: u32) {
        while self.preparing < threads {
            let HostDecision::Prepare(batch) = self.epoch.host(self.now) else { break };
            self.preparing += 1;
            self.result.host_busy_ns += self.machine.preparation_ns;
            self.post(self.machine.preparation_ns, Event::HostDone(batch));
        }
    }

    fn poll_accelerator(&mut self) {
        if self.in_step {
            return;
        }
        match self.epoch.accelerator(self.now) {
            AcceleratorDecision::Consume(batch, source) => {
                let step_ns = match source {
                    Source::Host => self.machine.train_ns,
                    Source::Device(_) => self.machine.train_ns + self.machine.direct_read_ns,
                };
                self.in_step = true;
                self.result.sequence.push((batch, source));
                self.result.accelerator_busy_ns += step_ns;
                self.post(step_ns, Event::StepDone);
            }
            AcceleratorDecision::WaitUntil(until) => {
                if self.wake_at.is_none_or(|at| until < at) {
                    self.wake_at = Some(until);
                    self.post(until - self.now, Event::Wake);
                }
            }
            AcceleratorDecision::Agree(_) => unreachable!("one rank decides alone"),
            AcceleratorDecision::Done => self.done = true,
        }
    }
}
