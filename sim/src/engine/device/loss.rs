//! Links that break, and devices that fail: what is lost, and when a host may use a device again.

use crate::engine::World;
use crate::engine::draw::Stream;
use crate::engine::queue::Event;

impl World<'_> {
    /// The link to a device is lost, which every rank learns.
    pub(in crate::engine) fn break_link(&mut self, device: u32) {
        self.drop_current(device, |_| true);
        self.cancel_sending(device, |_| true);
        self.refuse_link(device);
        for at in 0..self.layout.lanes_of_device(device).len() {
            let lane = self.layout.lanes_of_device(device)[at];
            self.lanes[lane as usize].queue.clear();
            self.touch(self.layout.lane_rank(lane), lane);
        }
    }

    /// Cancels the transfers of the lanes for which `is_cancelled`.
    pub(super) fn cancel_sending(&mut self, device: u32, is_cancelled: impl Fn(u32) -> bool) {
        let sending = &mut self.devices[device as usize].sending;
        let cancelled: Vec<_> = sending.extract_if(.., |it| is_cancelled(it.2)).collect();
        for (op, serial, lane) in cancelled {
            self.cancel(op, serial);
            self.ranks[self.layout.lane_rank(lane) as usize].outcome.redone += 1;
            self.free_slot(lane);
        }
    }

    /// Posts the next failure of a device with a mean time to failure.
    pub(in crate::engine) fn plan_failure(&mut self, device: u32) {
        let kind = &self.scenario.devices[self.layout.kind(device)];
        let Some(mean) = kind.time_to_failure else { return };
        let (now, draws) = (self.now, self.draws);
        let found = &mut self.devices[device as usize];
        let nth = found.failures;
        let at = *found.fails_at.get_or_insert_with(|| {
            let lasts = draws.exponential(Stream::DeviceFailure, device, nth, mean.0);
            now.saturating_add(lasts)
        });
        self.queue.post(at.max(now), Event::DeviceFails { device });
    }

    /// A device fails; it can be used again from the first epoch on that begins after its restart.
    pub(in crate::engine) fn device_fails(&mut self, device: u32) {
        let restart = self.scenario.devices[self.layout.kind(device)].time_to_restart.0;
        let now = self.now;
        let found = &mut self.devices[device as usize];
        if found.link_is_broken || found.fails_at.is_none_or(|at| at > now) {
            return;
        }
        found.failures += 1;
        found.outcome.failures += 1;
        found.fails_at = None;
        found.restarted_at = Some(now.saturating_add(restart));
        self.break_link(device);
    }

    /// Whether a device can be used in the epoch that begins now.
    pub(in crate::engine) fn is_usable(&mut self, device: u32) -> bool {
        let now = self.now;
        let found = &mut self.devices[device as usize];
        if found.restarted_at.is_some_and(|at| at <= now) {
            (found.restarted_at, found.link_is_broken) = (None, false);
        }
        !found.link_is_broken && !found.faults.is_dead(now)
    }

    /// The same at the beginning of an epoch, before any decision.
    pub(in crate::engine) fn refuse_link(&mut self, device: u32) {
        self.devices[device as usize].link_is_broken = true;
        for lane in self.layout.lanes_of_device(device).iter().copied() {
            let (rank, id) = self.layout.within_rank(lane);
            let target = &mut self.ranks[rank as usize];
            for scheduler in
                [Some(&mut target.scheduler), target.ahead.as_mut()].into_iter().flatten()
            {
                scheduler.device_lost(self.now, id);
            }
        }
    }
}
