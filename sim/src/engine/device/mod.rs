//! Devices: a queue for each rank, served in turn, one batch at a time on each core.
//!
//! A prepared batch is published at once, or, if a link is limited, once it has been sent.

mod loss;

use crate::engine::World;
use crate::engine::across::scaled;
use crate::engine::draw::{DrawKey, Stream};
use crate::engine::faults::Faults;
use crate::engine::layout::Layout;
use crate::engine::network::Reader;
use crate::engine::operation::{Part, Stages, Work};
use crate::engine::queue::Event;
use crate::engine::scheduler_config::transfer_ns;
use crate::outcome::{DeviceOutcome, WorkKind};
use crate::scenario::{self, Scenario};
use meetpoint_scheduler::{
    BatchIndex, DeviceDecision, Generation, Outcome as Taken, Time, WorkRun,
};
use std::collections::VecDeque;

/// A rank's link to a device.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Granted and not begun, each with the time at which the grant arrives at the device.
    queue: VecDeque<GrantedWork>,
    /// Whether the lane is in the device's queue of turns.
    in_turn: bool,
    /// Slots that hold a batch of this rank, or are reserved for one in preparation.
    slots: u32,
    /// Maximum of `slots`.
    pub(super) slots_most: u32,
    /// First generation of the next epoch.
    pub(super) next_generation: u32,
    /// Whether the device has nothing more to do in the epoch that it works on.
    pub(super) has_stopped: bool,
    /// Whether that is the next epoch.
    pub(super) is_ahead: bool,
    /// Consumed batches that remain in their slots for the next epoch.
    pub(super) kept: Vec<BatchIndex>,
}

impl Lane {
    pub(super) fn new(scenario: &Scenario, layout: &Layout, lane: u32) -> Self {
        let device = layout.lane_device(lane);
        let ranks = u32::try_from(layout.lanes_of_device(device).len()).unwrap_or(u32::MAX);
        let slots_most = scenario.slots_of(&scenario.devices[layout.kind(device)], ranks);
        Self { slots_most, ..Self::default() }
    }
}

#[derive(Debug, Clone, Copy)]
struct GrantedWork {
    run: WorkRun,
    generation: Generation,
    from: Time,
}

#[derive(Debug)]
pub(super) struct Device {
    /// Lanes with work, in turn.
    turn: VecDeque<u32>,
    /// Cores, each of which prepares a batch at a time.
    cores: usize,
    current: Vec<Current>,
    /// Transfers to hosts: operation, its serial, lane.
    sending: Vec<(u32, u32, u32)>,
    /// Batches begun, over all epochs.
    begun: u64,
    /// Whether the next progress report has been posted.
    signs_posted: bool,
    /// Identifier of the next element of `current`.
    next_id: u32,
    slots: u32,
    pub(super) faults: Faults,
    pub(super) link_is_broken: bool,
    /// When it can be used again, if its link is broken by a failure.
    pub(super) restarted_at: Option<Time>,
    /// When it fails next, and how often it has.
    pub(super) fails_at: Option<Time>,
    failures: u64,
    outcome: DeviceOutcome,
}

#[derive(Debug, Clone, Copy)]
struct Current {
    id: u32,
    lane: u32,
    batch: BatchIndex,
    generation: Generation,
    began: Time,
    corrupt: bool,
    operation: Option<(u32, u32)>,
}

impl Device {
    pub(super) fn new(kind: &scenario::Device) -> Self {
        Self {
            turn: VecDeque::new(),
            cores: kind.cores as usize,
            current: Vec::new(),
            sending: Vec::new(),
            begun: 0,
            signs_posted: false,
            next_id: 0,
            slots: 0,
            faults: Faults::new(&kind.faults),
            link_is_broken: false,
            restarted_at: None,
            fails_at: None,
            failures: 0,
            outcome: DeviceOutcome::default(),
        }
    }
}

/// Progress reports of a working device per stall timeout.
const SIGNS_PER_TIMEOUT: u64 = 4;

impl World<'_> {
    /// Asks the scheduler of a rank for the decision of one of its devices.
    pub(super) fn poll_lane(&mut self, rank: u32, lane: u32) {
        let (_, id) = self.layout.within_rank(lane);
        let device = self.layout.lane_device(lane);
        let latency = self.scenario.devices[self.layout.kind(device)].latency.0;
        let mut granted = false;
        loop {
            let now = self.now;
            match self.scheduler_of(rank, lane).device(now, id) {
                DeviceDecision::Work(run, generation) => {
                    let from = self.now.saturating_add(latency);
                    self.lanes[lane as usize].queue.push_back(GrantedWork {
                        run,
                        generation,
                        from,
                    });
                    granted = true;
                }
                DeviceDecision::Revoke(_) => self.revoke(lane),
                DeviceDecision::Stop => self.lanes[lane as usize].has_stopped = true,
                DeviceDecision::Idle if self.begins_ahead(rank, lane) => {}
                DeviceDecision::Idle => break,
            }
        }
        if granted {
            let turns = &mut self.lanes[lane as usize].in_turn;
            if !std::mem::replace(turns, true) {
                self.devices[device as usize].turn.push_back(lane);
            }
            self.start_device(device);
        }
    }

    /// Revokes the work of a lane.
    fn revoke(&mut self, lane: u32) {
        self.lanes[lane as usize].queue.clear();
        let device = self.layout.lane_device(lane);
        self.cancel_sending(device, |of| of == lane);
        if self.drop_current(device, |current| current.lane == lane) {
            self.start_device(device);
        }
    }

    /// Discards the batches in preparation for which `is_dropped`; returns whether there are any.
    fn drop_current(&mut self, device: u32, is_dropped: impl Fn(&Current) -> bool) -> bool {
        let current = &mut self.devices[device as usize].current;
        let dropped: Vec<Current> = current.extract_if(.., |it| is_dropped(it)).collect();
        dropped.iter().for_each(|current| self.discard_current(device, *current));
        !dropped.is_empty()
    }

    fn discard_current(&mut self, device: u32, current: Current) {
        let now = self.now;
        let found = &mut self.devices[device as usize];
        found.outcome.busy_ns += now - current.began;
        found.outcome.dropped += 1;
        self.free_slot(current.lane);
        let rank = self.layout.lane_rank(current.lane);
        self.ranks[rank as usize].outcome.redone += 1;
        if let Some((op, serial)) = current.operation {
            self.cancel(op, serial);
        }
        self.note(rank, WorkKind::AtDevice(device), current.batch, current.began, now);
    }

    /// Begins batches as long as there are any and the device has idle cores.
    pub(super) fn start_device(&mut self, device: u32) {
        loop {
            let found = &self.devices[device as usize];
            let is_busy = found.current.len() >= found.cores;
            if is_busy || found.link_is_broken || found.faults.is_dead(self.now) {
                return;
            }
            let Some((lane, batch, generation)) = self.next_granted(device) else { return };
            self.begin_at_device(device, lane, batch, generation);
        }
    }

    fn begin_at_device(
        &mut self,
        device: u32,
        lane: u32,
        batch: BatchIndex,
        generation: Generation,
    ) {
        let kind = &self.scenario.devices[self.layout.kind(device)];
        let found = &mut self.devices[device as usize];
        let drawn = DrawKey {
            stream: Stream::Device,
            entity: device,
            index: found.begun,
            nth: found.begun,
            now: self.now,
        };
        found.begun += 1;
        let work_ns = self.draws.time(&kind.preparation, drawn);
        let rank = self.layout.lane_rank(lane);
        let epoch = self.epoch + u32::from(self.lanes[lane as usize].is_ahead);
        let size = self.draws.size(
            self.scenario.storage.size_sigma,
            rank,
            self.size_index(rank, epoch, batch),
        );
        let work_ns = scaled(work_ns, kind.by_size, size);
        let timed_ns = self.scenario.timed_transfers_ns(kind, work_ns);
        let found = &mut self.devices[device as usize];
        let begun = found.faults.begin(self.now, found.begun, timed_ns);
        let id = found.next_id;
        found.next_id = id.wrapping_add(1);
        found.current.push(Current {
            id,
            lane,
            batch,
            generation,
            began: self.now,
            corrupt: begun.corrupt,
            operation: None,
        });
        found.slots += 1;
        found.outcome.slots_max = found.outcome.slots_max.max(found.slots);
        self.lanes[lane as usize].slots += 1;
        if begun.drops_link {
            self.break_link(device);
            return;
        }
        self.post_signs(device);
        let Some(ends) = begun.ends else { return };
        let (drive, storage) = (self.resources.drives[device as usize], &self.scenario.storage);
        let over_drive = |bytes: u64| match drive {
            Some(resource) if bytes > 0 => {
                Part::Shared { resource, work: bytes as f64, latency_ns: 0 }
            }
            _ => Part::None,
        };
        let compute = Part::Timed((ends - self.now).max(1));
        let write = over_drive(storage.batch_bytes.0);
        let read = over_drive(storage.read_bytes.0);
        let has_drive = drive.is_some() || kind.read_bandwidth.is_some();
        let stages = match &self.scenario.stores {
            Some(stores) if !has_drive => {
                let index = self.size_index(rank, epoch, batch);
                self.read_from_store(stores, Reader::Device(device, rank), index, compute)
            }
            _ => {
                self.bytes.device_read += storage.read_bytes.0;
                match storage.overlap {
                    true => Stages::default().then([read, compute]),
                    false => Stages::default().then([read]).then([compute]),
                }
            }
        };
        let work = Work::Device { device, id };
        let operation = self.begin_operation(work, batch, stages.then([write]));
        if let Some(current) = self.current_mut(device, id) {
            current.operation = operation;
        }
    }

    /// Time that the cores of a device have worked in this epoch, including batches in progress.
    pub(super) fn busy_ns(&self, device: u32) -> u64 {
        let found = &self.devices[device as usize];
        let current = found.current.iter().map(|current| self.now - current.began);
        found.outcome.busy_ns + current.sum::<u64>()
    }

    fn current_mut(&mut self, device: u32, id: u32) -> Option<&mut Current> {
        self.devices[device as usize].current.iter_mut().find(|current| current.id == id)
    }

    /// The next batch of the lane whose turn it is.
    fn next_granted(&mut self, device: u32) -> Option<(u32, BatchIndex, Generation)> {
        let found = &mut self.devices[device as usize];
        let mut earliest = None;
        for _ in 0..found.turn.len() {
            let lane = found.turn.pop_front().expect("as many as there are");
            let waiting = &mut self.lanes[lane as usize];
            let Some(granted) = waiting.queue.front_mut() else {
                waiting.in_turn = false;
                continue;
            };
            let is_full = self.scenario.run_ahead && waiting.slots >= waiting.slots_most;
            if is_full {
                // The lane resumes when a slot is released.
                found.turn.push_back(lane);
                continue;
            }
            if granted.from > self.now {
                earliest = Some(earliest.map_or(granted.from, |it: Time| it.min(granted.from)));
                found.turn.push_back(lane);
                continue;
            }
            let (batch, generation) = (granted.run.first, granted.generation);
            if granted.run.count == 1 {
                waiting.queue.pop_front();
            } else {
                granted.run.count -= 1;
                let next = if granted.run.descending { batch.0 - 1 } else { batch.0 + 1 };
                granted.run.first = BatchIndex(next);
            }
            found.turn.push_back(lane);
            return Some((lane, batch, generation));
        }
        if let Some(at) = earliest {
            self.queue.post(at, Event::Poke { device });
        }
        None
    }

    /// The device has prepared a batch.
    pub(super) fn device_done(&mut self, device: u32, id: u32) {
        let now = self.now;
        let found = &mut self.devices[device as usize];
        let at = found.current.iter().position(|current| current.id == id);
        let current = found.current.swap_remove(at.expect("a device that is done was at work"));
        found.outcome.busy_ns += now - current.began;
        found.outcome.published += 1;
        self.bytes.spool_write += self.scenario.storage.batch_bytes.0;
        let rank = self.layout.lane_rank(current.lane);
        self.note(rank, WorkKind::AtDevice(device), current.batch, current.began, now);
        self.start_device(device);
        let Current { lane, batch, generation, corrupt, .. } = current;
        if self.resources.links.sends {
            let bytes = self.scenario.storage.batch_bytes.0;
            let stages = self.resources.sending(device, self.layout.host_of(rank), bytes);
            let work = Work::Send { device, lane, generation, corrupt };
            if let Some((op, serial)) = self.begin_operation(work, batch, stages) {
                self.bytes.network_send += bytes;
                self.devices[device as usize].sending.push((op, serial, lane));
                self.post_signs(device);
                return;
            }
        }
        self.arrive(device, lane, batch, generation, corrupt);
    }

    /// A transfer to a host is complete.
    pub(super) fn sent(
        &mut self,
        device: u32,
        op: u32,
        lane: u32,
        batch: BatchIndex,
        (generation, corrupt): (Generation, bool),
    ) {
        let sending = &mut self.devices[device as usize].sending;
        let at = sending.iter().position(|(other, ..)| *other == op);
        sending.swap_remove(at.expect("a transfer that is complete was in progress"));
        self.arrive(device, lane, batch, generation, corrupt);
    }

    /// A batch is in its slot; the host learns after the latency.
    fn arrive(
        &mut self,
        device: u32,
        lane: u32,
        batch: BatchIndex,
        generation: Generation,
        corrupt: bool,
    ) {
        let (now, latency) = (self.now, self.scenario.devices[self.layout.kind(device)].latency.0);
        if latency == 0 {
            self.published(lane, batch, generation, corrupt);
        } else {
            let event = Event::Published { lane, batch, generation, corrupt };
            self.queue.post(now.saturating_add(latency), event);
        }
    }

    /// A published batch reaches the host.
    pub(super) fn published(
        &mut self,
        lane: u32,
        batch: BatchIndex,
        generation: Generation,
        corrupt: bool,
    ) {
        let (rank, id) = self.layout.within_rank(lane);
        let now = self.now;
        let taken = self.scheduler_of(rank, lane).device_published(now, id, batch, generation);
        let is_ahead = self.lanes[lane as usize].is_ahead;
        let target = &mut self.ranks[rank as usize];
        match taken {
            Taken::Accepted => {
                target.published_ahead += u32::from(is_ahead);
                if corrupt {
                    target.corrupt.push((generation, batch));
                }
            }
            Taken::Void(_) => {
                target.outcome.redone += 1;
                self.free_slot(lane);
            }
        }
        self.touch(rank, lane);
    }

    /// Posts the next progress report of a device that works, and the end of a silence.
    fn post_signs(&mut self, device: u32) {
        let now = self.now;
        let every = (self.scenario.stall_timeout.0 / SIGNS_PER_TIMEOUT).max(1);
        let found = &mut self.devices[device as usize];
        if !std::mem::replace(&mut found.signs_posted, true) {
            self.queue.post(now.saturating_add(every), Event::Progress { device });
        }
        if let Some(at) = found.faults.recovers_at(now) {
            self.queue.post(at, Event::Recovered { device });
        }
    }

    /// A working device reports progress to all its ranks, unless it is silent.
    pub(super) fn progress(&mut self, device: u32) {
        let now = self.now;
        let found = &mut self.devices[device as usize];
        found.signs_posted = false;
        let works = !found.current.is_empty() || !found.sending.is_empty();
        if !works || found.faults.is_dead(now) {
            return;
        }
        if found.faults.speaks(now) {
            self.speak(device);
        }
        self.post_signs(device);
    }

    /// Reports progress of a device to every rank that it serves.
    pub(super) fn speak(&mut self, device: u32) {
        if !self.devices[device as usize].faults.speaks(self.now) {
            return;
        }
        for at in 0..self.layout.lanes_of_device(device).len() {
            let lane = self.layout.lanes_of_device(device)[at];
            let (rank, id) = self.layout.within_rank(lane);
            let target = &mut self.ranks[rank as usize];
            for scheduler in
                [Some(&mut target.scheduler), target.ahead.as_mut()].into_iter().flatten()
            {
                scheduler.device_progress(self.now, id);
            }
            self.touch(rank, lane);
        }
    }

    /// A slot is released.
    pub(super) fn free_slot(&mut self, lane: u32) {
        let number = self.layout.lane_device(lane);
        let (lane, device) = (&mut self.lanes[lane as usize], &mut self.devices[number as usize]);
        lane.slots = lane.slots.saturating_sub(1);
        device.slots = device.slots.saturating_sub(1);
        if self.scenario.run_ahead {
            self.queue.post(self.now, Event::Poke { device: number });
        }
    }

    /// Ends an epoch at a device: its current batch is discarded, its spool emptied.
    pub(super) fn reset_device(&mut self, device: u32) -> DeviceOutcome {
        let lanes = &self.lanes;
        let stays = |lane: u32| lanes[lane as usize].is_ahead;
        let found = &mut self.devices[device as usize];
        let now = self.now;
        let left: Vec<Current> =
            found.current.extract_if(.., |current| !stays(current.lane)).collect();
        found.turn.retain(|lane| stays(*lane));
        found.slots = 0;
        for &lane in self.layout.lanes_of_device(device) {
            let lane = &lanes[lane as usize];
            let kept = u32::try_from(lane.kept.len()).expect("no more than slots");
            found.slots += if lane.is_ahead { lane.slots } else { kept };
        }
        for current in left {
            let found = &mut self.devices[device as usize];
            found.outcome.busy_ns += now - current.began;
            found.outcome.dropped += 1;
            if let Some((op, serial)) = current.operation {
                self.cancel(op, serial);
            }
        }
        let sending = &mut self.devices[device as usize].sending;
        let lanes = &self.lanes;
        let left = sending.extract_if(.., |it| !lanes[it.2 as usize].is_ahead);
        for (op, serial, _) in left.collect::<Vec<_>>() {
            self.cancel(op, serial);
        }
        let found = &mut self.devices[device as usize];
        // Without `run_ahead`, the queue is emptied.
        found.signs_posted = self.scenario.run_ahead && found.signs_posted;
        std::mem::take(&mut found.outcome)
    }

    /// Ends an epoch at a lane.
    pub(super) fn reset_lane(&mut self, lane: u32) {
        let (rank, id) = self.layout.within_rank(lane);
        let summary = self.ranks[rank as usize].scheduler.device_summary(id);
        let found = &mut self.lanes[lane as usize];
        if !std::mem::take(&mut found.is_ahead) {
            found.queue.clear();
            found.in_turn = false;
            found.has_stopped = false;
            found.slots = u32::try_from(found.kept.len()).expect("no more than slots");
        }
        found.next_generation = summary.map_or(1, |it| it.generation.saturating_add(1));
    }
}

impl Scenario {
    /// Time of a device for a batch, given its preparation, without transfers over shared
    /// resources.
    fn timed_transfers_ns(&self, kind: &scenario::Device, work_ns: u64) -> u64 {
        let read = transfer_ns(self.storage.read_bytes.0, kind.read_bandwidth).round() as u64;
        let write = transfer_ns(self.storage.batch_bytes.0, kind.write_bandwidth).round() as u64;
        write + if self.storage.overlap { work_ns.max(read) } else { work_ns + read }
    }
}
