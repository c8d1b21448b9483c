//! The contract of a storage engine; one test suite runs on all of them.

use crate::{AlignedBuffer, EngineNote, Error};
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
    /// SelectedEngine by the caller, returned in the completion.
    pub token: u64,
    /// File.
    pub file: FileId,
    /// What to do.
    pub kind: RequestKind,
    /// First byte in the file.
    pub offset: u64,
    /// Bytes to transfer.
    pub bytes: usize,
    /// Memory, returned in the completion.
    pub buffer: AlignedBuffer,
}

/// A request that was refused.
#[derive(Debug)]
pub struct RefusedRequest {
    /// The request, returned to the caller.
    pub request: Request,
    /// The reason: [`Error::QueueFull`] when [`Limits::depth`] requests are in flight.
    pub error: Error,
}

/// The result of a request. A short read is an error, never a success with fewer bytes.
#[derive(Debug)]
pub struct Completion {
    /// The request's.
    pub token: u64,
    /// The request's.
    pub buffer: AlignedBuffer,
    /// Where in the buffer the range begins.
    pub start: usize,
    /// Bytes transferred (the request's `bytes`), or why not.
    pub result: Result<usize, Error>,
}

/// Most requests that an engine keeps in flight.
pub const DEPTH_MAX: usize = 1024;

/// Longest time that one call of [`Engine::wait`] waits, whatever its argument.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(3600);

/// The depth of an engine for which `depth` is requested.
pub(crate) fn clamp_depth(depth: usize) -> usize {
    depth.clamp(1, DEPTH_MAX)
}

/// What an engine can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Most requests in flight.
    pub depth: usize,
}

/// What an engine has done since it was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Completed reads.
    pub reads: u64,
    /// Bytes requested by completed reads.
    pub bytes_read: u64,
    /// Bytes transferred by completed reads, including the rest of partly requested blocks.
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

/// Reads and writes blocks. Belongs to one thread at a time.
pub trait Engine: Send {
    /// Name in reports: `io_uring`, `threads`, `memory`, …
    fn name(&self) -> &'static str;
    /// What it can do.
    fn limits(&self) -> Limits;
    /// Opens a file, with O_DIRECT if the file system supports it.
    fn open(&mut self, path: &Path, access: Access) -> Result<FileId, Error>;
    /// Adopts an open file; errors refer to it by `name`.
    fn adopt(&mut self, file: std::fs::File, name: &str) -> Result<FileId, Error>;
    /// Closes a file. Requests in flight keep it open until they complete. Its id may be reused for
    /// a file that is opened later.
    fn close(&mut self, file: FileId);
    /// Whether a file is read and written directly (O_DIRECT).
    fn is_direct(&self, file: FileId) -> bool;
    /// Length of a file in bytes.
    fn file_bytes(&self, file: FileId) -> Result<u64, Error>;
    /// Starts a request. While many are in flight, an engine may submit it together with the next
    /// ones, or at the next [`Engine::wait`].
    fn submit(&mut self, request: Request) -> Result<(), Box<RefusedRequest>>;
    /// Waits for at least one completion, at most for `timeout` and an hour. Appends the
    /// completions to `out` and returns their number: 0 after the timeout or when nothing is in
    /// flight.
    fn wait(&mut self, timeout: Duration, out: &mut Vec<Completion>) -> Result<usize, Error>;
    /// Requests in flight.
    fn in_flight(&self) -> usize;
    /// The counters since the engine was created.
    fn counters(&self) -> Counters;
    /// A buffer of at least `bytes` that is the cheapest for this engine: on huge pages and
    /// registered if possible. Its content is arbitrary. Dropping it returns it to the engine,
    /// which reserves up to [`crate::ARENA_BYTES_MAX`] for such buffers.
    fn buffer(&mut self, bytes: usize) -> AlignedBuffer {
        AlignedBuffer::zeroed(bytes)
    }
    /// Features that are not available to the engine, with reasons.
    fn notes(&self) -> &[EngineNote] {
        &[]
    }
}
