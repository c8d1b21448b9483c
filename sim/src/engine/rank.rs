//! A rank: its scheduler, its host's threads and its accelerator, polled as the host's driver does.

use meetpoint_scheduler::{
    AcceleratorDecision, BatchIndex, CommonTimes, DeviceId, Epoch, Generation, HostDecision,
    Learned, Level, Outcome as Taken, Proposal, Source, Time,
};

use super::World;
use super::across::scaled;
use super::draw::{DrawKey, Stream};
use super::network::Reader;
use super::operation::{Part, Stages, Work};
use super::queue::Event;
use crate::outcome::{RankOutcome, Recording, WorkKind};

#[derive(Debug)]
pub(super) struct Rank {
    pub(super) scheduler: Epoch,
    /// The next epoch, if devices have begun it.
    pub(super) ahead: Option<Epoch>,
    /// What all ranks knew when this epoch began.
    known_before: Option<CommonTimes>,
    /// Batches of this epoch that devices published before it began.
    pub(super) published_ahead: u32,
    /// The batch at each position, if batches are chosen.
    pub(super) chosen: Option<Vec<u32>>,
    pub(super) phase: Phase,
    /// Threads of the host that prepare.
    preparing: u32,
    /// End of the step before.
    free_since: Time,
    /// Time since then that the consumer itself prepared.
    prepared_ns: u64,
    wake_at: Option<Time>,
    /// Batches begun by the host, over all epochs.
    prepared: u64,
    /// Steps begun, over all epochs.
    steps: u64,
    /// Polls, to spread those of many devices.
    polls: u32,
    /// Lane of the batch that was consumed last, until it is polled.
    freed_lane: Option<u32>,
    /// Published batches that are damaged.
    pub(super) corrupt: Vec<(Generation, BatchIndex)>,
    pub(super) outcome: RankOutcome,
}

/// State of the accelerator of a rank.
#[expect(clippy::large_enum_variant, reason = "one for each rank")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not started yet, or lost.
    Absent,
    /// It requests a batch.
    Asking,
    /// It waits for the agreement of the ranks.
    Proposed(Proposal),
    /// In a step, or waiting for the others to end theirs.
    InStep,
    /// Every batch was consumed.
    Done,
}

/// With more devices than this at a rank, unchanged devices are polled in turn, this many after
/// each event, instead of all of them. A device that published, or whose slot was freed, is always
/// polled.
const POLLED_EACH_TIME: u32 = 4;

impl Rank {
    pub(super) fn new(scheduler: Epoch, now: Time, keep: Recording) -> Self {
        let outcome = RankOutcome {
            sequence: keep.sequence.then(Vec::new),
            timeline: keep.timeline.then(Vec::new),
            ..RankOutcome::default()
        };
        Self {
            scheduler,
            ahead: None,
            known_before: None,
            published_ahead: 0,
            chosen: None,
            phase: Phase::Asking,
            preparing: 0,
            free_since: now,
            prepared_ns: 0,
            wake_at: None,
            prepared: 0,
            steps: 0,
            polls: 0,
            freed_lane: None,
            corrupt: Vec::new(),
            outcome,
        }
    }

    /// Copies the counters that continue over all epochs.
    pub(super) fn resume_counts_of(&mut self, before: &Self) {
        self.prepared = before.prepared;
        self.steps = before.steps;
        self.known_before = before.scheduler.learned().common;
        self.outcome.ahead_batches = before.published_ahead;
    }

    /// The learned times for the next epoch. If devices may have begun it before the last agreement
    /// of this one, the common knowledge of the ranks is that of the previous epoch.
    pub(super) fn learned(&self, run_ahead: bool) -> Learned {
        let learned = self.scheduler.learned();
        let common = if run_ahead { self.known_before } else { learned.common };
        Learned { common, ..learned }
    }

    /// The batch at a position of the order.
    pub(super) fn batch_at(&self, place: BatchIndex) -> BatchIndex {
        let chosen = self.chosen.as_ref();
        chosen.map_or(place, |chosen| BatchIndex(chosen[place.0 as usize]))
    }

    pub(super) fn is_absent(&self) -> bool {
        self.phase == Phase::Absent
    }

    pub(super) fn be_absent(&mut self) {
        self.phase = Phase::Absent;
    }

    /// Steps begun, over all epochs.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// The step that all ranks took together has ended.
    pub(super) fn end_step(&mut self, now: Time) {
        self.phase = Phase::Asking;
        self.free_since = now;
        self.prepared_ns = 0;
        self.outcome.steps += 1;
        self.scheduler.accelerator_ready(now);
    }

    /// The outcome of the epoch.
    pub(super) fn finish(&mut self, levels: &[Level]) -> RankOutcome {
        let mut outcome = std::mem::take(&mut self.outcome);
        let summary = self.scheduler.summary();
        outcome.revoked = summary.revoked;
        outcome.void_reports = summary.void_reports;
        outcome.stalls = summary.stalls;
        outcome.split = summary.split;
        let devices = self.scheduler.config().devices.len();
        let lost = (0..devices).filter(|device| {
            let id = DeviceId(u16::try_from(*device).expect("checked: at most 60,000"));
            self.scheduler.device_summary(id).is_some_and(|device| device.lost)
        });
        outcome.devices_lost = u32::try_from(lost.count()).expect("at most 60,000");
        outcome.record = self.scheduler.record().map(|record| record.to_string());
        outcome.picked = self.scheduler.selection().map(|selection| selection.to_string());
        outcome.levels = levels.to_vec();
        outcome
    }
}

impl World<'_> {
    /// Records that the state of a rank's device changed.
    pub(super) fn touch(&mut self, rank: u32, lane: u32) {
        let lanes = self.layout.lanes_of_rank(rank);
        self.poll(rank);
        if lanes.end - lanes.start > POLLED_EACH_TIME && !self.ranks[rank as usize].is_absent() {
            self.poll_lane(rank, lane);
        }
    }

    /// Asks the scheduler of a rank for all decisions, as the host's driver does after each event.
    pub(super) fn poll(&mut self, rank: u32) {
        let at = rank as usize;
        if self.ranks[at].is_absent() {
            return;
        }
        self.fetch(rank);
        let workers = self.scenario.host.workers;
        if workers > 0 || self.ranks[at].preparing == 0 {
            self.ask(rank);
        }
        if workers > 0 {
            self.prepare(rank, workers);
        } else if self.ranks[at].preparing == 0 && self.ranks[at].phase == Phase::Asking {
            self.prepare(rank, 1);
        }
        // A consumed batch freed a position.
        self.fetch(rank);
        self.poll_lanes(rank);
    }

    fn poll_lanes(&mut self, rank: u32) {
        let lanes = self.layout.lanes_of_rank(rank);
        let count = lanes.end - lanes.start;
        if count <= POLLED_EACH_TIME {
            lanes.for_each(|lane| self.poll_lane(rank, lane));
            return;
        }
        if let Some(lane) = self.ranks[rank as usize].freed_lane.take() {
            self.poll_lane(rank, lane);
        }
        for _ in 0..POLLED_EACH_TIME {
            let polls = &mut self.ranks[rank as usize].polls;
            let lane = lanes.start + *polls % count;
            *polls = polls.wrapping_add(1) % count;
            self.poll_lane(rank, lane);
        }
    }

    /// Lets idle threads of the host prepare.
    fn prepare(&mut self, rank: u32, threads: u32) {
        let at = rank as usize;
        while self.ranks[at].preparing < threads {
            let HostDecision::Prepare(batch) = self.ranks[at].scheduler.host(self.now) else {
                break;
            };
            self.ranks[at].preparing += 1;
            self.begin_preparation(rank, batch);
        }
    }

    fn begin_preparation(&mut self, rank: u32, batch: BatchIndex) {
        let (scenario, found) = (self.scenario, &mut self.ranks[rank as usize]);
        let drawn = DrawKey {
            stream: Stream::Host,
            entity: rank,
            index: u64::from(self.epoch) << 32 | u64::from(batch.0),
            nth: found.prepared,
            now: self.now,
        };
        found.prepared += 1;
        found.outcome.host_prepared += 1;
        let efficiency = if scenario.host.workers == 0 { 1.0 } else { scenario.host.efficiency };
        let core_ns = self.draws.time(&scenario.host.preparation, drawn);
        let size = self.draws.size(
            scenario.storage.size_sigma,
            rank,
            self.size_index(rank, self.epoch, batch),
        );
        let core_ns = scaled(core_ns, scenario.host.by_size, size);
        let core_ns = (core_ns as f64 / efficiency).round() as u64;
        let found = &mut self.ranks[rank as usize];
        found.outcome.host_busy_ns += core_ns;
        let compute = match self.resources.cores[self.layout.host_of(rank) as usize] {
            Some(resource) => Part::Shared { resource, work: core_ns as f64, latency_ns: 0 },
            None => Part::Timed(core_ns),
        };
        let stages = match &scenario.stores {
            Some(stores) => {
                let index = self.size_index(rank, self.epoch, batch);
                self.read_from_store(stores, Reader::Rank(rank), index, compute)
            }
            None => {
                let read = self.host_read(rank, batch);
                match scenario.storage.overlap {
                    true => Stages::default().then([read, compute]),
                    false => Stages::default().then([read]).then([compute]),
                }
            }
        };
        let work = Work::Host { rank, core_ns };
        if self.begin_operation(work, batch, stages).is_none() {
            // Takes 1 ns, so that it ends through the queue: the caller is still polling.
            let stages = Stages::default().then([Part::Timed(1)]);
            self.begin_operation(work, batch, stages);
        }
    }

    /// Reading the samples of a batch, from the drive that holds them.
    fn host_read(&mut self, rank: u32, batch: BatchIndex) -> Part {
        let storage = &self.scenario.storage;
        let (bytes, latency_ns) = (storage.read_bytes.0, storage.latency.0);
        self.bytes.host_read += bytes;
        let lanes = self.layout.lanes_of_rank(rank);
        let count = lanes.end - lanes.start;
        let drive = (count > 0)
            .then(|| self.layout.lane_device(lanes.start + batch.0 % count))
            .and_then(|device| self.resources.drives[device as usize]);
        match drive.or(self.resources.host_read[self.layout.host_of(rank) as usize]) {
            Some(resource) if bytes > 0 => {
                Part::Shared { resource, work: bytes as f64, latency_ns }
            }
            _ => Part::Timed(latency_ns),
        }
    }

    /// A thread of the host is done with a batch.
    pub(super) fn host_done(&mut self, rank: u32, batch: BatchIndex, began: Time) {
        let (now, workers) = (self.now, self.scenario.host.workers);
        let found = &mut self.ranks[rank as usize];
        found.preparing -= 1;
        if workers == 0 {
            found.prepared_ns += now - began;
        }
        found.scheduler.host_finished(now, batch);
        self.note(rank, WorkKind::Preparing, batch, began, now);
        self.poll(rank);
    }

    /// Begins to copy published slots into host memory, up to the limit.
    fn fetch(&mut self, rank: u32) {
        while let Some((batch, id, generation)) =
            self.ranks[rank as usize].scheduler.fetch(self.now)
        {
            let lane = self.layout.lanes_of_rank(rank).start + u32::from(id.0);
            let device = self.layout.lane_device(lane);
            let storage = &self.scenario.storage;
            let (bytes, latency_ns) = (storage.batch_bytes.0, storage.latency.0);
            let spool = self.resources.spool_read[self.layout.host_of(rank) as usize];
            let resource = self.resources.drives[device as usize].or(spool);
            let part = match resource {
                Some(resource) if bytes > 0 => {
                    Part::Shared { resource, work: bytes as f64, latency_ns }
                }
                _ => Part::Timed(latency_ns),
            };
            let stages = Stages::default().then([part]);
            let work = Work::Fetch { lane, generation };
            if self.begin_operation(work, batch, stages).is_none() {
                self.fetched(lane, batch, generation, self.now);
            }
        }
    }

    /// A slot is in host memory, after a time.
    pub(super) fn fetch_done(
        &mut self,
        lane: u32,
        batch: BatchIndex,
        generation: Generation,
        began: Time,
    ) {
        self.fetched(lane, batch, generation, began);
        let rank = self.layout.lane_rank(lane);
        self.touch(rank, lane);
    }

    fn fetched(&mut self, lane: u32, batch: BatchIndex, generation: Generation, began: Time) {
        let (now, (rank, id)) = (self.now, self.layout.within_rank(lane));
        self.bytes.spool_read += self.scenario.storage.batch_bytes.0;
        let found = &mut self.ranks[rank as usize];
        let damaged = found.corrupt.iter().position(|it| *it == (generation, batch));
        let taken = match damaged {
            None => found.scheduler.device_fetched(now, id, batch, generation),
            Some(at) => {
                found.corrupt.swap_remove(at);
                found.scheduler.device_rejected(now, id, batch, generation)
            }
        };
        if damaged.is_some() || taken != Taken::Accepted {
            found.outcome.redone += 1;
            self.free_slot(lane);
        }
        if began < now {
            self.note(rank, WorkKind::Fetching, batch, began, now);
        }
    }

    /// Discards device batches that were accepted but that the host prepares again.
    pub(super) fn discard(&mut self, rank: u32) {
        while let Some((_, id)) = self.ranks[rank as usize].scheduler.discard(self.now) {
            self.ranks[rank as usize].outcome.redone += 1;
            let lane = self.layout.lanes_of_rank(rank).start + u32::from(id.0);
            self.free_slot(lane);
        }
    }

    /// Asks what the accelerator should do, if it wants a batch.
    fn ask(&mut self, rank: u32) {
        let at = rank as usize;
        if self.ranks[at].phase != Phase::Asking {
            return;
        }
        let decision = self.ranks[at].scheduler.accelerator(self.now);
        self.discard(rank);
        match decision {
            AcceleratorDecision::Consume(batch, source) => self.start_step(rank, batch, source),
            AcceleratorDecision::Agree(proposal) => self.propose(rank, proposal),
            AcceleratorDecision::Done => {
                self.ranks[at].phase = Phase::Done;
                self.rank_done(rank);
            }
            AcceleratorDecision::WaitUntil(until) => {
                let found = &mut self.ranks[at];
                if found.wake_at.is_none_or(|at| until < at || at <= self.now) {
                    found.wake_at = Some(until);
                    self.queue.post(until, Event::Wake { rank });
                }
            }
        }
    }

    /// The tick that a rank's scheduler requested.
    pub(super) fn wake(&mut self, rank: u32) {
        let found = &mut self.ranks[rank as usize];
        if found.wake_at != Some(self.now) {
            return;
        }
        found.wake_at = None;
        found.scheduler.tick(self.now);
        self.poll(rank);
    }

    /// Begins a step on a batch.
    fn start_step(&mut self, rank: u32, batch: BatchIndex, source: Source) {
        let (scenario, now) = (self.scenario, self.now);
        let found = &mut self.ranks[rank as usize];
        let drawn = DrawKey {
            stream: Stream::Step,
            entity: rank,
            index: found.steps,
            nth: found.steps,
            now,
        };
        found.steps += 1;
        let step = self.draws.time(&scenario.accelerator.step, drawn);
        let waited = (now - found.free_since).saturating_sub(found.prepared_ns);
        found.outcome.wait_ns += waited;
        found.outcome.waits += u32::from(waited > 0);
        let extra = match source {
            Source::Host => {
                found.outcome.host_batches += 1;
                scenario.host.copy.0
            }
            Source::Device(_) => {
                found.outcome.device_batches += 1;
                scenario.accelerator.direct_read.0
            }
        };
        // With steps of zero time, virtual time would not advance.
        let step = step.saturating_add(extra).max(1);
        let ends = now.saturating_add(step);
        found.outcome.accelerator_busy_ns += step;
        found.outcome.total_ns = ends - self.epoch_began;
        found.phase = Phase::InStep;
        if let Some(sequence) = &mut found.outcome.sequence {
            sequence.push((
                found.chosen.as_ref().map_or(batch, |chosen| BatchIndex(chosen[batch.0 as usize])),
                source,
            ));
        }
        if let Source::Device(id) = source {
            let lane = self.layout.lanes_of_rank(rank).start + u32::from(id.0);
            if !self.keeps(lane, batch) {
                self.free_slot(lane);
            }
            self.ranks[rank as usize].freed_lane = Some(lane);
        }
        self.note(rank, WorkKind::Step(source), batch, now, ends);
        self.step_started(rank, ends);
    }
}
