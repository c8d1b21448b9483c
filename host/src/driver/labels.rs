//! Which batch stands at which place of the scheduler's range, where they are not in their order.
//!
//! The scheduler gives devices the back of its range. What stands there is chosen by giving its
//! places other batches: it decides about places and is told of places; everybody else knows
//! batches by their numbers in the epoch.

use meetpoint_scheduler::{
    AcceleratorDecision, BatchIndex, DeviceDecision, DeviceId, Epoch, Generation, HostDecision,
    Outcome, Time, WorkRun,
};
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Which batch of an epoch stands at which place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Labels {
    /// By place.
    batches: Vec<u32>,
    /// By batch; a batch that stands nowhere has a place that there is not.
    places: Vec<u32>,
    /// Whether batches stand elsewhere than in their order because they were put there.
    are_chosen: bool,
}

/// How far batches stand from their places in the order of the epoch.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Displacement {
    /// Mean over all batches, in batches.
    pub mean: f64,
    /// Largest, in batches.
    pub max: u32,
}

impl Labels {
    /// The batch at each place; each number below their count once.
    pub(crate) fn new(batches: Vec<u32>) -> Self {
        let mut places = vec![u32::MAX; batches.len()];
        for (place, &batch) in (0..).zip(&batches) {
            places[batch as usize] = place;
        }
        assert!(!places.contains(&u32::MAX), "labels are a permutation");
        Self { batches, places, are_chosen: true }
    }

    /// The rest of an epoch of `batches` batches: these, in their order. They rise.
    pub(crate) fn rest(rest: Vec<u32>, batches: u32) -> Self {
        let mut places = vec![u32::MAX; batches as usize];
        for (place, &batch) in (0..).zip(&rest) {
            places[batch as usize] = place;
        }
        Self { batches: rest, places, are_chosen: false }
    }

    pub(crate) fn displacement(&self) -> Displacement {
        let moved = |(place, &batch): (u32, &u32)| u64::from(place.abs_diff(batch));
        let moved: Vec<u64> = (0..).zip(&self.batches).map(moved).collect();
        let sum: u64 = moved.iter().sum();
        Displacement {
            mean: sum as f64 / moved.len().max(1) as f64,
            max: moved.iter().max().map_or(0, |&most| most as u32),
        }
    }
}

/// A scheduler that is spoken to in batches while it decides about places.
#[derive(Debug)]
pub(crate) struct Labelled {
    scheduler: Epoch,
    labels: Option<Arc<Labels>>,
    /// Work that was decided and is not handed out yet: batches at neighbouring places are none.
    pending: VecDeque<(DeviceId, BatchIndex, Generation)>,
}

impl Deref for Labelled {
    type Target = Epoch;

    fn deref(&self) -> &Epoch {
        &self.scheduler
    }
}

impl DerefMut for Labelled {
    fn deref_mut(&mut self) -> &mut Epoch {
        &mut self.scheduler
    }
}

impl Labelled {
    pub(crate) fn new(scheduler: Epoch, labels: Option<Arc<Labels>>) -> Self {
        Self { scheduler, labels, pending: VecDeque::new() }
    }

    pub(crate) fn displacement(&self) -> Option<Displacement> {
        let chosen = self.labels.as_ref().filter(|labels| labels.are_chosen);
        chosen.map(|labels| labels.displacement())
    }

    /// Whether it decides about something else than all batches in their order.
    pub(crate) fn is_labelled(&self) -> bool {
        self.labels.is_some()
    }

    fn batch(&self, place: BatchIndex) -> BatchIndex {
        match &self.labels {
            Some(labels) => BatchIndex(labels.batches[place.0 as usize]),
            None => place,
        }
    }

    /// A batch that there is not stays one.
    fn place(&self, batch: BatchIndex) -> BatchIndex {
        let labels = self.labels.as_ref();
        let place = labels.and_then(|labels| labels.places.get(batch.0 as usize));
        place.map_or(batch, |&place| BatchIndex(place))
    }

    pub(crate) fn host(&mut self, now: Time) -> HostDecision {
        match self.scheduler.host(now) {
            HostDecision::Prepare(place) => HostDecision::Prepare(self.batch(place)),
            other => other,
        }
    }

    pub(crate) fn device(&mut self, now: Time, device: DeviceId) -> DeviceDecision {
        if let Some(at) = self.pending.iter().position(|(of, ..)| *of == device) {
            let (_, first, generation) = self.pending.remove(at).expect("it was found");
            return DeviceDecision::Work(WorkRun { first, count: 1, descending: true }, generation);
        }
        match self.scheduler.device(now, device) {
            DeviceDecision::Work(run, generation) if self.labels.is_some() => {
                let WorkRun { first: BatchIndex(first), count, descending } = run;
                for n in 0..count {
                    let place = if descending { first - n } else { first + n };
                    let batch = self.batch(BatchIndex(place));
                    self.pending.push_back((device, batch, generation));
                }
                self.device(now, device)
            }
            // Work that was not handed out is taken back with the rest: it was asked for until
            // there was nothing more.
            other => other,
        }
    }

    pub(crate) fn fetch(&mut self, now: Time) -> Option<(BatchIndex, DeviceId, Generation)> {
        let (place, device, generation) = self.scheduler.fetch(now)?;
        Some((self.batch(place), device, generation))
    }

    pub(crate) fn accelerator(&mut self, now: Time) -> AcceleratorDecision {
        match self.scheduler.accelerator(now) {
            AcceleratorDecision::Consume(place, source) => {
                AcceleratorDecision::Consume(self.batch(place), source)
            }
            other => other,
        }
    }

    pub(crate) fn discard(&mut self, now: Time) -> Option<(BatchIndex, DeviceId)> {
        let (place, device) = self.scheduler.discard(now)?;
        Some((self.batch(place), device))
    }

    pub(crate) fn host_finished(&mut self, now: Time, batch: BatchIndex) -> Outcome {
        self.scheduler.host_finished(now, self.place(batch))
    }

    pub(crate) fn device_published(
        &mut self,
        now: Time,
        device: DeviceId,
        batch: BatchIndex,
        generation: Generation,
    ) -> Outcome {
        self.scheduler.device_published(now, device, self.place(batch), generation)
    }

    pub(crate) fn device_fetched(
        &mut self,
        now: Time,
        device: DeviceId,
        batch: BatchIndex,
        generation: Generation,
    ) -> Outcome {
        self.scheduler.device_fetched(now, device, self.place(batch), generation)
    }

    pub(crate) fn device_rejected(
        &mut self,
        now: Time,
        device: DeviceId,
        batch: BatchIndex,
        generation: Generation,
    ) -> Outcome {
        self.scheduler.device_rejected(now, device, self.place(batch), generation)
    }

    pub(crate) fn preloaded(&mut self, now: Time, device: DeviceId, batch: BatchIndex) -> Outcome {
        self.scheduler.preloaded(now, device, self.place(batch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meetpoint_scheduler::{AnyStrategy, Config, DeviceConfig, Holders, Learned, Source, Wrr};

    /// Four batches under round robin, one device.
    fn labelled(batches: Vec<u32>) -> Labelled {
        let config = Config {
            batches: 4,
            strategy: AnyStrategy::Wrr(Wrr),
            host_ahead: 1,
            fetch_ahead: 4,
            devices: vec![DeviceConfig { ahead: 2, spool_slots: 4, first_generation: 1 }],
            holders: Holders::Shared,
            stall_timeout_ns: 1_000_000_000,
            stalls_max: 3,
            profile_batches: 1,
            learned: Learned::nothing(),
            replay: None,
            ranks: 1,
            costs: None,
        };
        Labelled::new(Epoch::new(config).unwrap(), Some(Arc::new(Labels::new(batches))))
    }

    #[test]
    fn both_ends_are_told_of_batches_and_every_one_is_consumed_once() {
        let mut epoch = labelled(vec![2, 0, 3, 1]);
        let device = DeviceId(0);
        let DeviceDecision::Work(first, generation) = epoch.device(0, device) else { panic!() };
        assert_eq!(first, WorkRun { first: BatchIndex(1), count: 1, descending: true });
        let DeviceDecision::Work(second, _) = epoch.device(0, device) else { panic!() };
        assert_eq!(second.first, BatchIndex(3), "the place before the last");
        assert_eq!(epoch.host(0), HostDecision::Prepare(BatchIndex(2)), "the first place");
        assert_eq!(epoch.host_finished(1, BatchIndex(2)), Outcome::Accepted);
        let published = epoch.device_published(2, device, BatchIndex(1), generation);
        assert_eq!(published, Outcome::Accepted);
        assert_eq!(epoch.fetch(3), Some((BatchIndex(1), device, generation)));
        let fetched = epoch.device_fetched(4, device, BatchIndex(1), generation);
        assert_eq!(fetched, Outcome::Accepted);
        let consume = |batch, source| AcceleratorDecision::Consume(BatchIndex(batch), source);
        let first = epoch.accelerator(5);
        epoch.accelerator_ready(6);
        let both = [first, epoch.accelerator(6)];
        // Which one first is the strategy's to say.
        assert!(both.contains(&consume(1, Source::Device(device))), "{both:?}");
        assert!(both.contains(&consume(2, Source::Host)), "{both:?}");
        let none = epoch.device_published(7, device, BatchIndex(9), generation);
        assert_ne!(none, Outcome::Accepted, "there is no such batch");
    }

    #[test]
    fn the_rest_of_an_epoch_is_prepared_from_both_ends_and_nothing_else() {
        let config = Config { batches: 3, ..labelled(vec![0, 1, 2, 3]).config().clone() };
        let rest = Labels::rest(vec![2, 3, 6], 8);
        let mut epoch = Labelled::new(Epoch::new(config).unwrap(), Some(Arc::new(rest)));
        assert_eq!(epoch.host(0), HostDecision::Prepare(BatchIndex(2)));
        let DeviceDecision::Work(run, generation) = epoch.device(0, DeviceId(0)) else { panic!() };
        assert_eq!(run.first, BatchIndex(6));
        let consumed_before = epoch.device_published(1, DeviceId(0), BatchIndex(7), generation);
        assert_ne!(consumed_before, Outcome::Accepted);
        assert_eq!(epoch.displacement(), None, "they stand in their order");
    }

    #[test]
    fn displacement_is_the_distance_from_the_order() {
        let displacement = Labels::new(vec![3, 1, 2, 0]).displacement();
        assert_eq!((displacement.mean, displacement.max), (1.5, 3));
        let none = Labels::new(vec![0, 1]).displacement();
        assert_eq!((none.mean, none.max), (0.0, 0));
    }
}
