//! Reads and writes through io_uring.
//!
//! Parts: `ring` makes all system calls, [`UringEngine`] manages the requests.

pub(crate) mod ring;

use crate::engine::{WAIT_MAX, clamp_depth};
use crate::lender::BufferAllocator;
use crate::open::{FileTable, Opened};
use crate::slots::Slots;
use crate::transfer::{Step, Work};
use crate::{
    Access, AlignedBuffer, Completion, Counters, Engine, EngineNote, Error, FileId, Limits,
    RefusedRequest, Request, RingRefusal,
};
use ring::Ring;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Default bytes of buffers that an engine registers. The usual limit of locked memory is 8 MiB for
/// all processes of a user together.
pub const REGISTERED_BYTES: usize = 4 << 20;

/// Submission is deferred while the kernel has this many times more requests than are queued, which
/// saves system calls. A wait always submits.
const QUEUED_SHARE: usize = 4;

/// Longest time that dropping an engine waits for the kernel to release buffers.
pub const DROP_WAIT: Duration = Duration::from_secs(2);

/// An engine over one io_uring.
///
/// If it is dropped with requests in flight, it cancels them and waits up to [`DROP_WAIT`] for the
/// kernel to release their buffers. Buffers that are not released by then are leaked, because the
/// kernel may still write to them.
pub struct UringEngine {
    ring: Ring,
    depth: usize,
    files: FileTable<File>,
    /// Requests submitted to the kernel, by the number that identifies them.
    slots: Slots<Work<File>>,
    /// Requests that completed without a system call.
    ended: VecDeque<Completion>,
    buffers: BufferAllocator,
    registered_bytes_max: usize,
    books: Counters,
    notes: Vec<EngineNote>,
}

impl UringEngine {
    /// Sets up a ring for `depth` requests in flight and [`REGISTERED_BYTES`] of buffers.
    pub fn new(depth: usize) -> Result<Self, RingRefusal> {
        Self::with_registered(depth, REGISTERED_BYTES)
    }

    /// Sets up a ring for `depth` requests in flight. Of the buffers that it lends, which are
    /// allocated when [`Engine::buffer`] is first called, it registers up to
    /// `registered_bytes_max`.
    pub fn with_registered(depth: usize, registered_bytes_max: usize) -> Result<Self, RingRefusal> {
        let depth = clamp_depth(depth);
        let ring = Ring::new(depth)?;
        Ok(Self {
            ring,
            depth,
            files: FileTable::default(),
            slots: Slots::default(),
            ended: VecDeque::new(),
            buffers: BufferAllocator::default(),
            registered_bytes_max,
            books: Counters::default(),
            notes: Vec::new(),
        })
    }

    /// The features that the kernel reports and that reports show.
    pub(crate) fn features(&self) -> Vec<&'static str> {
        self.ring.features()
    }

    /// Hands the next piece of a request to the ring.
    fn push(&mut self, slot: u64) {
        let work = self.slots.get(slot);
        let registered = work.buffer.is_registered_in(self.buffers.arena());
        self.ring.push(work, registered, slot);
    }

    /// Collects the requests that the kernel has completed.
    fn reap(&mut self, out: &mut Vec<Completion>) {
        while let Some((slot, answer)) = self.ring.pop() {
            match self.slots.get_mut(slot).step(answer) {
                Step::More => self.push(slot),
                Step::Done(result) => {
                    let work = self.slots.remove(slot);
                    out.push(work.finish(result, &mut self.books));
                }
            }
        }
    }

    /// Submits the queued entries to the kernel.
    fn flush(&mut self) {
        // Entries that are not submitted now are submitted by the next wait, which reports errors.
        let _ = self.ring.flush();
    }
}

impl Engine for UringEngine {
    fn name(&self) -> &'static str {
        "io_uring"
    }

    fn limits(&self) -> Limits {
        Limits { depth: self.depth }
    }

    fn open(&mut self, path: &Path, access: Access) -> Result<FileId, Error> {
        Ok(self.files.add(Opened::open(path, access)?))
    }

    fn adopt(&mut self, file: File, name: &str) -> Result<FileId, Error> {
        Ok(self.files.add(Opened::adopt(file, name)?))
    }

    fn close(&mut self, file: FileId) {
        self.files.close(file);
    }

    fn is_direct(&self, file: FileId) -> bool {
        self.files.is_direct(file)
    }

    fn file_bytes(&self, file: FileId) -> Result<u64, Error> {
        self.files.get(file)?.bytes()
    }

    fn submit(&mut self, request: Request) -> Result<(), Box<RefusedRequest>> {
        let work = Work::accept(request, &self.files, self.in_flight(), self.depth)?;
        if work.transfer.is_empty() {
            self.ended.push_back(work.finish(Ok(0), &mut self.books));
            return Ok(());
        }
        let slot = self.slots.insert(work);
        self.push(slot);
        if self.ring.queued() * QUEUED_SHARE > self.slots.len() {
            self.flush();
        }
        Ok(())
    }

    fn wait(&mut self, timeout: Duration, out: &mut Vec<Completion>) -> Result<usize, Error> {
        let before = out.len();
        out.extend(self.ended.drain(..));
        let deadline = Instant::now() + timeout.min(WAIT_MAX);
        let mut last = false;
        loop {
            self.reap(out);
            if out.len() > before || self.slots.len() == 0 || last {
                if self.ring.queued() > 0 {
                    self.flush();
                }
                return Ok(out.len() - before);
            }
            let remaining = deadline.saturating_duration_since(Instant::now());
            last = remaining.is_zero();
            self.ring.enter(remaining).map_err(|error| broken(&error))?;
        }
    }

    fn in_flight(&self) -> usize {
        self.slots.len() + self.ended.len()
    }

    fn counters(&self) -> Counters {
        self.books
    }

    fn buffer(&mut self, bytes: usize) -> AlignedBuffer {
        let Self { ring, notes, registered_bytes_max, .. } = self;
        self.buffers.lend(bytes, self.depth, |start, capacity| {
            let bytes = capacity.min(*registered_bytes_max);
            if bytes == 0 {
                return 0;
            }
            match ring.register(start, bytes) {
                Ok(()) => bytes,
                Err(error) => {
                    notes.push(EngineNote::RegisteredBuffers { error: error.into() });
                    0
                }
            }
        })
    }

    fn notes(&self) -> &[EngineNote] {
        &self.notes
    }
}

impl Drop for UringEngine {
    fn drop(&mut self) {
        self.ring.abandon(&mut self.slots);
    }
}

pub(crate) fn broken(error: &io::Error) -> Error {
    let reason = format!("io_uring_enter failed: {error}");
    Error::Unavailable { engine: "io_uring", reason, remedy: None }
}
