//! Blocking reads and writes on a few threads.

use crate::engine::{WAIT_MAX, clamp_depth};
use crate::lender::BufferAllocator;
use crate::open::{FileTable, Opened};
use crate::transfer::{Step, Work};
use crate::{
    Access, AlignedBuffer, Completion, Counters, Engine, Error, FileId, Limits, RefusedRequest,
    Request, RequestKind,
};
use crossbeam::channel::{Receiver, RecvTimeoutError, Sender, bounded};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Most threads of one engine: enough to keep a drive busy, few enough to be cheap.
pub const THREADS_MAX: usize = 8;

type CompletedRead = (Work<File>, Result<usize, Error>);

/// An engine of blocking calls: works everywhere, but occupies a thread per transfer.
///
/// Dropping it waits for the transfers in progress, not for those in its queue.
pub struct ThreadsEngine {
    depth: usize,
    in_flight: usize,
    files: FileTable<File>,
    buffers: BufferAllocator,
    books: Counters,
    /// `None` only while being dropped.
    work: Option<Sender<Work<File>>>,
    ended: Receiver<CompletedRead>,
    closing: Arc<AtomicBool>,
    workers: Vec<JoinHandle<()>>,
}

impl ThreadsEngine {
    /// Starts up to [`THREADS_MAX`] threads for `depth` requests in flight.
    pub fn new(depth: usize) -> Result<Self, Error> {
        let depth = clamp_depth(depth);
        let (work, to_do) = bounded::<Work<File>>(depth);
        let (done, ended) = bounded(depth);
        let closing = Arc::new(AtomicBool::new(false));
        let mut workers = Vec::new();
        for index in 0..depth.min(THREADS_MAX) {
            let (to_do, done, closing) = (to_do.clone(), done.clone(), Arc::clone(&closing));
            let worker = std::thread::Builder::new()
                .name(format!("storage-{index}"))
                .spawn(move || serve(&to_do, &done, &closing));
            match worker {
                Ok(worker) => workers.push(worker),
                // The engine works with a single thread.
                Err(_) if index > 0 => break,
                Err(source) => {
                    let reason = format!("no thread could be started: {source}");
                    let remedy = Some("raise the limit of threads (ulimit -u)".into());
                    return Err(Error::Unavailable { engine: "threads", reason, remedy });
                }
            }
        }
        Ok(Self {
            depth,
            in_flight: 0,
            files: FileTable::default(),
            buffers: BufferAllocator::default(),
            books: Counters::default(),
            work: Some(work),
            ended,
            closing,
            workers,
        })
    }

    fn take(&mut self, (work, result): CompletedRead) -> Completion {
        self.in_flight -= 1;
        work.finish(result, &mut self.books)
    }
}

/// Main loop of a thread, until the work queue closes.
fn serve(to_do: &Receiver<Work<File>>, done: &Sender<CompletedRead>, closing: &AtomicBool) {
    for mut work in to_do {
        if closing.load(Ordering::Acquire) {
            return;
        }
        let result = carry_out(&mut work);
        if done.send((work, result)).is_err() {
            return;
        }
    }
}

/// Transfers all bytes of a request, blocking as long as it takes.
fn carry_out(work: &mut Work<File>) -> Result<usize, Error> {
    if work.transfer.is_empty() {
        return Ok(0);
    }
    loop {
        let (kind, piece) = (work.kind(), work.transfer.next());
        let range = piece.at..piece.at + piece.bytes;
        let answer = move_piece(&work.file.body, kind, &mut work.buffer, range, piece.offset);
        if let Step::Done(result) = work.step(answer) {
            return result;
        }
    }
}

/// One blocking call.
pub(crate) fn move_piece(
    file: &File,
    kind: RequestKind,
    buffer: &mut AlignedBuffer,
    range: Range<usize>,
    offset: u64,
) -> io::Result<usize> {
    let moved = match kind {
        RequestKind::Read => rustix::io::pread(file, &mut buffer.as_mut_slice()[range], offset),
        RequestKind::Write => rustix::io::pwrite(file, &buffer.as_slice()[range], offset),
        RequestKind::Sync => rustix::fs::fdatasync(file).map(|()| 0),
    };
    moved.map_err(Into::into)
}

impl Engine for ThreadsEngine {
    fn name(&self) -> &'static str {
        "threads"
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
        let work = Work::accept(request, &self.files, self.in_flight, self.depth)?;
        let sender = self.work.as_ref().expect("the channel is open until the engine is dropped");
        sender.try_send(work).expect("the channel has room: requests are capped at its size");
        self.in_flight += 1;
        Ok(())
    }

    fn wait(&mut self, timeout: Duration, out: &mut Vec<Completion>) -> Result<usize, Error> {
        if self.in_flight == 0 {
            return Ok(0);
        }
        let first = match self.ended.recv_timeout(timeout.min(WAIT_MAX)) {
            Ok(ended) => ended,
            Err(RecvTimeoutError::Timeout) => return Ok(0),
            Err(RecvTimeoutError::Disconnected) => {
                let reason = "all of its threads have ended".to_owned();
                return Err(Error::Unavailable { engine: "threads", reason, remedy: None });
            }
        };
        let mut next = Some(first);
        let before = out.len();
        while let Some(ended) = next {
            let completion = self.take(ended);
            out.push(completion);
            next = self.ended.try_recv().ok();
        }
        Ok(out.len() - before)
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn counters(&self) -> Counters {
        self.books
    }

    fn buffer(&mut self, bytes: usize) -> AlignedBuffer {
        self.buffers.lend(bytes, self.depth, |_, _| 0)
    }
}

impl Drop for ThreadsEngine {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        self.work = None;
        for worker in self.workers.drain(..) {
            // The panic of a worker was already reported.
            let _ = worker.join();
        }
    }
}
