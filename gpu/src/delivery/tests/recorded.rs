//! A device that records its calls.

use crate::delivery::streams::{ConsumerStream, Consumers, Event, Streams};
use crate::{Compute, DeviceMemory, Error, Fence, HostMemory, Launch, PageLock, Shim};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The CPU, with events that a test controls.
pub(super) struct Recorded {
    pub(super) shim: Shim,
    pub(super) log: Arc<Mutex<Log>>,
    /// What its lines begin with.
    pub(super) name: &'static str,
}

#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) events: u32,
    /// Bytes copied to the device.
    pub(super) uploaded: usize,
    /// Events that are not done.
    pub(super) pending: BTreeSet<u32>,
    /// What was done, in order.
    pub(super) lines: Vec<String>,
    /// Streams that do not exist any more.
    pub(super) destroyed: BTreeSet<u64>,
    /// Whether events are not done when they are asked for the first time.
    pub(super) is_slow: bool,
    /// Whether they are never done then.
    pub(super) is_stuck: bool,
    /// Whether no point in its work can be marked any more.
    pub(super) has_failed: bool,
}

#[derive(Debug)]
pub(super) struct Point {
    pub(super) number: u32,
    pub(super) log: Arc<Mutex<Log>>,
}

#[derive(Debug, Clone)]
pub(super) struct Others(Arc<Mutex<Log>>);

fn point(log: &Arc<Mutex<Log>>, of: &str) -> Point {
    let mut entered = log.lock().unwrap();
    let number = entered.events;
    entered.events += 1;
    if entered.is_slow {
        entered.pending.insert(number);
    }
    entered.lines.push(format!("{of}: event {number}"));
    Point { number, log: Arc::clone(log) }
}

/// The end of a wait for a device whose work is never done.
fn never_done(limit: Duration, is_stopped: &dyn Fn() -> bool) -> Error {
    if is_stopped() { Error::Stopped } else { Error::Hung { seconds: limit.as_secs_f64() } }
}

impl Event for Point {
    fn is_done(&self) -> Result<bool, Error> {
        let mut log = self.log.lock().unwrap();
        let is_done = !log.pending.contains(&self.number);
        if !is_done && !log.is_stuck {
            // Done when it is asked again.
            log.lines.push(format!("asked for {}", self.number));
            log.pending.remove(&self.number);
        }
        Ok(is_done)
    }

    fn wait_unless(&self, limit: Duration, is_stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        let mut log = self.log.lock().unwrap();
        if log.is_stuck && log.pending.contains(&self.number) {
            return Err(never_done(limit, is_stopped));
        }
        log.lines.push(format!("wait for {}", self.number));
        log.pending.remove(&self.number);
        Ok(())
    }

    fn since(&self, earlier: &Self) -> Result<Duration, Error> {
        Ok(Duration::from_nanos(u64::from(self.number - earlier.number)))
    }
}

impl Consumers for Others {
    type Event = Point;

    fn device(&self) -> u32 {
        3
    }

    fn order(&self, stream: ConsumerStream, after: &Point) -> Result<(), Error> {
        let line = format!("stream {} after event {}", stream.raw(), after.number);
        self.0.lock().unwrap().lines.push(line);
        Ok(())
    }

    fn record(&self, stream: ConsumerStream) -> Result<Point, Error> {
        if self.0.lock().unwrap().destroyed.contains(&stream.raw()) {
            let (name, what) = ("CUDA_ERROR_INVALID_HANDLE".to_owned(), String::new());
            return Err(Error::Driver { call: "cuEventRecord", name, what });
        }
        Ok(point(&self.0, &format!("stream {}", stream.raw())))
    }

    fn settle(&self, limit: Duration, is_stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        let mut log = self.0.lock().unwrap();
        log.lines.push("settle".to_owned());
        if log.is_stuck { Err(never_done(limit, is_stopped)) } else { Ok(()) }
    }
}

impl Compute for Recorded {
    fn name(&self) -> &str {
        self.shim.name()
    }

    fn allocate(&mut self, bytes: usize) -> Result<DeviceMemory, Error> {
        self.log.lock().unwrap().lines.push(format!("allocate {bytes}"));
        self.shim.allocate(bytes)
    }

    fn allocate_host(&mut self, bytes: usize) -> Result<HostMemory, Error> {
        self.log.lock().unwrap().lines.push("allocate pinned".to_owned());
        self.shim.allocate_host(bytes)
    }

    fn lock_pages(&mut self, memory: &[u8]) -> Result<PageLock, Error> {
        self.shim.lock_pages(memory)
    }

    fn upload(&mut self, from: &[u8], to: &DeviceMemory, offset: usize) -> Result<(), Error> {
        self.log.lock().unwrap().uploaded += from.len();
        self.shim.upload(from, to, offset)
    }

    fn download(&mut self, from: &DeviceMemory, offset: usize, to: &mut [u8]) -> Result<(), Error> {
        self.shim.download(from, offset, to)
    }

    fn copy(
        &mut self,
        from: &DeviceMemory,
        from_offset: usize,
        to: &DeviceMemory,
        to_offset: usize,
        bytes: usize,
    ) -> Result<(), Error> {
        self.log.lock().unwrap().lines.push(format!("copy {bytes}"));
        self.shim.copy(from, from_offset, to, to_offset, bytes)
    }

    fn fence(&mut self) -> Result<Fence, Error> {
        if self.log.lock().unwrap().has_failed {
            return Err(Error::Hung { seconds: 0.0 });
        }
        Ok(Fence::new(point(&self.log, self.name)))
    }

    fn wait_for_fence(&mut self, fence: &Fence) -> Result<(), Error> {
        let number = fence.point::<Point>().unwrap().number;
        self.log.lock().unwrap().lines.push(format!("{} after event {number}", self.name));
        Ok(())
    }

    fn fill(&mut self, m: &DeviceMemory, offset: usize, n: usize, value: u8) -> Result<(), Error> {
        self.shim.fill(m, offset, n, value)
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), Error> {
        self.shim.launch(launch)
    }

    fn is_done(&mut self) -> Result<bool, Error> {
        self.shim.is_done()
    }

    fn wait_unless(&mut self, limit: Duration, is_stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        if self.log.lock().unwrap().is_stuck {
            return Err(never_done(limit, is_stopped));
        }
        self.shim.wait_unless(limit, is_stopped)
    }
}

impl Streams for Recorded {
    type Event = Point;
    type Consumers = Others;

    fn record(&mut self) -> Result<Point, Error> {
        Ok(point(&self.log, self.name))
    }

    fn wait_for(&mut self, event: &Point) -> Result<(), Error> {
        self.log.lock().unwrap().lines.push(format!("{} after event {}", self.name, event.number));
        Ok(())
    }

    fn consumers(&self) -> Others {
        Others(Arc::clone(&self.log))
    }
}

pub(super) fn recorded() -> (Recorded, Arc<Mutex<Log>>) {
    let log = Arc::new(Mutex::new(Log::default()));
    // Of this copy of the sources; others have other kernels.
    let sources = env!("CARGO_MANIFEST_DIR").replace('/', "-");
    let folder = std::env::temp_dir().join(format!("meetpoint-shim{sources}"));
    let shim = Shim::start(&folder).unwrap();
    (Recorded { shim, log: Arc::clone(&log), name: "own" }, log)
}

impl Recorded {
    /// Another queue of the same device.
    pub(super) fn queue(&self, name: &'static str) -> Self {
        Self { shim: self.shim.queue(), log: Arc::clone(&self.log), name }
    }
}

pub(super) fn lines(log: &Arc<Mutex<Log>>) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap().lines)
}
