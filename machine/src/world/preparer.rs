//! The preparer of the CPU, which takes simulated time for each sample.

use meetpoint_format::column::BatchColumns;
use meetpoint_kernels::Interrupt;
use meetpoint_prepare::{
    BatchMemory, CpuPreparers, Error, Job, Pace, PreparedBatch, Preparer, PreparerFactory,
    Resources,
};
use meetpoint_storage::Counters;
use std::sync::Arc;
use std::time::Duration;

/// Creates such preparers.
#[derive(Debug)]
pub(super) struct SlowPreparers {
    /// Time for each sample.
    pub(super) sample_ns: u64,
}

impl PreparerFactory for SlowPreparers {
    fn preparer(&self, job: &Job, resources: Resources) -> Result<Box<dyn Preparer>, Error> {
        let inner = CpuPreparers::default().preparer(job, resources)?;
        Ok(Box::new(SlowPreparer { inner, sample: Duration::from_nanos(self.sample_ns) }))
    }
}

struct SlowPreparer {
    inner: Box<dyn Preparer>,
    sample: Duration,
}

impl Preparer for SlowPreparer {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn columns(&self) -> &Arc<BatchColumns> {
        self.inner.columns()
    }

    fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.inner.set_interrupt(interrupt);
    }

    fn prepare(
        &mut self,
        epoch: u32,
        batch: u32,
        memory: &mut dyn BatchMemory,
        pace: Pace<'_>,
    ) -> Result<PreparedBatch, Error> {
        let mut finished = 0;
        let sample = self.sample;
        let mut slowed = |done: u32| {
            if done > finished {
                std::thread::sleep(sample * (done - finished));
                finished = done;
            }
            pace(done)
        };
        self.inner.prepare(epoch, batch, memory, &mut slowed)
    }

    fn counters(&self) -> Counters {
        self.inner.counters()
    }
}
