//! A preparer whose calls fail as planned, in front of another.

use meetpoint_format::column::BatchColumns;
use meetpoint_kernels::Interrupt;
use meetpoint_prepare::{BatchMemory, Error, Pace, PreparedBatch, Preparer};
use meetpoint_storage::Counters;
use std::path::PathBuf;
use std::sync::Arc;

/// Fails every call whose number, from 0, is a multiple of `every`, after it has written arbitrary
/// bytes to the memory.
pub(crate) struct FaultyPreparer {
    pub(crate) inner: Box<dyn Preparer>,
    pub(crate) every: u32,
    pub(crate) calls: u32,
}

impl Preparer for FaultyPreparer {
    fn name(&self) -> &str {
        "faulty"
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
        let prepared = self.inner.prepare(epoch, batch, memory, pace)?;
        self.calls += 1;
        if (self.calls - 1).is_multiple_of(self.every) {
            let bytes = usize::try_from(prepared.layout.bytes()).unwrap();
            memory.bytes_mut()[..bytes].fill(0xee);
            return Err(Error::ReadTimeout { path: PathBuf::new(), seconds: 1 });
        }
        Ok(prepared)
    }

    fn counters(&self) -> Counters {
        self.inner.counters()
    }
}
