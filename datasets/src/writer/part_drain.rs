//! The thread that hashes and writes the pieces of part files, one file after another.

use meetpoint_storage::{
    AlignedBuffer, Completion, Engine, EngineKind, Error as StorageError, FileId, Request,
    RequestKind, open_engine,
};
use rustix::fs::{FallocateFlags, fallocate};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

/// Bytes per write; buffers of 2 MiB or more are on huge pages.
pub(super) const PIECE_BYTES: usize = 2 << 20;
/// Maximum number of writes in flight.
const IN_FLIGHT_MAX: usize = 4;
/// Bytes by which a file is extended ahead of the writes: the kernel blocks on a write that extends
/// a file, but not on one inside it.
const AHEAD_BYTES: u64 = 64 << 20;
/// Maximum time to wait for completed writes.
const WAIT: Duration = Duration::from_secs(60);

/// A command to the thread. Pieces belong to the file that was started last.
pub(super) enum DrainCommand {
    /// Starts the next, empty file; `path` is for errors, and the thread sets `has_failed` if a
    /// write failed, after which no more pieces are needed.
    Begin { file: File, path: PathBuf, has_failed: Arc<AtomicBool> },
    /// A full piece of the file.
    Piece(AlignedBuffer),
    /// The last bytes of the file, the first `filled` of `rest`. `reply` receives the SHA-256 of
    /// the file once it is synced, or the first error.
    End { rest: AlignedBuffer, filled: usize, reply: Sender<io::Result<[u8; 32]>> },
}

/// The state of the thread.
pub(super) struct Drain {
    /// Returns buffers to the writer.
    free: Sender<AlignedBuffer>,
    /// Created for the first file.
    engine: Option<Box<dyn Engine>>,
    done: Vec<Completion>,
    open: Option<Open>,
}

/// The current file.
struct Open {
    file: File,
    hasher: Sha256,
    /// Bytes of the pieces so far.
    offset: u64,
    method: WriteMethod,
    failed: Option<io::Error>,
    has_failed: Arc<AtomicBool>,
}

/// How pieces are written to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteMethod {
    /// Bypassing the page cache; `length` is the length to which the file was extended.
    Direct { file: FileId, length: u64 },
    /// Ordinary buffered writes.
    Plain,
}

impl Drain {
    /// `free` receives the buffers of completed writes.
    pub(super) fn new(free: Sender<AlignedBuffer>) -> Self {
        Self { free, engine: None, done: Vec::new(), open: None }
    }

    /// Executes commands until the sender is dropped.
    pub(super) fn run(mut self, commands: &Receiver<DrainCommand>) {
        loop {
            let command = match commands.try_recv() {
                Ok(command) => command,
                Err(TryRecvError::Disconnected) => break,
                // The writer may be waiting for a buffer in flight.
                Err(TryRecvError::Empty) if self.in_flight() > 0 => {
                    self.reap();
                    continue;
                }
                Err(TryRecvError::Empty) => match commands.recv() {
                    Ok(command) => command,
                    Err(_) => break,
                },
            };
            match command {
                DrainCommand::Begin { file, path, has_failed } => {
                    self.begin(file, &path, has_failed)
                }
                DrainCommand::Piece(piece) => self.write(piece),
                DrainCommand::End { rest, filled, reply } => {
                    let ended = self.end(&rest.as_slice()[..filled]);
                    self.give_back(rest);
                    // If the receiver is gone, the writer abandoned the file.
                    let _ = reply.send(ended);
                }
            }
        }
        self.settle();
    }

    fn begin(&mut self, file: File, path: &Path, has_failed: Arc<AtomicBool>) {
        self.settle();
        let (method, failed) = match self.method(&file, path) {
            Ok(method) => (method, None),
            Err(error) => (WriteMethod::Plain, Some(error)),
        };
        has_failed.store(failed.is_some(), Ordering::Relaxed);
        let hasher = Sha256::new();
        self.open = Some(Open { file, hasher, offset: 0, method, failed, has_failed });
    }

    /// Decides how a file is written; creates the engine if there is none.
    fn method(&mut self, file: &File, path: &Path) -> io::Result<WriteMethod> {
        let engine = match &mut self.engine {
            Some(engine) => engine,
            none => {
                none.insert(open_engine(EngineKind::Auto, IN_FLIGHT_MAX).map_err(as_io)?.engine)
            }
        };
        let name = path.display().to_string();
        let id = engine.adopt(file.try_clone()?, &name).map_err(as_io)?;
        if engine.is_direct(id) {
            return Ok(WriteMethod::Direct { file: id, length: 0 });
        }
        engine.close(id);
        Ok(WriteMethod::Plain)
    }

    /// Hashes and writes a piece; does nothing if the file failed.
    fn write(&mut self, piece: AlignedBuffer) {
        while self.in_flight() >= IN_FLIGHT_MAX {
            self.reap();
        }
        let Some(open) = self.open.as_mut().filter(|open| open.failed.is_none()) else {
            return self.give_back(piece);
        };
        open.hasher.update(piece.as_slice());
        let offset = open.offset;
        open.offset += PIECE_BYTES as u64;
        let WriteMethod::Direct { file, length } = &mut open.method else {
            let written = open.file.write_all_at(piece.as_slice(), offset);
            self.give_back(piece);
            return written.unwrap_or_else(|error| self.fail(error));
        };
        if *length < open.offset {
            // If the file cannot be extended, the write extends it.
            let _ = fallocate(&open.file, FallocateFlags::empty(), offset, AHEAD_BYTES);
            *length = offset + AHEAD_BYTES;
        }
        let (file, kind) = (*file, RequestKind::Write);
        let request = Request { token: 0, file, kind, offset, bytes: PIECE_BYTES, buffer: piece };
        let engine = self.engine.as_mut().expect("it has the file");
        if let Err(refused) = engine.submit(request) {
            self.give_back(refused.request.buffer);
            self.fail(as_io(refused.error));
        }
    }

    /// Writes the last bytes and syncs the file.
    fn end(&mut self, rest: &[u8]) -> io::Result<[u8; 32]> {
        self.settle();
        let Open { file, mut hasher, offset, method, failed, .. } =
            self.open.take().expect("a file is ended once, after it was begun");
        if let (WriteMethod::Direct { file, .. }, Some(engine)) = (method, &mut self.engine) {
            engine.close(file);
        }
        if let Some(error) = failed {
            return Err(error);
        }
        hasher.update(rest);
        file.write_all_at(rest, offset)?;
        if matches!(method, WriteMethod::Direct { .. }) {
            file.set_len(offset + rest.len() as u64)?;
        }
        file.sync_all()?;
        Ok(hasher.finalize().into())
    }

    /// Reclaims the buffers of completed writes, at least one.
    fn reap(&mut self) {
        let engine = self.engine.as_mut().expect("pieces are on their way");
        let waited = engine.wait(WAIT, &mut self.done);
        for completion in std::mem::take(&mut self.done) {
            self.give_back(completion.buffer);
            if let Err(error) = completion.result {
                self.fail(as_io(error));
            }
        }
        if let Err(error) = waited {
            // The engine is dropped with its writes in flight, whose buffers are lost.
            for _ in 0..self.in_flight() {
                self.give_back(AlignedBuffer::zeroed(PIECE_BYTES));
            }
            self.engine = None;
            self.fail(as_io(error));
        }
    }

    /// Waits until no write is in flight.
    fn settle(&mut self) {
        while self.in_flight() > 0 {
            self.reap();
        }
    }

    fn in_flight(&self) -> usize {
        self.engine.as_ref().map_or(0, |engine| engine.in_flight())
    }

    fn give_back(&self, buffer: AlignedBuffer) {
        // The writer may already be gone.
        let _ = self.free.send(buffer);
    }

    /// Records the first error of the current file.
    fn fail(&mut self, error: io::Error) {
        if let Some(open) = &mut self.open {
            open.has_failed.store(true, Ordering::Relaxed);
            open.failed.get_or_insert(error);
        }
    }
}

/// Only the cause, since the caller names the file.
fn as_io(error: StorageError) -> io::Error {
    match error {
        StorageError::Open { source, .. }
        | StorageError::Length { source, .. }
        | StorageError::Io { source, .. } => source,
        other => io::Error::other(other),
    }
}
