//! A batch on the device, whose memory is in use until its last user drops it.

use super::idle::Idle;
use super::pool::{Pool, Release};
use super::streams::{ConsumerStream, Consumers, Event, Export, Streams};
use crate::{DeviceMemory, Error};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Memory of a batch on a device. Dropping it, in any thread, returns the memory to the delivery,
/// which overwrites it only after the work that is queued in the consumers' streams at that time.
pub struct DeviceBatch<S: Streams> {
    /// `None` only while it is dropped.
    memory: Option<DeviceMemory>,
    ready: Arc<S::Event>,
    consumers: S::Consumers,
    pool: Arc<Pool<S::Event>>,
    idle: Arc<Idle<S::Event>>,
    /// Its ordinal.
    number: u64,
    uses: Mutex<Uses>,
}

#[derive(Debug, Default)]
struct Uses {
    /// Handles of the streams that it was exported to.
    streams: BTreeSet<u64>,
    is_unknown: bool,
}

impl<S: Streams> std::fmt::Debug for DeviceBatch<S> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("DeviceBatch").field("memory", &self.memory).finish_non_exhaustive()
    }
}

impl<S: Streams> DeviceBatch<S> {
    pub(super) fn new(
        memory: DeviceMemory,
        ready: Arc<S::Event>,
        consumers: S::Consumers,
        pool: Arc<Pool<S::Event>>,
        idle: Arc<Idle<S::Event>>,
        number: u64,
    ) -> Self {
        Self { memory: Some(memory), ready, consumers, pool, idle, number, uses: Mutex::default() }
    }

    /// The event after which its content is complete.
    pub(super) fn ready(&self) -> &Arc<S::Event> {
        &self.ready
    }

    fn memory(&self) -> &DeviceMemory {
        self.memory.as_ref().expect("it has memory until it is dropped")
    }

    /// Address of its first byte on the device.
    pub fn address(&self) -> u64 {
        self.memory().address()
    }

    /// Index of the device.
    pub fn device(&self) -> u32 {
        self.consumers.device()
    }

    /// Makes its content visible to a consumer.
    ///
    /// A stream must exist until the batch is dropped. With [`Export::Unordered`], nothing waits:
    /// the consumer itself waits, or accepts content that is not complete yet.
    pub fn export(&self, export: Export) -> Result<(), Error> {
        match export {
            Export::Stream(stream) => {
                // Recorded first, so that a stream that was ordered is always waited for.
                let raw = stream.for_any_thread().raw();
                let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
                uses.streams.insert(raw);
                let known = (!uses.is_unknown).then_some(stream.for_any_thread());
                drop(uses);
                self.idle.exported(self.number, known);
                self.consumers.order(stream, &self.ready)
            }
            Export::Unordered => {
                self.idle.exported(self.number, None);
                self.uses.lock().unwrap_or_else(PoisonError::into_inner).is_unknown = true;
                Ok(())
            }
        }
    }

    /// Whether its content is complete.
    pub fn is_ready(&self) -> Result<bool, Error> {
        self.ready.is_done()
    }

    /// Copies bytes to the host, for tests and for consumers without a GPU library. Returns when
    /// the copy is done.
    pub fn read(&self, streams: &mut S, offset: usize, to: &mut [u8]) -> Result<(), Error> {
        streams.wait_for(&self.ready)?;
        streams.download(self.memory(), offset, to)
    }
}

impl<S: Streams> Drop for DeviceBatch<S> {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else { return };
        let uses = self.uses.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut is_unknown = uses.is_unknown;
        let mut after = Vec::new();
        for raw in &uses.streams {
            let stream = match raw {
                1 => ConsumerStream::LegacyDefault,
                handle => ConsumerStream::Handle(*handle),
            };
            let end = self.consumers.record(stream).ok().map(Arc::new);
            self.idle.dropped(self.number, stream, end.as_ref());
            match end {
                Some(event) => after.push(event),
                // A stream that does not exist any more: all work is waited for instead.
                None => is_unknown = true,
            }
        }
        self.pool.give_back(Release { memory, after, is_unknown });
    }
}
