//! The discrete-event simulator: the real scheduler, one per rank, in virtual time.
//!
//! It processes events from one queue in order of time. It reports changes to the scheduler of the
//! rank and asks it for the next decision, as the host's driver does. Memory grows with ranks,
//! devices and open work, not with batches, unless sequence or timeline are recorded.
//!
//! In reading order: this file (the state, its epochs and its event loop), `layout` (which device
//! serves which rank), `scheduler_config` (the configuration of the scheduler), `rank` (the
//! decisions of a rank), `steps` (what ranks do together), `across` (state that one epoch passes to
//! the next), `device`, `faults`, `operation` and `progress` (work that takes time), `shared`
//! (shared resources), `queue`, `draw`.

mod across;
mod device;
mod draw;
mod faults;
mod layout;
mod operation;
mod progress;
mod queue;
mod rank;
mod scheduler_config;
mod shared;
mod steps;

use meetpoint_scheduler::{BatchIndex, Epoch, Learned, Time};

use crate::Error;
use crate::outcome::{EpochOutcome, Interval, LegBytes, LostRank, Outcome, Recording, WorkKind};
use crate::scenario::{RankFaultKind, Scenario};
use device::{Device, Lane};
use draw::Draws;
use layout::Layout;
use operation::Operations;
use queue::{Event, Queue};
use rank::Rank;
use shared::Shared;
use steps::Steps;

/// Runs all epochs of a scenario. The same scenario and seed give the same outcome on every
/// machine.
///
/// # Errors
///
/// A scenario that [`Scenario::check`] or the scheduler refuses; a run without progress.
pub fn run(scenario: &Scenario, seed: u64) -> Result<Outcome, Error> {
    run_keeping(scenario, seed, Recording::default())
}

/// As [`run`], but records more than the sums.
///
/// # Errors
///
/// As [`run`].
pub fn run_keeping(scenario: &Scenario, seed: u64, keep: Recording) -> Result<Outcome, Error> {
    scenario.check()?;
    let mut world = World::new(scenario, seed, keep);
    for epoch in 0..scenario.epochs {
        world.begin_epoch(epoch)?;
        world.run_epoch()?;
        world.end_epoch();
        if world.lost.is_some() {
            break;
        }
    }
    world.outcome.total_ns = world.now;
    world.outcome.lost_rank = world.lost;
    world.outcome.events_waiting_max = world.queue.waiting_max();
    Ok(world.outcome)
}

/// The run fails for lack of progress after this number of events without a completed step, plus
/// this number for each rank and link.
const EVENTS_WITHOUT_STEP_MAX: u64 = 100_000;
const EVENTS_OF_EACH_MAX: u64 = 2_000;

/// Shared resources; `None`: not limited.
#[derive(Debug, Default)]
struct Resources {
    all: Vec<Shared>,
    cores: Option<u32>,
    host_read: Option<u32>,
    spool_read: Option<u32>,
    /// Of each device.
    drives: Vec<Option<u32>>,
}

struct World<'s> {
    scenario: &'s Scenario,
    keep: Recording,
    layout: Layout,
    draws: Draws,
    queue: Queue,
    now: Time,
    epoch: u32,
    epoch_began: Time,
    ranks: Vec<Rank>,
    lanes: Vec<Lane>,
    devices: Vec<Device>,
    operations: Operations,
    resources: Resources,
    steps: Steps,
    bytes: LegBytes,
    lost: Option<LostRank>,
    outcome: Outcome,
}

impl<'s> World<'s> {
    fn new(scenario: &'s Scenario, seed: u64, keep: Recording) -> Self {
        let layout = Layout::new(scenario);
        let devices = (0..layout.devices())
            .map(|device| Device::new(&scenario.devices[layout.kind(device)]))
            .collect();
        Self {
            resources: Resources::new(scenario, &layout),
            lanes: (0..layout.lanes()).map(|lane| Lane::new(scenario, &layout, lane)).collect(),
            steps: Steps::new(scenario.ranks.count),
            devices,
            layout,
            scenario,
            keep,
            draws: Draws::new(seed),
            queue: Queue::default(),
            now: 0,
            epoch: 0,
            epoch_began: 0,
            ranks: Vec::with_capacity(scenario.ranks.count as usize),
            operations: Operations::default(),
            bytes: LegBytes::default(),
            lost: None,
            outcome: Outcome::default(),
        }
    }

    fn begin_epoch(&mut self, epoch: u32) -> Result<(), Error> {
        self.epoch = epoch;
        self.epoch_began = self.now;
        self.bytes = LegBytes::default();
        let mut before = std::mem::take(&mut self.ranks);
        for rank in 0..self.scenario.ranks.count {
            let mut before = before.get_mut(rank as usize);
            let scheduler = match before.as_mut().and_then(|before| before.ahead.take()) {
                Some(ahead) => ahead,
                None => self.fresh_scheduler(rank, before.as_deref())?,
            };
            let mut fresh = Rank::new(scheduler, self.now, self.keep);
            if let Some(before) = before {
                fresh.resume_counts_of(before);
            }
            self.ranks.push(fresh);
            self.choose(rank);
            self.hand_on(rank);
        }
        self.steps.begin_epoch();
        self.announce_faults();
        for rank in self.ranks.iter_mut().filter(|rank| !rank.is_absent()) {
            rank.scheduler.accelerator_ready(self.now);
        }
        for rank in 0..self.scenario.ranks.count {
            if !self.dies_now(rank) {
                self.poll(rank);
            }
        }
        Ok(())
    }

    fn fresh_scheduler(&self, rank: u32, before: Option<&Rank>) -> Result<Epoch, Error> {
        let learned: Learned = match before.filter(|_| self.scenario.learn) {
            Some(before) => before.learned(self.scenario.run_ahead),
            None => scheduler_config::learned(self.scenario, &self.layout, rank),
        };
        let lanes = &self.lanes;
        let generations = |lane: u32| lanes[lane as usize].next_generation;
        let config =
            scheduler_config::config(self.scenario, &self.layout, rank, learned, generations)?;
        Ok(Epoch::new(config)?)
    }

    /// Posts the timed faults of the epoch, and reports earlier ones.
    fn announce_faults(&mut self) {
        for fault in &self.scenario.ranks.faults {
            if let RankFaultKind::Late(by) = fault.kind
                && self.epoch == 0
                && by.0 > 0
            {
                self.ranks[fault.rank as usize].be_absent();
                self.outcome.late_ranks.push(fault.rank);
                self.queue.post(self.now.saturating_add(by.0), Event::Arrives { rank: fault.rank });
            }
        }
        for device in 0..self.layout.devices() {
            let found = &self.devices[device as usize];
            if found.link_is_broken || found.faults.is_dead(self.now) {
                // No session can be opened with it for this epoch.
                self.refuse_link(device);
                continue;
            }
            if let Some(at) = found.faults.link_breaks_at().filter(|at| *at >= self.now) {
                self.queue.post(at, Event::LinkBreaks { device });
            }
        }
    }

    fn run_epoch(&mut self) -> Result<(), Error> {
        let parts = u64::from(self.layout.lanes()) + u64::from(self.scenario.ranks.count);
        let limit = EVENTS_WITHOUT_STEP_MAX + parts * EVENTS_OF_EACH_MAX;
        let (mut steps, mut since) = (self.steps.taken(), self.outcome.events);
        while self.lost.is_none() && !self.steps.all_done() {
            if self.steps.taken() != steps {
                (steps, since) = (self.steps.taken(), self.outcome.events);
            } else if self.outcome.events - since > limit {
                let (epoch, at_ns) = (self.epoch, self.now);
                return Err(Error::NoProgress { epoch, step: steps, events: limit, at_ns });
            }
            let (time, event) = self.queue.pop().expect("a waiting rank has requested a tick");
            debug_assert!(time >= self.now, "time went back");
            self.now = time;
            self.outcome.events += 1;
            self.happen(event);
        }
        Ok(())
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Elapsed { op, serial } => self.part_done(op, serial),
            Event::Join { op, serial } => self.join_resource(op, serial),
            Event::Shared { resource, version } => self.resource_due(resource, version),
            Event::Published { lane, batch, generation, corrupt } => {
                self.published(lane, batch, generation, corrupt);
            }
            Event::Poke { device } => self.start_device(device),
            Event::Progress { device, serial } => self.progress(device, serial),
            Event::Recovered { device } => self.speak(device),
            Event::LinkBreaks { device } => self.break_link(device),
            Event::StepEnds => self.step_ends(),
            Event::Agreed => self.agreed(),
            Event::Wake { rank } => self.wake(rank),
            Event::Arrives { rank } => self.arrives(rank),
            Event::Timeout => self.timeout(),
        }
    }

    fn end_epoch(&mut self) {
        if !self.scenario.run_ahead {
            self.queue.clear();
            self.operations.clear();
            self.resources.all.iter_mut().for_each(Shared::clear);
        }
        let devices = (0..self.layout.devices()).map(|device| self.reset_device(device)).collect();
        for lane in 0..self.layout.lanes() {
            self.reset_lane(lane);
        }
        let now = self.now;
        let levels = self.scenario.levels();
        let ranks = self.ranks.iter_mut().map(|rank| rank.finish(&levels)).collect();
        self.outcome.epochs.push(EpochOutcome {
            total_ns: now - self.epoch_began,
            ranks,
            devices,
            bytes: self.bytes,
        });
    }

    fn note(&mut self, rank: u32, what: WorkKind, batch: BatchIndex, start_ns: Time, end_ns: Time) {
        let batch = self.ranks[rank as usize].batch_at(batch);
        if let Some(timeline) = &mut self.ranks[rank as usize].outcome.timeline {
            timeline.push(Interval { what, batch, start_ns, end_ns });
        }
    }
}

impl Resources {
    fn new(scenario: &Scenario, layout: &Layout) -> Self {
        let mut found = Self::default();
        let threads = scenario.ranks.count.saturating_mul(scenario.host.workers.max(1));
        // Cores are not a limit if there is one for each thread.
        let cores = scenario.host.cores.filter(|cores| *cores < threads);
        found.cores = cores.map(|cores| found.add(Shared::cores(cores)));
        let storage = &scenario.storage;
        let mut leg = |bandwidth: Option<crate::scenario::Bandwidth>| {
            bandwidth.map(|it| found.add(Shared::bandwidth(it.0)))
        };
        let (host_read, spool_read) =
            (leg(storage.host_read_bandwidth), leg(storage.spool_read_bandwidth));
        let drives = (0..layout.devices())
            .map(|device| leg(scenario.devices[layout.kind(device)].drive_bandwidth))
            .collect();
        Self { host_read, spool_read, drives, ..found }
    }

    fn add(&mut self, shared: Shared) -> u32 {
        self.all.push(shared);
        u32::try_from(self.all.len() - 1).expect("as many as devices, and three")
    }
}
