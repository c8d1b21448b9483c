//! Advances operations: from part to part and from stage to stage, to their end.

use meetpoint_scheduler::BatchIndex;

use super::World;
use super::operation::{Operation, Part, STAGES, Work};
use super::queue::Event;

impl World<'_> {
    /// Begins an operation; returns its number and serial, or `None` if it takes no time.
    pub(super) fn begin_operation(
        &mut self,
        work: Work,
        batch: BatchIndex,
        stages: [[Part; 2]; STAGES],
    ) -> Option<(u32, u32)> {
        let is_nothing = |part: &Part| matches!(part, Part::None | Part::Timed(0));
        if stages.iter().flatten().all(is_nothing) {
            return None;
        }
        let began = self.now;
        let operation = Operation { work, batch, began, stages, stage: 0, parts_left: 0, at: None };
        let (op, serial) = self.operations.begin(operation);
        self.begin_stage(op, serial);
        Some((op, serial))
    }

    /// Begins the next stage that has parts; ends the operation if there is none.
    fn begin_stage(&mut self, op: u32, serial: u32) {
        loop {
            let Some(operation) = self.operations.get_mut(op, serial) else { return };
            let Some(parts) = operation.stages.get(usize::from(operation.stage)).copied() else {
                return self.operation_done(op, serial);
            };
            let mut left = 0;
            for part in parts {
                match part {
                    Part::None => {}
                    Part::Timed(time) => {
                        left += 1;
                        self.queue
                            .post(self.now.saturating_add(time), Event::Elapsed { op, serial });
                    }
                    Part::Shared { latency_ns, .. } => {
                        left += 1;
                        self.queue
                            .post(self.now.saturating_add(latency_ns), Event::Join { op, serial });
                    }
                }
            }
            let operation = self.operations.get_mut(op, serial).expect("it was there above");
            operation.parts_left = left;
            if left > 0 {
                return;
            }
            operation.stage += 1;
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
    pub(super) fn join_resource(&mut self, op: u32, serial: u32) {
        let Some(operation) = self.operations.get_mut(op, serial) else { return };
        let parts = operation.stages[usize::from(operation.stage)];
        let shared = parts.iter().find_map(|part| match part {
            Part::Shared { resource, work, .. } => Some((*resource, *work)),
            _ => None,
        });
        let (resource, work) = shared.expect("only a part that shares joins");
        operation.at = Some(resource);
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
                operation.at = None;
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
        if let Some(resource) = ended.at {
            self.resources.all[resource as usize].leave(self.now);
            self.announce(resource);
        }
    }

    fn operation_done(&mut self, op: u32, serial: u32) {
        let ended = self.operations.end(op, serial).expect("only what is live is done");
        match ended.work {
            Work::Host { rank } => self.host_done(rank, ended.batch, ended.began),
            Work::Device { device } => self.device_done(device),
            Work::Fetch { lane, generation } => {
                self.fetch_done(lane, ended.batch, generation, ended.began);
            }
        }
    }
}
