//! The discrete-event simulator: the real scheduler, one per rank, in virtual time.
//!
//! It processes events from one queue in order of time. It reports changes to the scheduler of the
//! rank and asks it for the next decision, as the host's driver does. Memory grows with ranks,
//! devices and open work, not with batches, unless sequence or timeline are recorded.
//!
//! In reading order: this file (the state, its epochs and its event loop), `layout` (which device
//! serves which rank), `scheduler_config` (the configuration of the scheduler), `rank` (the
//! decisions of a rank), `steps` (what ranks do together), `across` (state that one epoch passes to
//! the next), `device`, `faults`, `operation` and `progress` (work that takes time), `network`
//! (links and stores), `shared` (shared resources), `uses` (how busy they were), `queue`, `draw`.

mod across;
mod device;
mod draw;
mod faults;
mod layout;
mod network;
mod operation;
mod progress;
mod queue;
mod rank;
mod scheduler_config;
mod shared;
mod steps;
mod uses;

use meetpoint_scheduler::{BatchIndex, Epoch, Learned, Time};

use crate::Error;
use crate::outcome::{EpochOutcome, Interval, LegBytes, LostRank, Outcome, Recording, WorkKind};
use crate::scenario::{Bandwidth, RankFaultKind, Scenario};
use device::{Device, Lane};
use draw::{Draws, Stream};
use layout::Layout;
use network::{Links, Throttle};
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
/// A scenario that [`Scenario::check`] or the scheduler refuses; a step that takes too many events.
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
    world.outcome.uses = uses::between(None, &world.served(), (0, world.now));
    world.outcome.throttled = world.throttles.iter().map(|it| it.rejected).sum();
    world.outcome.lost_rank = world.lost;
    world.outcome.events_waiting_max = world.queue.waiting_max();
    Ok(world.outcome)
}

/// The run fails for lack of progress after this number of events without a completed step, plus
/// this number for each rank and link. Even a batch that takes a day with a stall timeout of 2 s
/// needs fewer.
const EVENTS_WITHOUT_STEP_MAX: u64 = 5_000_000;
const EVENTS_OF_EACH_MAX: u64 = 2_000;

/// Shared resources; `None`: not limited.
#[derive(Debug, Default)]
struct Resources {
    all: Vec<Shared>,
    /// Of each host.
    cores: Vec<Option<u32>>,
    /// Of each host.
    host_read: Vec<Option<u32>>,
    /// Of each host.
    spool_read: Vec<Option<u32>>,
    /// Of each device.
    drives: Vec<Option<u32>>,
    links: Links,
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
    throttles: Vec<Throttle>,
    /// Random backoffs so far.
    drawn: u64,
    /// When each host fails next, and how often it has.
    host_failures: Vec<(Option<Time>, u64)>,
    /// Of each training.
    steps: Vec<Steps>,
    /// Trainings whose ranks have consumed every batch.
    trainings_done: u32,
    /// Steps of the epoch that have ended, of all trainings.
    steps_taken: u64,
    /// The beginning of the middle half of the last epoch: when, after how many steps, and how busy
    /// the resources had been.
    middle: Option<(Time, u64, Vec<uses::Served>)>,
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
            steps: (0..scenario.rank_count() / scenario.ranks_together())
                .map(|training| training * scenario.ranks_together())
                .map(|first| Steps::new(first, scenario.ranks_together()))
                .collect(),
            trainings_done: 0,
            steps_taken: 0,
            middle: None,
            throttles: Throttle::all(scenario.stores.as_ref()),
            drawn: 0,
            host_failures: vec![(None, 0); scenario.hosts.count as usize],
            devices,
            layout,
            scenario,
            keep,
            draws: Draws::new(seed),
            queue: Queue::default(),
            now: 0,
            epoch: 0,
            epoch_began: 0,
            ranks: Vec::with_capacity(scenario.rank_count() as usize),
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
        for rank in 0..self.scenario.rank_count() {
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
        self.steps.iter_mut().for_each(Steps::begin_epoch);
        (self.trainings_done, self.steps_taken) = (0, 0);
        self.announce_faults();
        for rank in self.ranks.iter_mut().filter(|rank| !rank.is_absent()) {
            rank.scheduler.accelerator_ready(self.now);
        }
        for rank in 0..self.scenario.rank_count() {
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
        (0..self.scenario.hosts.count).for_each(|host| self.plan_host_failure(host));
        for device in 0..self.layout.devices() {
            if !self.is_usable(device) {
                // No session can be opened with it for this epoch.
                self.refuse_link(device);
                continue;
            }
            self.plan_failure(device);
            let found = &self.devices[device as usize];
            if let Some(at) = found.faults.link_breaks_at().filter(|at| *at >= self.now) {
                self.queue.post(at, Event::LinkBreaks { device });
            }
        }
    }

    /// Posts the next failure of a host.
    fn plan_host_failure(&mut self, host: u32) {
        let Some(mean) = self.scenario.hosts.time_to_failure else { return };
        let (now, draws) = (self.now, self.draws);
        let (at, nth) = &mut self.host_failures[host as usize];
        let nth = *nth;
        let at = *at.get_or_insert_with(|| {
            now.saturating_add(draws.exponential(Stream::HostFailure, host, nth, mean.0))
        });
        self.queue.post(at.max(now), Event::HostFails { host });
    }

    /// A host fails, and its next failure is drawn.
    fn host_failed(&mut self, host: u32) {
        let found = &mut self.host_failures[host as usize];
        if found.0.is_none_or(|at| at > self.now) {
            return;
        }
        *found = (None, found.1 + 1);
        self.outcome.host_failures += 1;
        self.host_fails(host);
        self.plan_host_failure(host);
    }

    fn run_epoch(&mut self) -> Result<(), Error> {
        let parts = u64::from(self.layout.lanes()) + u64::from(self.scenario.rank_count());
        let limit = EVENTS_WITHOUT_STEP_MAX + parts * EVENTS_OF_EACH_MAX;
        let (mut steps, mut since) = (self.steps_taken(), self.outcome.events);
        while self.lost.is_none() && !self.all_done() {
            if self.steps_taken() != steps {
                (steps, since) = (self.steps_taken(), self.outcome.events);
            } else if self.outcome.events - since > limit {
                let (epoch, at_ns) = (self.epoch, self.now);
                let step = u32::try_from(steps).unwrap_or(u32::MAX);
                return Err(Error::NoProgress { epoch, step, events: limit, at_ns });
            }
            let (time, event) = self.queue.pop().expect("a waiting rank has requested a tick");
            debug_assert!(time >= self.now, "time went back");
            self.now = time;
            self.outcome.events += 1;
            // Hosts fail whatever else happens.
            since += u64::from(matches!(event, Event::HostFails { .. }));
            self.happen(event);
            self.note_middle();
        }
        Ok(())
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Elapsed { op, serial } => self.part_done(op, serial),
            Event::Join { op, serial, part } => self.join_resource(op, serial, part),
            Event::Request { op, serial, store } => self.request(op, serial, store),
            Event::Shared { resource, version } => self.resource_due(resource, version),
            Event::Published { lane, batch, generation, corrupt } => {
                self.published(lane, batch, generation, corrupt);
            }
            Event::Poke { device } => self.start_device(device),
            Event::Progress { device } => self.progress(device),
            Event::Recovered { device } => self.speak(device),
            Event::LinkBreaks { device } => self.break_link(device),
            Event::DeviceFails { device } => self.device_fails(device),
            Event::HostFails { host } => self.host_failed(host),
            Event::StepEnds { training } => self.step_ends(training),
            Event::Agreed { training } => self.agreed(training),
            Event::Wake { rank } => self.wake(rank),
            Event::Arrives { rank } => self.arrives(rank),
            Event::Timeout { training } => self.timeout(training),
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
        let mut all = Vec::new();
        let threads = scenario.ranks.count.saturating_mul(scenario.host.workers.max(1));
        // Cores are not a limit if there is one for each thread.
        let cores = scenario.host.cores.filter(|cores| *cores < threads);
        let mut add = |shared: Option<Shared>| {
            all.push(shared?);
            Some(u32::try_from(all.len() - 1).expect("a few for each host and device"))
        };
        let leg = |bandwidth: Option<Bandwidth>| bandwidth.map(|it| Shared::bandwidth(it.0));
        let (hosts, storage) = (0..scenario.hosts.count, &scenario.storage);
        let read = |_| leg(storage.host_read_bandwidth);
        let spool = |_| leg(storage.spool_read_bandwidth);
        let drive = |device| leg(scenario.devices[layout.kind(device)].drive_bandwidth);
        Self {
            cores: hosts.clone().map(|_| add(cores.map(Shared::cores))).collect(),
            host_read: hosts.clone().map(read).map(&mut add).collect(),
            spool_read: hosts.map(spool).map(&mut add).collect(),
            drives: (0..layout.devices()).map(drive).map(&mut add).collect(),
            links: Links::new(scenario, layout, &mut all),
            all,
        }
    }
}
