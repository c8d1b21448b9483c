//! The thread that hashes the pieces of part files and brings them to the drive, one file after
//! another.

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

/// Bytes that are written at a time; from 2 MiB on buffers are on huge pages.
pub(super) const PIECE_BYTES: usize = 2 << 20;
/// Pieces that are on their way to the drive at once.
const IN_FLIGHT_MAX: usize = 4;
/// Bytes that a file is made longer by ahead of what is written: a write at a file's end is waited
/// for by the kernel, one before it is not.
const AHEAD_BYTES: u64 = 64 << 20;
/// Time that one look at what was written takes at most.
const WAIT: Duration = Duration::from_secs(60);

/// A command to the thread. Pieces belong to the file that was begun last.
pub(super) enum Order {
    /// The next file, empty; `path` is for errors, and `has_failed` says that something of it was
    /// not written, so that no more of it need come.
    Begin { file: File, path: PathBuf, has_failed: Arc<AtomicBool> },
    /// Bytes of it, a whole piece.
    Piece(AlignedBuffer),
    /// Its last bytes, the first `filled` of `rest`. `reply` gets the SHA-256 of all of it, once
    /// it is on the drive, or what failed first.
    End { rest: AlignedBuffer, filled: usize, reply: Sender<io::Result<[u8; 32]>> },
}

/// What the thread works with.
pub(super) struct Drain {
    /// Takes memory back.
    free: Sender<AlignedBuffer>,
    /// Made for the first file.
    engine: Option<Box<dyn Engine>>,
    done: Vec<Completion>,
    open: Option<Open>,
}

/// The file under way.
struct Open {
    file: File,
    hasher: Sha256,
    /// Bytes of the pieces so far.
    offset: u64,
    way: Way,
    failed: Option<io::Error>,
    has_failed: Arc<AtomicBool>,
}

/// How pieces get to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Past the page cache; the file has been made so long.
    Direct { file: FileId, length: u64 },
    /// As any file is written.
    Plain,
}

impl Drain {
    /// `free` takes the memory of what is written.
    pub(super) fn new(free: Sender<AlignedBuffer>) -> Self {
        Self { free, engine: None, done: Vec::new(), open: None }
    }

    /// Follows orders until nobody gives any more.
    pub(super) fn run(mut self, orders: &Receiver<Order>) {
        loop {
            let order = match orders.try_recv() {
                Ok(order) => order,
                Err(TryRecvError::Disconnected) => break,
                // Who gathers may wait for the memory of what is on its way.
                Err(TryRecvError::Empty) if self.in_flight() > 0 => {
                    self.reap();
                    continue;
                }
                Err(TryRecvError::Empty) => match orders.recv() {
                    Ok(order) => order,
                    Err(_) => break,
                },
            };
            match order {
                Order::Begin { file, path, has_failed } => self.begin(file, &path, has_failed),
                Order::Piece(piece) => self.write(piece),
                Order::End { rest, filled, reply } => {
                    let ended = self.end(&rest.as_slice()[..filled]);
                    self.give_back(rest);
                    // Who does not want to know has given the file up.
                    let _ = reply.send(ended);
                }
            }
        }
        self.settle();
    }

    fn begin(&mut self, file: File, path: &Path, has_failed: Arc<AtomicBool>) {
        self.settle();
        let (way, failed) = match self.way(&file, path) {
            Ok(way) => (way, None),
            Err(error) => (Way::Plain, Some(error)),
        };
        has_failed.store(failed.is_some(), Ordering::Relaxed);
        let hasher = Sha256::new();
        self.open = Some(Open { file, hasher, offset: 0, way, failed, has_failed });
    }

    /// How a file is written; makes the engine where there is none.
    fn way(&mut self, file: &File, path: &Path) -> io::Result<Way> {
        let engine = match &mut self.engine {
            Some(engine) => engine,
            none => {
                none.insert(open_engine(EngineKind::Auto, IN_FLIGHT_MAX).map_err(as_io)?.engine)
            }
        };
        let name = path.display().to_string();
        let id = engine.adopt(file.try_clone()?, &name).map_err(as_io)?;
        if engine.is_direct(id) {
            return Ok(Way::Direct { file: id, length: 0 });
        }
        engine.close(id);
        Ok(Way::Plain)
    }

    /// Hashes a piece and writes it; of a file that failed it is left out.
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
        let Way::Direct { file, length } = &mut open.way else {
            let written = open.file.write_all_at(piece.as_slice(), offset);
            self.give_back(piece);
            return written.unwrap_or_else(|error| self.fail(error));
        };
        if *length < open.offset {
            // Where it cannot be made longer, writing it does.
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

    /// Writes the last bytes and brings all of the file to the drive.
    fn end(&mut self, rest: &[u8]) -> io::Result<[u8; 32]> {
        self.settle();
        let Open { file, mut hasher, offset, way, failed, .. } =
            self.open.take().expect("a file is ended once, after it was begun");
        if let (Way::Direct { file, .. }, Some(engine)) = (way, &mut self.engine) {
            engine.close(file);
        }
        if let Some(error) = failed {
            return Err(error);
        }
        hasher.update(rest);
        file.write_all_at(rest, offset)?;
        if matches!(way, Way::Direct { .. }) {
            file.set_len(offset + rest.len() as u64)?;
        }
        file.sync_all()?;
        Ok(hasher.finalize().into())
    }

    /// Takes back what has been written, at least one piece.
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
            // It ends with what is on its way, whose memory does not come back.
            for _ in 0..self.in_flight() {
                self.give_back(AlignedBuffer::zeroed(PIECE_BYTES));
            }
            self.engine = None;
            self.fail(as_io(error));
        }
    }

    /// Waits until nothing is on its way.
    fn settle(&mut self) {
        while self.in_flight() > 0 {
            self.reap();
        }
    }

    fn in_flight(&self) -> usize {
        self.engine.as_ref().map_or(0, |engine| engine.in_flight())
    }

    fn give_back(&self, buffer: AlignedBuffer) {
        // Who gathers may be gone.
        let _ = self.free.send(buffer);
    }

    /// Keeps the first failure of the file under way.
    fn fail(&mut self, error: io::Error) {
        if let Some(open) = &mut self.open {
            open.has_failed.store(true, Ordering::Relaxed);
            open.failed.get_or_insert(error);
        }
    }
}

/// The cause alone: who asked names the file.
fn as_io(error: StorageError) -> io::Error {
    match error {
        StorageError::Open { source, .. }
        | StorageError::Length { source, .. }
        | StorageError::Io { source, .. } => source,
        other => io::Error::other(other),
    }
}
