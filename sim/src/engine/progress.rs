//! Advances operations: from part to part and from stage to stage, to their end.

use meetpoint_scheduler::BatchIndex;

use super::World;
use super::operation::{Operation, PARTS, Part, Stages, Work};
use super::queue::Event;

impl World<'_> {
    /// Begins an operation; returns its number and serial, or `None` if it takes no time.
    pub(super) fn begin_operation(
        &mut self,
        work: Work,
        batch: BatchIndex,
        stages: Stages,
    ) -> Option<(u32, u32)> {
        if stages.are_none() {
            return None;
        }
        let (op, serial) = self.operations.begin(Operation {
            work,
            batch,
            began: self.now,
            stages,
            stage: 0,
            parts_left: 0,
            at: [None; PARTS],
            requests_left: 0,
            rejections: 0,
        });
        self.begin_stage(op, serial);
        Some((op, serial))
    }

    /// Begins the next stage; ends the operation if there is none.
    fn begin_stage(&mut self, op: u32, serial: u32) {
        let Some(operation) = self.operations.get_mut(op, serial) else { return };
        let Some(parts) = operation.stages.get(operation.stage) else {
            return self.operation_done(op, serial);
        };
        operation.parts_left = 0;
        for (part, it) in (0_u8..).zip(parts) {
            let (after, event) = match it {
                Part::None => continue,
                Part::Timed(time) => (time, Event::Elapsed { op, serial }),
                Part::Shared { latency_ns, .. } => (latency_ns, Event::Join { op, serial, part }),
                Part::Requests { store, count } => {
                    operation.requests_left = count;
                    operation.rejections = 0;
                    (0, Event::Request { op, serial, store })
                }
            };
            operation.parts_left += 1;
            self.queue.post(self.now.saturating_add(after), event);
        }
    }

    /// A timed part or a transfer is complete.
    pub(super) fn part_done(&mut self, op: u32, serial: u32) {
        let Some(operation) = self.operations.get_mut(op, serial) else { return };
        operation.parts_left -= 1;
        if operation.parts_left == 0 {
            operation.stage += 1;
            self.begin_stage(op, serial);
        }
    }

    /// The latency of a transfer is over.
    pub(super) fn join_resource(&mut self, op: u32, serial: u32, part: u8) {
        let Some(operation) = self.operations.get_mut(op, serial) else { return };
        let parts = operation.stages.get(operation.stage).expect("a stage is in progress");
        let Part::Shared { resource, work, .. } = parts[usize::from(part)] else {
            unreachable!("only a part that shares joins")
        };
        operation.at[usize::from(part)] = Some(resource);
        let now = self.now;
        self.resources.all[resource as usize].join(now, op, serial, work);
        self.announce(resource);
    }

    /// A transfer may be complete.
    pub(super) fn resource_due(&mut self, resource: u32, version: u32) {
        let (now, at) = (self.now, resource as usize);
        if !self.resources.all[at].is_current(version) {
            return;
        }
        loop {
            let operations = &self.operations;
            let is_live = |op, serial| operations.is_live(op, serial);
            let Some((op, serial)) = self.resources.all[at].done(now, is_live) else { break };
            if let Some(operation) = self.operations.get_mut(op, serial) {
                let used = operation.at.iter_mut().find(|it| **it == Some(resource));
                *used.expect("it was a user of the resource") = None;
            }
            self.part_done(op, serial);
        }
        self.announce(resource);
    }

    /// Posts the next end of a transfer at a resource.
    fn announce(&mut self, resource: u32) {
        let operations = &self.operations;
        let is_live = |op, serial| operations.is_live(op, serial);
        if let Some((at, version)) = self.resources.all[resource as usize].next(is_live) {
            self.queue.post(at.max(self.now), Event::Shared { resource, version });
        }
    }

    /// Cancels an operation.
    pub(super) fn cancel(&mut self, op: u32, serial: u32) {
        let Some(ended) = self.operations.end(op, serial) else { return };
        for resource in ended.at.into_iter().flatten() {
            self.resources.all[resource as usize].leave(self.now);
            self.announce(resource);
        }
    }

    fn operation_done(&mut self, op: u32, serial: u32) {
        let ended = self.operations.end(op, serial).expect("only what is live is done");
        match ended.work {
            Work::Host { rank, .. } => self.host_done(rank, ended.batch, ended.began),
            Work::Device { device, id } => self.device_done(device, id),
            Work::Send { device, lane, generation, corrupt } => {
                self.sent(device, op, lane, ended.batch, (generation, corrupt));
            }
            Work::Fetch { lane, generation } => {
                self.fetch_done(lane, ended.batch, generation, ended.began);
            }
        }
    }
}
