//! An in-memory engine for tests of callers: any order of completions, optionally with the
//! alignment rules of direct I/O.

use crate::engine::clamp_depth;
use crate::open::{FileTable, Opened, PIECE_BYTES_MAX};
use crate::transfer::{Step, Work};
use crate::{
    Access, BLOCK_BYTES, Completion, Counters, Engine, Error, FileId, Limits, RefusedRequest,
    Request, RequestKind, threads,
};
use meetpoint_format::split_mix::SplitMix64;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Maximum size of a file in memory; a larger write fails as on a file system with this limit.
pub const FILE_BYTES_MAX: u64 = 1 << 30;

/// The bytes of a file in memory.
type Bytes = Arc<Mutex<Vec<u8>>>;

/// Files in memory by name; clones share the same files.
#[derive(Debug, Clone, Default)]
pub struct MemoryFiles {
    files: Arc<Mutex<BTreeMap<PathBuf, Bytes>>>,
}

impl MemoryFiles {
    /// Creates a file, or replaces it for engines that open it later.
    pub fn put(&self, path: impl Into<PathBuf>, bytes: Vec<u8>) {
        let bytes = Arc::new(Mutex::new(bytes));
        self.files.lock().unwrap_or_else(PoisonError::into_inner).insert(path.into(), bytes);
    }

    /// The current content of a file.
    pub fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        let bytes = self.get(path)?;
        Some(lock(&bytes).clone())
    }

    fn get(&self, path: &Path) -> Option<Bytes> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }
}

/// The order in which requests complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The order of submission, all together.
    Submission,
    /// A random order, a few at a time; the same for the same seed.
    Shuffled(u64),
}

/// An engine whose files are [`MemoryFiles`]. An adopted file is still read from the file system.
pub struct MemoryEngine {
    depth: usize,
    direct: bool,
    names: MemoryFiles,
    files: FileTable<Body>,
    waiting: Vec<Work<Body>>,
    random: Option<SplitMix64>,
    books: Counters,
}

/// Where the bytes of a file are.
#[derive(Debug)]
enum Body {
    Memory { bytes: Bytes, writable: bool },
    File(File),
}

impl MemoryEngine {
    /// An engine for `depth` requests in flight over `files`; with `direct`, requests follow the
    /// alignment rules of direct I/O.
    pub fn new(files: MemoryFiles, depth: usize, direct: bool, order: Order) -> Self {
        let random = match order {
            Order::Submission => None,
            Order::Shuffled(seed) => Some(SplitMix64::new(seed)),
        };
        Self {
            depth: clamp_depth(depth),
            direct,
            names: files,
            files: FileTable::default(),
            waiting: Vec::new(),
            random,
            books: Counters::default(),
        }
    }

    /// Removes the request that completes next.
    fn next(&mut self) -> Work<Body> {
        match &mut self.random {
            None => self.waiting.remove(0),
            Some(random) => {
                let place = random.below(self.waiting.len() as u64) as usize;
                self.waiting.remove(place)
            }
        }
    }
}

/// Transfers all bytes of a request.
fn carry_out(work: &mut Work<Body>) -> Result<usize, Error> {
    if work.transfer.is_empty() {
        return Ok(0);
    }
    loop {
        let piece = work.transfer.next();
        let range = piece.at..piece.at + piece.bytes;
        let file = Arc::clone(&work.file);
        let answer = match (&file.body, work.kind()) {
            (Body::File(file), kind) => {
                threads::move_piece(file, kind, &mut work.buffer, range, piece.offset)
            }
            (Body::Memory { bytes, .. }, RequestKind::Read) => {
                let bytes = lock(bytes);
                let there = bytes.get(piece.offset as usize..).unwrap_or_default();
                let moved = there.len().min(piece.bytes);
                work.buffer.as_mut_slice()[piece.at..piece.at + moved]
                    .copy_from_slice(&there[..moved]);
                Ok(moved)
            }
            (Body::Memory { writable: false, .. }, RequestKind::Write) => {
                Err(io::Error::from_raw_os_error(libc::EBADF))
            }
            (Body::Memory { .. }, RequestKind::Write)
                if piece.offset + piece.bytes as u64 > FILE_BYTES_MAX =>
            {
                Err(io::Error::from_raw_os_error(libc::EFBIG))
            }
            (Body::Memory { bytes, .. }, RequestKind::Write) => {
                let mut bytes = lock(bytes);
                let (begin, end) = (piece.offset as usize, piece.offset as usize + piece.bytes);
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[begin..end].copy_from_slice(&work.buffer.as_slice()[range]);
                Ok(piece.bytes)
            }
            (Body::Memory { .. }, RequestKind::Sync) => Ok(0),
        };
        if let Step::Done(result) = work.step(answer) {
            return result;
        }
    }
}

fn lock(bytes: &Bytes) -> std::sync::MutexGuard<'_, Vec<u8>> {
    bytes.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine for MemoryEngine {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn limits(&self) -> Limits {
        Limits { depth: self.depth }
    }

    fn open(&mut self, path: &Path, access: Access) -> Result<FileId, Error> {
        let Some(bytes) = self.names.get(path) else {
            let source = io::Error::from_raw_os_error(libc::ENOENT);
            return Err(Error::Open { path: path.to_path_buf(), source });
        };
        let body = Body::Memory { bytes, writable: access == Access::ReadWrite };
        let alignment = self.direct.then_some(BLOCK_BYTES);
        let (path, piece_bytes_max) = (path.to_path_buf(), PIECE_BYTES_MAX);
        Ok(self.files.add(Opened { path, alignment, piece_bytes_max, body }))
    }

    fn adopt(&mut self, file: File, name: &str) -> Result<FileId, Error> {
        let Opened { path, alignment, piece_bytes_max, body } = Opened::adopt(file, name)?;
        Ok(self.files.add(Opened { path, alignment, piece_bytes_max, body: Body::File(body) }))
    }

    fn close(&mut self, file: FileId) {
        self.files.close(file);
    }

    fn is_direct(&self, file: FileId) -> bool {
        self.files.is_direct(file)
    }

    fn file_bytes(&self, file: FileId) -> Result<u64, Error> {
        let file = self.files.get(file)?;
        match &file.body {
            Body::Memory { bytes, .. } => Ok(lock(bytes).len() as u64),
            Body::File(body) => crate::open::file_bytes(body, &file.path),
        }
    }

    fn submit(&mut self, request: Request) -> Result<(), Box<RefusedRequest>> {
        let work = Work::accept(request, &self.files, self.waiting.len(), self.depth)?;
        self.waiting.push(work);
        Ok(())
    }

    fn wait(&mut self, _timeout: Duration, out: &mut Vec<Completion>) -> Result<usize, Error> {
        let waiting = self.waiting.len() as u64;
        let count = match &mut self.random {
            Some(random) if waiting > 0 => 1 + random.below(waiting),
            _ => waiting,
        };
        for _ in 0..count {
            let mut work = self.next();
            let result = carry_out(&mut work);
            out.push(work.finish(result, &mut self.books));
        }
        Ok(count as usize)
    }

    fn in_flight(&self) -> usize {
        self.waiting.len()
    }

    fn counters(&self) -> Counters {
        self.books
    }
}
