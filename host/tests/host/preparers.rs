//! A loader prepares with the preparers of its configuration.

use crate::support::{config, consume, dataset};
use meetpoint_format::column::BatchColumns;
use meetpoint_host::{Error, Loader};
use meetpoint_kernels::Interrupt;
use meetpoint_prepare::{
    BatchMemory, CpuPreparers, Error as PrepareError, Job, Pace, PreparedBatch, Preparer,
    PreparerFactory, Resources,
};
use meetpoint_storage::Counters;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Creates preparers that count their batches.
#[derive(Debug, Default)]
struct Counting {
    preparers: AtomicU32,
    batches: Arc<AtomicU32>,
}

impl PreparerFactory for Counting {
    fn preparer(&self, job: &Job, resources: Resources) -> Result<Box<dyn Preparer>, PrepareError> {
        self.preparers.fetch_add(1, Ordering::Relaxed);
        let inner = CpuPreparers::default().preparer(job, resources)?;
        Ok(Box::new(Counted { inner, batches: Arc::clone(&self.batches) }))
    }
}

/// A preparer of the CPU whose batches are counted.
struct Counted {
    inner: Box<dyn Preparer>,
    batches: Arc<AtomicU32>,
}

impl Preparer for Counted {
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
    ) -> Result<PreparedBatch, PrepareError> {
        let prepared = self.inner.prepare(epoch, batch, memory, pace)?;
        self.batches.fetch_add(1, Ordering::Relaxed);
        Ok(prepared)
    }

    fn counters(&self) -> Counters {
        self.inner.counters()
    }
}

/// Refuses to create preparers.
#[derive(Debug)]
struct Refusing;

impl PreparerFactory for Refusing {
    fn preparer(&self, _: &Job, _: Resources) -> Result<Box<dyn Preparer>, PrepareError> {
        Err(PrepareError::NoFixedShape)
    }
}

#[test]
fn every_batch_comes_from_a_preparer_of_the_configuration() {
    let folder = dataset(23);
    let (expected, _) =
        consume(Loader::open(config(folder.path())).unwrap().start_epoch(0).unwrap());
    for workers in [0, 2] {
        let preparers = Arc::new(Counting::default());
        let mut config = config(folder.path());
        config.workers = workers;
        config.preparers = Arc::clone(&preparers) as Arc<dyn PreparerFactory>;
        let mut loader = Loader::open(config).unwrap();
        let (seen, _) = consume(loader.start_epoch(0).unwrap());
        assert_eq!(seen, expected);
        assert_eq!(preparers.preparers.load(Ordering::Relaxed), workers.max(1));
        assert_eq!(preparers.batches.load(Ordering::Relaxed), 6);
    }
}

#[test]
fn a_factory_that_makes_no_preparer_refuses_the_loader() {
    let folder = dataset(8);
    let mut config = config(folder.path());
    config.preparers = Arc::new(Refusing);
    let refused = Loader::open(config);
    assert!(matches!(refused, Err(Error::Prepare(PrepareError::NoFixedShape))), "{refused:?}");
}
