//! An accelerator whose batches are on a GPU before each step.

use super::stage::DeliveryStage;
use crate::page_locks::Unlocked;
use crate::{Accelerator, Batch, StopHandle};
use meetpoint_gpu::delivery::{Delivered, DeliveryError, Streams};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What steps on a GPU amount to, for the thread that waits for their end.
#[derive(Debug, Clone, Default)]
pub struct DeliveryOutcome(Arc<Mutex<Outcome>>);

#[derive(Debug, Default)]
struct Outcome {
    delivered: Delivered,
    staged: Option<Unlocked>,
    failure: Option<DeliveryError>,
}

impl DeliveryOutcome {
    fn lock(&self) -> MutexGuard<'_, Outcome> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was delivered so far.
    pub fn delivered(&self) -> Delivered {
        self.lock().delivered
    }

    /// Why batches were copied through page-locked memory, if some were.
    pub fn staged(&self) -> Option<Unlocked> {
        self.lock().staged.clone()
    }

    /// The failure that stopped the run.
    pub fn take_failure(&self) -> Option<DeliveryError> {
        self.lock().failure.take()
    }
}

/// Brings each batch to a GPU, waits for it there, and makes the step of another accelerator. A
/// failure stops the run.
pub struct GpuAccelerator<S: Streams> {
    stage: DeliveryStage<S>,
    step: Box<dyn Accelerator>,
    stop: StopHandle,
    outcome: DeliveryOutcome,
}

impl<S: Streams> GpuAccelerator<S> {
    /// An accelerator with the steps of another.
    pub fn new(
        stage: DeliveryStage<S>,
        step: Box<dyn Accelerator>,
        stop: StopHandle,
        outcome: DeliveryOutcome,
    ) -> Self {
        Self { stage, step, stop, outcome }
    }

    fn deliver(&mut self, batch: &Batch) -> Result<(), DeliveryError> {
        let stop = &self.stop;
        let delivered = self.stage.deliver(batch, &|| stop.is_stopped())?;
        self.stage.wait_for(&delivered.memory, &|| stop.is_stopped())?;
        self.step.step(batch);
        drop(delivered);
        let now = self.stage.delivered()?;
        let mut outcome = self.outcome.lock();
        outcome.delivered = now;
        outcome.staged = self.stage.staged().cloned();
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
}
