//! State that one epoch passes to the next: devices that run ahead, batches that stay in their
//! slots, and which batches devices prepare.

use meetpoint_scheduler::{BatchIndex, DeviceId, Epoch, Level, Outcome as Taken};

use super::World;
use super::scheduler_config;
use crate::scenario::{ChoiceName, Device, Scenario};

/// A time of which the share `by_size` is proportional to the size.
pub(super) fn scaled(time_ns: u64, by_size: f64, size: f64) -> u64 {
    if by_size == 0.0 || size == 1.0 {
        return time_ns;
    }
    (time_ns as f64 * (1.0 - by_size + by_size * size)).round() as u64
}

impl Scenario {
    /// Slots of a device of this kind for each of a given number of ranks.
    pub(super) fn slots_of(&self, kind: &Device, ranks: u32) -> u32 {
        let slots = kind.spool_slots.map_or(self.batches, |slots| (slots / ranks).max(1));
        slots.min(self.batches)
    }

    /// Maximum number of these slots that may retain batches for other epochs. The remaining slots
    /// must hold at least as many batches at the beginning of an epoch, in addition to those in
    /// preparation.
    pub(super) fn retained_most(&self, kind: &Device, ranks: u32) -> u32 {
        match self.reuse {
            true => self.slots_of(kind, ranks).saturating_sub(kind.ahead) / 2,
            false => 0,
        }
    }

    /// The levels that the strategy gives, without those that a choice of batches excludes.
    pub(super) fn levels(&self) -> Vec<Level> {
        let levels = self.chosen().levels().iter().copied();
        levels.filter(|level| !self.chooses() || *level != Level::C3).collect()
    }

    /// Whether devices prepare batches other than the last ones; false if the strategy preserves
    /// the order of the host alone.
    fn chooses(&self) -> bool {
        let keeps_order = self.chosen().levels().contains(&Level::C4);
        self.choice == ChoiceName::Saving && !keeps_order
    }
}

impl World<'_> {
    fn kind_of(&self, lane: u32) -> (&Device, u32) {
        let device = self.layout.lane_device(lane);
        let ranks = u32::try_from(self.layout.lanes_of_device(device).len()).unwrap_or(u32::MAX);
        (&self.scenario.devices[self.layout.kind(device)], ranks)
    }

    /// The scheduler that a lane's device works for: that of the next epoch, once it has begun it.
    pub(super) fn scheduler_of(&mut self, rank: u32, lane: u32) -> &mut Epoch {
        let found = &mut self.ranks[rank as usize];
        match (&mut found.ahead, self.lanes[lane as usize].is_ahead) {
            (Some(ahead), true) => ahead,
            _ => &mut found.scheduler,
        }
    }

    /// Called when a device has no more work in this epoch; returns whether it begins the next.
    pub(super) fn begins_ahead(&mut self, rank: u32, lane: u32) -> bool {
        let found = &self.lanes[lane as usize];
        if !self.scenario.run_ahead || !found.has_stopped || found.is_ahead {
            return false;
        }
        let is_last = self.epoch + 1 >= self.scenario.epochs;
        let (_, id) = self.layout.within_rank(lane);
        let device = self.layout.lane_device(lane);
        let found = &self.ranks[rank as usize];
        let is_lost = found.scheduler.device_summary(id).is_none_or(|device| device.lost)
            || self.devices[device as usize].link_is_broken;
        if is_last || is_lost {
            return false;
        }
        if found.ahead.is_none() {
            let Some(next) = self.next_epoch(rank) else { return false };
            self.ranks[rank as usize].ahead = Some(next);
        }
        let begun = &mut self.lanes[lane as usize];
        (begun.is_ahead, begun.has_stopped) = (true, false);
        true
    }

    fn next_epoch(&self, rank: u32) -> Option<Epoch> {
        let found = &self.ranks[rank as usize];
        let learned = match self.scenario.learn {
            true => found.learned(true),
            false => scheduler_config::learned(self.scenario, &self.layout, rank),
        };
        let generation = found.scheduler.summary().last_generation.checked_add(2)?;
        let config =
            scheduler_config::config(self.scenario, &self.layout, rank, learned, |_| generation);
        Epoch::new(config.ok()?).ok()
    }

    /// Whether a batch that was consumed stays in its slot for the next epoch.
    pub(super) fn keeps(&mut self, lane: u32, batch: BatchIndex) -> bool {
        let (kind, ranks) = self.kind_of(lane);
        let most = self.scenario.retained_most(kind, ranks) as usize;
        let is_last = self.epoch + 1 >= self.scenario.epochs;
        let kept = &mut self.lanes[lane as usize].kept;
        let stays = !is_last && kept.len() < most;
        if stays {
            kept.push(batch);
        }
        stays
    }

    /// Reports the batches that remain in the slots of its devices to the scheduler of a rank, and
    /// releases those that it cannot use.
    pub(super) fn hand_on(&mut self, rank: u32) {
        for lane in self.layout.lanes_of_rank(rank) {
            let mut kept = std::mem::take(&mut self.lanes[lane as usize].kept);
            kept.sort_unstable_by(|a, b| b.cmp(a));
            let (_, id) = self.layout.within_rank(lane);
            for batch in kept {
                let found = &mut self.ranks[rank as usize];
                match found.scheduler.preloaded(self.now, id, batch) {
                    Taken::Accepted => found.outcome.reused_batches += 1,
                    Taken::Void(_) => self.free_slot(lane),
                }
            }
        }
    }

    /// The key of a batch's random size. Retained batches are the same in every epoch.
    pub(super) fn size_index(&self, rank: u32, epoch: u32, place: BatchIndex) -> u64 {
        let batch = self.ranks[rank as usize].batch_at(place);
        let epoch = if self.scenario.reuse { 0 } else { epoch };
        u64::from(epoch) << 32 | u64::from(batch.0)
    }

    /// Orders the batches, once times are known: those that save the host most time per device time
    /// are last.
    pub(super) fn choose(&mut self, rank: u32) {
        let scenario = self.scenario;
        let is_known = scenario.profile.known || (self.epoch > 0 && scenario.learn);
        let lanes = self.layout.lanes_of_rank(rank);
        if !scenario.chooses() || !is_known || lanes.is_empty() {
            return;
        }
        let (kind, _) = self.kind_of(lanes.start);
        let (host, device) = (scenario.host.by_size, kind.by_size);
        let saving = |batch: u32| {
            let index = u64::from(self.epoch) << 32 | u64::from(batch);
            let size = self.draws.size(scenario.storage.size_sigma, rank, index);
            (1.0 - host + host * size) / (1.0 - device + device * size).max(f64::MIN_POSITIVE)
        };
        let savings: Vec<f64> = (0..scenario.batches).map(saving).collect();
        let mut chosen: Vec<u32> = (0..scenario.batches).collect();
        let by_saving = |a: &u32, b: &u32| savings[*a as usize].total_cmp(&savings[*b as usize]);
        let config = self.ranks[rank as usize].scheduler.config();
        match &config.holders {
            meetpoint_scheduler::Holders::Shared => chosen.sort_by(by_saving),
            meetpoint_scheduler::Holders::Interleaved(held) => {
                for device in (0..held.devices()).map(DeviceId) {
                    let places: Vec<u32> =
                        (0..held.count(device)).map(|n| held.nth(device, n).0).collect();
                    let mut sorted = places.clone();
                    sorted.sort_by(by_saving);
                    for (place, batch) in places.into_iter().zip(sorted) {
                        chosen[place as usize] = batch;
                    }
                }
            }
        }
        self.ranks[rank as usize].chosen = Some(chosen);
    }
}
