//! The contract of a storage engine; one test suite runs on all of them.

use crate::{AlignedBuffer, Error};
use std::path::Path;
use std::time::Duration;

/// A file that an engine has open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId(pub u32);

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Existing, for reading.
    Read,
    /// Existing, for reading and writing.
    ReadWrite,
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// Fill the first `bytes` of the buffer.
    Read,
    /// Write the first `bytes` of the buffer.
    Write,
    /// Make earlier completed writes durable (fdatasync); no bytes.
    Sync,
}

/// One operation. Offsets need no alignment: an engine that reads directly reads the blocks around
/// the range and says in [`Completion::start`] where in the buffer the range begins, so a buffer
/// must hold `bytes` plus two blocks. Direct writes need aligned offset and length.
#[derive(Debug)]
pub struct Request {
    /// Chosen by the caller, comes back in the completion.
    pub token: u64,
    /// File.
    pub file: FileId,
    /// What to do.
    pub kind: RequestKind,
    /// First byte in the file.
    pub offset: u64,
    /// Bytes to move.
    pub bytes: usize,
    /// Memory, given back in the completion.
    pub buffer: AlignedBuffer,
}

/// A request that was not taken.
#[derive(Debug)]
pub struct Refused {
    /// Given back.
    pub request: Request,
    /// Why: [`Error::QueueFull`] when [`Limits::depth`] requests are in flight.
    pub error: Error,
}

/// The end of a request. A short read is an error, never a short success.
#[derive(Debug)]
pub struct Completion {
    /// The request's.
    pub token: u64,
    /// The request's.
    pub buffer: AlignedBuffer,
    /// Where in the buffer the range begins.
    pub start: usize,
    /// Bytes moved (the request's `bytes`), or why not.
    pub result: Result<usize, Error>,
}

/// Most requests that an engine keeps in flight.
pub const DEPTH_MAX: usize = 1024;

/// Longest time that one call of [`Engine::wait`] waits, whatever its argument.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(3600);

/// The depth that an engine gets when `depth` is asked for.
pub(crate) fn clamp_depth(depth: usize) -> usize {
    depth.clamp(1, DEPTH_MAX)
}

/// What an engine can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Most requests in flight.
    pub depth: usize,
}

/// What an engine has done since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Completed reads.
    pub reads: u64,
    /// Bytes asked for by completed reads.
    pub bytes_read: u64,
    /// Bytes moved by completed reads, the blocks around included.
    pub bytes_read_device: u64,
    /// Completed writes.
    pub writes: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Short or interrupted transfers that were continued.
    pub resumed: u64,
}

/// Moves blocks. Belongs to one thread at a time.
pub trait Engine: Send {
    /// Name in reports: `io_uring`, `threads`, `memory`, …
    fn name(&self) -> &'static str;
    /// What it can do.
    fn limits(&self) -> Limits;
    /// Opens a file, with O_DIRECT where the file system takes it.
    fn open(&mut self, path: &Path, access: Access) -> Result<FileId, Error>;
    /// Takes over an open file; `name` stands for it in errors.
    fn adopt(&mut self, file: std::fs::File, name: &str) -> Result<FileId, Error>;
    /// Closes a file. Requests in flight keep it open until they end; its number may be given
    /// to a file that is opened later.
    fn close(&mut self, file: FileId);
    /// Whether a file is read and written directly (O_DIRECT).
    fn is_direct(&self, file: FileId) -> bool;
    /// Length of a file in bytes.
    fn file_bytes(&self, file: FileId) -> Result<u64, Error>;
    /// Starts a request. While many are in flight, it may start together with the next few, or
    /// with the next wait.
    fn submit(&mut self, request: Request) -> Result<(), Box<Refused>>;
    /// Waits for at least one completion or until `timeout`, an hour at most; appends what is there
    /// to `out` and returns how many. 0 when nothing is in flight.
    fn wait(&mut self, timeout: Duration, out: &mut Vec<Completion>) -> Result<usize, Error>;
    /// Requests in flight.
    fn in_flight(&self) -> usize;
    /// What was done.
    fn counters(&self) -> Counters;
    /// A buffer of at least `bytes` that this engine moves bytes to and from most cheaply, on huge
    /// pages and registered if that is possible; what is in it is arbitrary. Dropping it gives
    /// it back. Engines keep up to [`crate::ARENA_BYTES_MAX`] for them.
    fn buffer(&mut self, bytes: usize) -> AlignedBuffer {
        AlignedBuffer::zeroed(bytes)
    }
    /// What it had to do without, and why; to be printed.
    fn notes(&self) -> &[String] {
        &[]
    }
}
