//! Reads of metadata, one at a time, through an engine.

use super::engine::{ExtentEngine, open_block_engine};
use super::file::ExtentFiles;
use crate::choose::EngineKind;
use crate::{Access, BLOCK_BYTES, Engine, Error, FileId, Request, RequestKind};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest read.
const READ_BYTES_MAX: usize = 1 << 20;

/// How long a device may take for one read.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Reads files by their extents synchronously; threads can share it, and take turns.
pub struct ExtentReader {
    files: ExtentFiles,
    state: Mutex<State>,
}

struct State {
    engine: ExtentEngine,
    open: HashMap<PathBuf, FileId>,
    /// Numbers of reads, so that one that arrives too late is not taken for a later one.
    next_token: u64,
}

impl fmt::Debug for ExtentReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtentReader").field("files", &self.files.len()).finish_non_exhaustive()
    }
}

impl ExtentReader {
    /// Reads `files`, which are on the device `block`, through an engine of this kind as
    /// [`open_block_engine`] creates it.
    pub fn new(kind: EngineKind, block: &Path, files: ExtentFiles) -> Result<Self, Error> {
        let inner = open_block_engine(kind, 1, block)?.engine;
        let engine = ExtentEngine::new(inner, files.clone());
        let state = Mutex::new(State { engine, open: HashMap::new(), next_token: 0 });
        Ok(Self { files, state })
    }

    /// The name of the engine that reads the device.
    pub fn engine(&self) -> &'static str {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).engine.name()
    }

    /// Length of a file; `None` if it has no such file.
    pub fn file_bytes(&self, path: &Path) -> Option<u64> {
        Some(self.files.get(path)?.bytes())
    }

    /// Fills `into` with the bytes of a file from `offset` on; an error if the file ends before.
    pub fn read_exact_at(&self, path: &Path, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match state.open.get(path) {
            Some(file) => *file,
            None => {
                let file = state.engine.open(path, Access::Read)?;
                state.open.insert(path.to_path_buf(), file);
                file
            }
        };
        let mut at = offset;
        for chunk in into.chunks_mut(READ_BYTES_MAX) {
            state.read(path, file, at, chunk)?;
            at += chunk.len() as u64;
        }
        Ok(())
    }
}

impl State {
    fn read(
        &mut self,
        path: &Path,
        file: FileId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<(), Error> {
        let (bytes, token) = (into.len(), self.next_token);
        self.next_token += 1;
        let buffer = self.engine.buffer(bytes + 2 * BLOCK_BYTES);
        let request = Request { token, file, kind: RequestKind::Read, offset, bytes, buffer };
        let started = Instant::now();
        let mut done = Vec::new();
        self.engine.submit(request).map_err(|refused| refused.error)?;
        loop {
            let left = READ_TIMEOUT.saturating_sub(started.elapsed());
            if left.is_zero() {
                let (path, source) = (path.to_path_buf(), io::ErrorKind::TimedOut.into());
                return Err(Error::Io { action: "read", path, offset, bytes, source });
            }
            self.engine.wait(left, &mut done)?;
            if let Some(completion) = done.drain(..).find(|completion| completion.token == token) {
                completion.result?;
                let from = completion.buffer.as_slice();
                into.copy_from_slice(&from[completion.start..completion.start + bytes]);
                return Ok(());
            }
        }
    }
}
