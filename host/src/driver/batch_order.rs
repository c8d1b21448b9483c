//! Maps positions of the scheduler's range to batches, if the two differ.
//!
//! The scheduler gives devices the back of its range, so mapping its positions to other batches
//! determines which batches devices get: the scheduler uses positions, all other code uses the
//! numbers of batches in the epoch. [`OrderedScheduler`] translates between the two and exposes
//! nothing untranslated.

use crate::stats::{Displacement, Schedule};
use meetpoint_scheduler::{
    AcceleratorDecision, Agreement, BatchIndex, Config, DeviceDecision, DeviceId, DeviceSummary,
    Epoch, Generation, HostDecision, Learned, Outcome, Record, Summary, Time, WorkRun,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// A position in the scheduler's range, which the scheduler calls a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position(BatchIndex);

/// The mapping between positions and batches of an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BatchOrder {
    /// By position.
    batches: Vec<u32>,
    /// By batch; `u32::MAX`, which is out of any range, if it has no position.
    positions: Vec<u32>,
    /// Whether batches were chosen for their positions, instead of being the rest of an epoch.
    are_chosen: bool,
}

impl BatchOrder {
    /// The batch at each position: every number below the count, once.
    pub(crate) fn new(batches: Vec<u32>) -> Self {
        let positions = Self::positions(&batches, batches.len());
        assert!(!positions.contains(&u32::MAX), "an order is a permutation");
        Self { batches, positions, are_chosen: true }
    }

    /// The rest of an epoch of `batches` batches: the given ones, in ascending order.
    pub(crate) fn rest(rest: Vec<u32>, batches: u32) -> Self {
        let positions = Self::positions(&rest, batches as usize);
        Self { batches: rest, positions, are_chosen: false }
    }

    fn positions(of: &[u32], batches: usize) -> Vec<u32> {
        let mut positions = vec![u32::MAX; batches];
        for (position, &batch) in (0..).zip(of) {
            positions[batch as usize] = position;
        }
        positions
    }

    pub(crate) fn displacement(&self) -> Displacement {
        let moved = |(position, &batch): (u32, &u32)| u64::from(position.abs_diff(batch));
        let moved: Vec<u64> = (0..).zip(&self.batches).map(moved).collect();
        let sum: u64 = moved.iter().sum();
        Displacement {
            mean: sum as f64 / moved.len().max(1) as f64,
            max: moved.iter().max().map_or(0, |&most| most as u32),
        }
    }
}

/// A scheduler with an interface of batches that decides about positions.
#[derive(Debug)]
pub(crate) struct OrderedScheduler {
    scheduler: Epoch,
    order: Option<Arc<BatchOrder>>,
    /// Work that was decided but not handed out yet: batches at neighbouring positions need not be
    /// neighbours.
    pending: VecDeque<(DeviceId, BatchIndex, Generation)>,
}

/// Methods without batches or positions.
impl OrderedScheduler {
    pub(crate) fn new(scheduler: Epoch, order: Option<Arc<BatchOrder>>) -> Self {
        Self { scheduler, order, pending: VecDeque::new() }
    }

    pub(crate) fn displacement(&self) -> Option<Displacement> {
        let chosen = self.order.as_ref().filter(|order| order.are_chosen);
        chosen.map(|order| order.displacement())
    }

    /// Whether it decides about anything other than all batches in order.
    pub(crate) fn has_order(&self) -> bool {
        self.order.is_some()
    }

    pub(crate) fn config(&self) -> &Config {
        self.scheduler.config()
    }

    pub(crate) fn schedule(&self) -> Schedule {
        Schedule::from(&self.scheduler)
    }

    pub(crate) fn summary(&self) -> Summary {
        self.scheduler.summary()
    }

    pub(crate) fn device_summary(&self, device: DeviceId) -> Option<DeviceSummary> {
        self.scheduler.device_summary(device)
    }

    pub(crate) fn learned(&self) -> Learned {
        self.scheduler.learned()
    }

    /// A record of positions: it replays the same epoch with the same order.
    pub(crate) fn record(&self) -> Option<Record> {
        self.scheduler.record()
    }

    pub(crate) fn set_host_ahead(&mut self, host_ahead: u32) {
        self.scheduler.set_host_ahead(host_ahead);
    }

    pub(crate) fn is_at_work(&self) -> bool {
        self.scheduler.is_at_work()
    }

    pub(crate) fn device_waited_for(&mut self) -> Option<DeviceId> {
        self.scheduler.device_waited_for()
    }

    pub(crate) fn accelerator_ready(&mut self, now: Time) {
        self.scheduler.accelerator_ready(now);
    }

    pub(crate) fn agreed(&mut self, now: Time, agreement: Agreement) -> Outcome {
        self.scheduler.agreed(now, agreement)
    }

    pub(crate) fn device_progress(&mut self, now: Time, device: DeviceId) {
        self.scheduler.device_progress(now, device);
    }

    pub(crate) fn device_leaving(&mut self, now: Time, device: DeviceId) {
        self.scheduler.device_leaving(now, device);
    }

    pub(crate) fn device_lost(&mut self, now: Time, device: DeviceId) {
        self.scheduler.device_lost(now, device);
    }

    pub(crate) fn device_joined(
        &mut self,
        now: Time,
        device: DeviceId,
        ahead: u32,
    ) -> Option<Generation> {
        self.scheduler.device_joined(now, device, ahead)
    }

    pub(crate) fn tick(&mut self, now: Time) {
        self.scheduler.tick(now);
    }
}

/// Methods that translate between batches and positions.
impl OrderedScheduler {
    fn batch(&self, position: Position) -> BatchIndex {
        let Position(index) = position;
        match &self.order {
            Some(order) => BatchIndex(order.batches[index.0 as usize]),
            None => index,
        }
    }

    /// A batch out of range gets a position out of range.
    fn position(&self, batch: BatchIndex) -> Position {
        let order = self.order.as_ref();
        let position = order.and_then(|order| order.positions.get(batch.0 as usize));
        Position(position.map_or(batch, |&position| BatchIndex(position)))
    }

    pub(crate) fn host(&mut self, now: Time) -> HostDecision {
        match self.scheduler.host(now) {
            HostDecision::Prepare(index) => HostDecision::Prepare(self.batch(Position(index))),
            other @ (HostDecision::Idle | HostDecision::Done) => other,
        }
    }

    pub(crate) fn device(&mut self, now: Time, device: DeviceId) -> DeviceDecision {
        if let Some(at) = self.pending.iter().position(|(of, ..)| *of == device) {
            let (_, first, generation) = self.pending.remove(at).expect("it was found");
            return DeviceDecision::Work(WorkRun { first, count: 1, descending: true }, generation);
        }
        match self.scheduler.device(now, device) {
            DeviceDecision::Work(run, generation) if self.order.is_some() => {
                let WorkRun { first: BatchIndex(first), count, descending } = run;
                for n in 0..count {
                    let index = if descending { first - n } else { first + n };
                    let batch = self.batch(Position(BatchIndex(index)));
                    self.pending.push_back((device, batch, generation));
                }
                self.device(now, device)
            }
            // Without an order, positions are batches.
            DeviceDecision::Work(run, generation) => DeviceDecision::Work(run, generation),
            // Work that was not handed out is revoked with the rest: it was requested until there
            // was no more.
            other @ (DeviceDecision::Revoke(_) | DeviceDecision::Stop | DeviceDecision::Idle) => {
                other
            }
        }
    }

    pub(crate) fn fetch(&mut self, now: Time) -> Option<(BatchIndex, DeviceId, Generation)> {
        let (index, device, generation) = self.scheduler.fetch(now)?;
        Some((self.batch(Position(index)), device, generation))
    }

    pub(crate) fn accelerator(&mut self, now: Time) -> AcceleratorDecision {
        match self.scheduler.accelerator(now) {
            AcceleratorDecision::Consume(index, source) => {
                AcceleratorDecision::Consume(self.batch(Position(index)), source)
            }
            other @ (AcceleratorDecision::WaitUntil(_)
            | AcceleratorDecision::Agree(_)
            | AcceleratorDecision::Done) => other,
        }
    }

    pub(crate) fn discard(&mut self, now: Time) -> Option<(BatchIndex, DeviceId)> {
        let (index, device) = self.scheduler.discard(now)?;
        Some((self.batch(Position(index)), device))
    }

    pub(crate) fn host_finished(&mut self, now: Time, batch: BatchIndex) -> Outcome {
        let Position(index) = self.position(batch);
        self.scheduler.host_finished(now, index)
    }

    pub(crate) fn device_published(
        &mut self,
        now: Time,
        device: DeviceId,
        batch: BatchIndex,
        generation: Generation,
    ) -> Outcome {
        let Position(index) = self.position(batch);
        self.scheduler.device_published(now, device, index, generation)
    }

    pub(crate) fn device_fetched(
        &mut self,
        now: Time,
        device: DeviceId,
        batch: BatchIndex,
        generation: Generation,
    ) -> Outcome {
        let Position(index) = self.position(batch);
        self.scheduler.device_fetched(now, device, index, generation)
    }

    pub(crate) fn device_rejected(
        &mut self,
        now: Time,
        device: DeviceId,
        batch: BatchIndex,
        generation: Generation,
    ) -> Outcome {
        let Position(index) = self.position(batch);
        self.scheduler.device_rejected(now, device, index, generation)
    }

    pub(crate) fn preloaded(&mut self, now: Time, device: DeviceId, batch: BatchIndex) -> Outcome {
        let Position(index) = self.position(batch);
        self.scheduler.preloaded(now, device, index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::four_batches;
    use meetpoint_scheduler::Source;

    /// Four batches under round robin, one device.
    fn with_order(batches: Vec<u32>) -> OrderedScheduler {
        OrderedScheduler::new(
            Epoch::new(four_batches()).unwrap(),
            Some(Arc::new(BatchOrder::new(batches))),
        )
    }

    #[test]
    fn both_ends_get_batches_and_every_one_is_consumed_once() {
        let mut epoch = with_order(vec![2, 0, 3, 1]);
        let device = DeviceId(0);
        let DeviceDecision::Work(first, generation) = epoch.device(0, device) else { panic!() };
        assert_eq!(first, WorkRun { first: BatchIndex(1), count: 1, descending: true });
        let DeviceDecision::Work(second, _) = epoch.device(0, device) else { panic!() };
        assert_eq!(second.first, BatchIndex(3), "the position before the last");
        assert_eq!(epoch.host(0), HostDecision::Prepare(BatchIndex(2)), "the first position");
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
        // Which one comes first is up to the strategy.
        assert!(both.contains(&consume(1, Source::Device(device))), "{both:?}");
        assert!(both.contains(&consume(2, Source::Host)), "{both:?}");
        let none = epoch.device_published(7, device, BatchIndex(9), generation);
        assert_ne!(none, Outcome::Accepted, "batch 9 is out of range");
    }

    #[test]
    fn the_rest_of_an_epoch_is_prepared_from_both_ends_and_nothing_else() {
        let config = Config { batches: 3, ..with_order(vec![0, 1, 2, 3]).config().clone() };
        let rest = BatchOrder::rest(vec![2, 3, 6], 8);
        let mut epoch = OrderedScheduler::new(Epoch::new(config).unwrap(), Some(Arc::new(rest)));
        assert_eq!(epoch.host(0), HostDecision::Prepare(BatchIndex(2)));
        let DeviceDecision::Work(run, generation) = epoch.device(0, DeviceId(0)) else { panic!() };
        assert_eq!(run.first, BatchIndex(6));
        let consumed_before = epoch.device_published(1, DeviceId(0), BatchIndex(7), generation);
        assert_ne!(consumed_before, Outcome::Accepted);
        assert_eq!(epoch.displacement(), None, "they are in their order");
    }

    #[test]
    fn displacement_is_the_distance_from_the_order() {
        let displacement = BatchOrder::new(vec![3, 1, 2, 0]).displacement();
        assert_eq!((displacement.mean, displacement.max), (1.5, 3));
        let none = BatchOrder::new(vec![0, 1]).displacement();
        assert_eq!((none.mean, none.max), (0.0, 0));
    }
}
