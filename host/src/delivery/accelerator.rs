//! An emulated accelerator whose batches are on a GPU before each step.

use super::split::Split;
use super::stage::{DeliveryStage, GpuBatch};
use super::usage::DeliveryUse;
use crate::clock::{duration_ns, monotonic_ns};
use crate::page_locks::Unlocked;
use crate::{Accelerator, Batch, StopHandle, accelerator};
use meetpoint_gpu::delivery::{Delivered, DeliveryError, Streams};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The result of the steps on a GPU, for the thread that waits for their end.
#[derive(Debug, Clone, Default)]
pub struct DeliveryOutcome(Arc<Mutex<Outcome>>);

#[derive(Debug, Default)]
struct Outcome {
    delivered: Delivered,
    staged: Option<Unlocked>,
    late_batches: u64,
    failure: Option<DeliveryError>,
}

impl DeliveryOutcome {
    fn lock(&self) -> MutexGuard<'_, Outcome> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Statistics of the delivery so far, to a GPU with a name.
    pub fn usage(&self, device: String, split: &Split) -> DeliveryUse {
        let Outcome { delivered, staged, late_batches, .. } = &*self.lock();
        let before = Delivered::default();
        let used = DeliveryUse::between(device, split, staged.as_ref(), &before, delivered);
        DeliveryUse { late_batches: *late_batches, ..used }
    }

    /// The failure that stopped the run.
    pub fn take_failure(&self) -> Option<DeliveryError> {
        self.lock().failure.take()
    }
}

/// Delivers each batch to a GPU and then occupies an emulated accelerator with it for the time of a
/// step. As with a GPU that trains, a step continues while the loader prepares and delivers the
/// next batch. A failure of the delivery stops the run.
#[derive(Debug)]
pub struct GpuAccelerator<S: Streams> {
    stage: DeliveryStage<S>,
    step_ns: u64,
    stop: StopHandle,
    outcome: DeliveryOutcome,
    /// The batch of the latest step, and the end of the step.
    current: Option<(GpuBatch<S>, u64)>,
    idle_ns: u64,
    idle_measured: u64,
    late_batches: u64,
}

impl<S: Streams> GpuAccelerator<S> {
    /// An accelerator whose steps take `step`. Sets the timer slack of the calling thread to 1 ns.
    pub fn new(
        stage: DeliveryStage<S>,
        step: Duration,
        stop: StopHandle,
        outcome: DeliveryOutcome,
    ) -> Self {
        accelerator::end_sleeps_on_time();
        let step_ns = duration_ns(step);
        let (current, idle_ns, idle_measured, late_batches) = (None, 0, 0, 0);
        Self { stage, step_ns, stop, outcome, current, idle_ns, idle_measured, late_batches }
    }

    fn deliver(&mut self, batch: &Batch) -> Result<(), DeliveryError> {
        let stop = &self.stop;
        let delivered = self.stage.deliver(batch, &|| stop.is_stopped())?;
        self.stage.wait_for(&delivered.memory, &|| stop.is_stopped())?;
        let mut start = monotonic_ns();
        if let Some((_, end)) = &self.current {
            accelerator::wait_until(*end, stop);
            let idle_ns = start.saturating_sub(*end);
            self.late_batches += u64::from(idle_ns > 0);
            self.idle_ns += idle_ns;
            self.idle_measured += 1;
            start = start.max(*end);
        }
        self.current = Some((delivered, start.saturating_add(self.step_ns)));
        self.publish()
    }

    fn publish(&mut self) -> Result<(), DeliveryError> {
        let (idle_ns, idle_measured) = (self.idle_ns, self.idle_measured);
        let delivered = Delivered { idle_ns, idle_measured, ..self.stage.delivered()? };
        let mut outcome = self.outcome.lock();
        outcome.delivered = delivered;
        outcome.staged = self.stage.staged().cloned();
        outcome.late_batches = self.late_batches;
        Ok(())
    }
}

impl<S: Streams> Accelerator for GpuAccelerator<S> {
    fn step(&mut self, batch: &Batch) {
        if let Err(failure) = self.deliver(batch) {
            self.outcome.lock().failure.get_or_insert(failure);
            self.stop.stop();
        }
    }

    fn finish(&mut self) {
        // The next epoch begins with an idle accelerator, which is not measured.
        if let Some((_, end)) = self.current.take() {
            accelerator::wait_until(end, &self.stop);
        }
    }
}
