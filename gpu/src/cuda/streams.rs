#![expect(unsafe_code, reason = "the driver is a C library")]
//! The streams of other libraries, for batches that they share with a [`CudaCompute`].

use super::compute::CudaCompute;
use super::event::Event;
use super::gpu::Gpu;
use crate::delivery::{self, ConsumerStream, Consumers, Streams};
use crate::{ASK_EVERY, Error};
use cudarc::driver::sys;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// Streams of other libraries on a GPU, for any thread. They must exist as long as batches that
/// were exported to them; the driver rejects most handles of streams that do not exist.
#[derive(Debug, Clone)]
pub struct CudaConsumers {
    gpu: Arc<Gpu>,
}

impl delivery::Event for Event {
    fn is_done(&self) -> Result<bool, Error> {
        self.query()
    }

    fn wait_unless(&self, limit: Duration, is_stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        Event::wait_unless(self, limit, is_stopped)
    }

    fn since(&self, earlier: &Self) -> Result<Duration, Error> {
        let milliseconds = self.milliseconds_since(earlier)?;
        Ok(Duration::try_from_secs_f32(milliseconds / 1e3).unwrap_or_default())
    }
}

impl Streams for CudaCompute {
    type Event = Event;
    type Consumers = CudaConsumers;

    fn record(&mut self) -> Result<Event, Error> {
        let event = self.gpu().event()?;
        CudaCompute::record(self, &event)?;
        Ok(event)
    }

    fn wait_for(&mut self, event: &Event) -> Result<(), Error> {
        self.wait_for_event(event)
    }

    fn consumers(&self) -> CudaConsumers {
        CudaConsumers { gpu: Arc::clone(self.gpu()) }
    }
}

impl Consumers for CudaConsumers {
    type Event = Event;

    fn device(&self) -> u32 {
        self.gpu.info().index
    }

    fn order(&self, stream: ConsumerStream, after: &Event) -> Result<(), Error> {
        let _entered = self.gpu.context.enter()?;
        // SAFETY: the event exists; so does the stream, as its owner says by naming it.
        let result = unsafe { sys::cuStreamWaitEvent(raw(stream), after.handle.0, 0) };
        self.gpu.context.check("cuStreamWaitEvent", result)
    }

    fn record(&self, stream: ConsumerStream) -> Result<Event, Error> {
        let event = self.gpu.event()?;
        // SAFETY: the stream exists, as its owner says by naming it.
        unsafe { event.record(raw(stream))? };
        Ok(event)
    }

    /// `cuCtxSynchronize` cannot be interrupted, so a separate thread calls it. At the limit or
    /// after a request to stop, this function returns and the thread continues to wait; nothing is
    /// freed until its wait ends.
    fn settle(&self, limit: Duration, is_stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        // Unbuffered: the result is either received, or the thread learns that it was not.
        let (sender, settled) = mpsc::sync_channel(0);
        let gpu = Arc::clone(&self.gpu);
        let wait = move || {
            let result = gpu.context.enter().and_then(|_entered| {
                // SAFETY: the context is current.
                gpu.context.check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
            });
            if sender.send(result).is_err() {
                gpu.context.end_settling();
            }
        };
        let thread = std::thread::Builder::new().name("gpu-settle".to_owned()).spawn(wait);
        thread.map_err(|error| Error::Driver {
            call: "cuCtxSynchronize",
            name: "no thread".to_owned(),
            what: error.to_string(),
        })?;
        let start = Instant::now();
        loop {
            if let Ok(result) = settled.recv_timeout(ASK_EVERY) {
                return result;
            }
            let is_stopped = is_stopped();
            if is_stopped || start.elapsed() >= limit {
                self.gpu.context.begin_settling();
                let hung = Error::Hung { seconds: limit.as_secs_f64() };
                return Err(if is_stopped { Error::Stopped } else { hung });
            }
        }
    }
}

/// A stream by its number: the driver and DLPack have the same.
fn raw(stream: ConsumerStream) -> sys::CUstream {
    let number = usize::try_from(stream.raw()).expect("a pointer has 64 bits");
    std::ptr::without_provenance_mut(number)
}
