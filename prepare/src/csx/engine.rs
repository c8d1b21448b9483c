//! The reads of a function: from the memory of the device if a range was loaded, else from storage.

use super::device::Input;
use meetpoint_storage::{
    Access, AlignedBuffer, BLOCK_BYTES, Completion, Counters, Engine, Error, FileId, Limits,
    RefusedRequest, Request, RequestKind,
};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time limit of a load.
const LOAD_TIMEOUT: Duration = Duration::from_secs(60);

/// Allocations by number; `None` while a function writes to one.
pub(super) type Memory = HashMap<u64, Option<Vec<u8>>>;

/// The storage and the memory of a device, which its functions share with its requests.
pub(super) struct Shared {
    pub(super) memory: Memory,
    engine: Box<dyn Engine>,
    files: HashMap<PathBuf, FileId>,
    names: HashMap<FileId, PathBuf>,
    /// Ranges in memory during the execution of a function, with the numbers of their allocations.
    pub(super) loaded: HashMap<Input, u64>,
    /// Bytes that the function read from storage itself.
    pub(super) read_by_function: u64,
    /// By the numbers of requests at the engine; `None` for a load.
    origins: HashMap<u64, Option<u64>>,
    next_request: u64,
    /// Completions of the function's own reads that arrived during a load.
    arrived: VecDeque<Completion>,
}

impl Shared {
    pub(super) fn new(engine: Box<dyn Engine>) -> Self {
        Self {
            memory: Memory::new(),
            engine,
            files: HashMap::new(),
            names: HashMap::new(),
            loaded: HashMap::new(),
            read_by_function: 0,
            origins: HashMap::new(),
            next_request: 0,
            arrived: VecDeque::new(),
        }
    }

    fn open(&mut self, path: &Path, access: Access) -> Result<FileId, Error> {
        if let Some(file) = self.files.get(path) {
            return Ok(*file);
        }
        let file = self.engine.open(path, access)?;
        self.files.insert(path.to_path_buf(), file);
        self.names.insert(file, path.to_path_buf());
        Ok(file)
    }

    fn submit(
        &mut self,
        mut request: Request,
        origin: Option<u64>,
    ) -> Result<u64, Box<RefusedRequest>> {
        let (number, token) = (self.next_request, request.token);
        request.token = number;
        self.engine.submit(request).map_err(|mut refused| {
            refused.request.token = token;
            refused
        })?;
        self.next_request += 1;
        self.origins.insert(number, origin);
        Ok(number)
    }

    /// Receives completions from the engine; returns that of a load, and queues others.
    fn take_in(&mut self, timeout: Duration) -> Result<Option<Completion>, Error> {
        let (mut done, mut loaded) = (Vec::new(), None);
        self.engine.wait(timeout, &mut done)?;
        for completion in done {
            match self.origins.remove(&completion.token).flatten() {
                Some(token) => self.arrived.push_back(Completion { token, ..completion }),
                None => loaded = Some(completion),
            }
        }
        Ok(loaded)
    }

    /// Reads a range of storage.
    pub(super) fn load(&mut self, input: &Input) -> Result<Vec<u8>, Error> {
        let file = self.open(&input.source, Access::Read)?;
        let bytes = usize::try_from(input.bytes).expect("it was allocated");
        let (offset, kind) = (input.offset, RequestKind::Read);
        let started = Instant::now();
        let mut buffer = Some(self.engine.buffer(bytes + 2 * BLOCK_BYTES));
        let timed_out = || {
            let source = std::io::ErrorKind::TimedOut.into();
            Error::Io { action: "read", path: input.source.clone(), offset, bytes, source }
        };
        let number = loop {
            let buffer_now = buffer.take().expect("a refusal returns it");
            let request = Request { token: 0, file, kind, offset, bytes, buffer: buffer_now };
            match self.submit(request, None) {
                Ok(number) => break number,
                Err(refused) => match *refused {
                    // Reads of an abandoned batch are still in flight.
                    RefusedRequest { request, error: Error::QueueFull { .. } }
                        if started.elapsed() < LOAD_TIMEOUT =>
                    {
                        buffer = Some(request.buffer);
                        self.take_in(Duration::from_millis(20))?;
                    }
                    RefusedRequest { error, .. } => return Err(error),
                },
            }
        };
        loop {
            let left = LOAD_TIMEOUT.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Err(timed_out());
            }
            // An earlier load that timed out may complete now: ignore it.
            let Some(completion) = self.take_in(left)?.filter(|it| it.token == number) else {
                continue;
            };
            completion.result?;
            let range = completion.start..completion.start + bytes;
            return Ok(completion.buffer.as_slice()[range].to_vec());
        }
    }
}

/// Locks the state that a device shares with its functions.
pub(super) fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    // A panic of a function does not leave the memory inconsistent.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The storage engine that a function uses.
pub(super) struct FunctionEngine {
    shared: Arc<Mutex<Shared>>,
    /// Completions of requests that were answered from memory.
    ended: VecDeque<Completion>,
    /// Number of its requests to storage in flight.
    in_flight: usize,
}

impl FunctionEngine {
    pub(super) fn new(shared: Arc<Mutex<Shared>>) -> Self {
        Self { shared, ended: VecDeque::new(), in_flight: 0 }
    }
}

impl Engine for FunctionEngine {
    fn name(&self) -> &'static str {
        "device memory"
    }

    fn limits(&self) -> Limits {
        lock(&self.shared).engine.limits()
    }

    fn open(&mut self, path: &Path, access: Access) -> Result<FileId, Error> {
        lock(&self.shared).open(path, access)
    }

    fn adopt(&mut self, file: File, name: &str) -> Result<FileId, Error> {
        lock(&self.shared).engine.adopt(file, name)
    }

    /// Does nothing: the device keeps its files open.
    fn close(&mut self, _file: FileId) {}

    fn is_direct(&self, file: FileId) -> bool {
        lock(&self.shared).engine.is_direct(file)
    }

    fn file_bytes(&self, file: FileId) -> Result<u64, Error> {
        lock(&self.shared).engine.file_bytes(file)
    }

    fn submit(&mut self, mut request: Request) -> Result<(), Box<RefusedRequest>> {
        let mut shared = lock(&self.shared);
        let depth = shared.engine.limits().depth;
        if self.in_flight + self.ended.len() >= depth {
            let error = Error::QueueFull { depth };
            return Err(Box::new(RefusedRequest { request, error }));
        }
        let (bytes, token) = (request.bytes, request.token);
        let source = shared.names.get(&request.file).cloned().unwrap_or_default();
        let input = Input { source, offset: request.offset, bytes: bytes as u64 };
        let loaded = shared.loaded.get(&input).and_then(|id| shared.memory.get(id)?.as_ref());
        match loaded {
            Some(held)
                if request.kind == RequestKind::Read && request.buffer.capacity() >= bytes =>
            {
                request.buffer.as_mut_slice()[..bytes].copy_from_slice(&held[..bytes]);
                let buffer = request.buffer;
                self.ended.push_back(Completion { token, buffer, start: 0, result: Ok(bytes) });
            }
            _ => {
                shared.submit(request, Some(token))?;
                shared.read_by_function += bytes as u64;
                self.in_flight += 1;
            }
        }
        Ok(())
    }

    fn wait(&mut self, timeout: Duration, out: &mut Vec<Completion>) -> Result<usize, Error> {
        let before = out.len();
        out.extend(self.ended.drain(..));
        let mut shared = lock(&self.shared);
        if shared.arrived.is_empty() && self.in_flight > 0 {
            let timeout = if out.len() > before { Duration::ZERO } else { timeout };
            shared.take_in(timeout)?;
        }
        self.in_flight -= shared.arrived.len();
        out.extend(shared.arrived.drain(..));
        Ok(out.len() - before)
    }

    fn in_flight(&self) -> usize {
        self.in_flight + self.ended.len()
    }

    fn counters(&self) -> Counters {
        lock(&self.shared).engine.counters()
    }

    fn buffer(&mut self, bytes: usize) -> AlignedBuffer {
        lock(&self.shared).engine.buffer(bytes)
    }
}
