//! An engine whose files are parts of datasets, some of them in stores.
//!
//! Reads are served from the cache by the thread that waits for them: bytes that have just been
//! fetched are in memory. Ranges that are missing are fetched together.

use super::{RemoteFolder, Wanted};
use meetpoint_storage::{
    Access, AlignedBuffer, Completion, Counters, DEPTH_MAX, Engine, Error, FileId, Limits,
    RefusedRequest, Request, RequestKind,
};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long one wait for the cache lasts before it is polled again.
const WAIT_SLICE: Duration = Duration::from_millis(10);

/// Where a part is.
#[derive(Debug, Clone)]
pub(crate) struct PartFile {
    /// Its name in errors.
    pub(crate) path: PathBuf,
    /// The folder in a store, and the index of the part in it.
    pub(crate) folder: Arc<dyn RemoteFolder>,
    /// Index of the part in its folder.
    pub(crate) part: usize,
}

/// An open file.
#[derive(Debug, Clone)]
enum Opened {
    Remote(PartFile),
    Local(PathBuf, Arc<File>),
}

/// A request that is not finished.
struct Pending {
    request: Request,
    file: Opened,
    /// The range in the cache, once it is reserved.
    wanted: Option<Wanted>,
}

/// Reads parts through the caches of their stores. Belongs to one thread.
pub(crate) struct RemoteEngine {
    depth: usize,
    /// The parts in stores, by their paths.
    parts: HashMap<PathBuf, PartFile>,
    files: Vec<Option<Opened>>,
    pending: VecDeque<Pending>,
    books: Counters,
}

impl fmt::Debug for RemoteEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteEngine").field("pending", &self.pending.len()).finish()
    }
}

impl RemoteEngine {
    /// An engine for `depth` requests in flight.
    pub(crate) fn new(parts: impl IntoIterator<Item = PartFile>, depth: usize) -> Self {
        Self {
            depth: depth.clamp(1, DEPTH_MAX),
            parts: parts.into_iter().map(|part| (part.path.clone(), part)).collect(),
            files: Vec::new(),
            pending: VecDeque::new(),
            books: Counters::default(),
        }
    }

    fn add(&mut self, opened: Opened) -> FileId {
        self.files.push(Some(opened));
        FileId(u32::try_from(self.files.len() - 1).expect("a process has fewer files than 2^32"))
    }

    fn opened(&self, file: FileId) -> Result<&Opened, Error> {
        let opened = self.files.get(file.0 as usize).and_then(Option::as_ref);
        opened.ok_or(Error::NoSuchFile(file.0))
    }

    /// Reserves ranges as far as the caches allow, at least one, and fetches what is missing.
    fn start(&mut self) {
        let mut reserves = self.pending.iter().any(|pending| pending.wanted.is_some());
        for pending in &mut self.pending {
            let Opened::Remote(PartFile { folder, part, .. }) = &pending.file else { continue };
            if pending.wanted.is_some() {
                continue;
            }
            let Request { offset, bytes, .. } = pending.request;
            let range = offset..offset + bytes as u64;
            pending.wanted = folder.want(*part, range, !reserves);
            reserves |= pending.wanted.is_some();
        }
        let mut folders: Vec<(&Arc<dyn RemoteFolder>, Vec<&Wanted>)> = Vec::new();
        for pending in &self.pending {
            let (Opened::Remote(PartFile { folder, .. }), Some(wanted)) =
                (&pending.file, &pending.wanted)
            else {
                continue;
            };
            match folders.iter_mut().find(|(it, _)| Arc::ptr_eq(it, folder)) {
                Some((_, ranges)) => ranges.push(wanted),
                None => folders.push((folder, vec![wanted])),
            }
        }
        for (folder, ranges) in folders {
            folder.fetch(&ranges);
        }
    }

    /// Finishes what can be finished now.
    fn finish(&mut self, out: &mut Vec<Completion>) {
        let mut index = 0;
        while index < self.pending.len() {
            let Pending { request, file, wanted } = &mut self.pending[index];
            let done = match (file, &wanted) {
                (Opened::Local(_, file), _) => Some(transfer(file, request)),
                (Opened::Remote(_), None) => None,
                (Opened::Remote(PartFile { folder, .. }), Some(wanted)) => {
                    let into = &mut request.buffer.as_mut_slice()[..request.bytes];
                    match folder.outcome(wanted) {
                        None => None,
                        Some(Err(error)) => Some(Err(error)),
                        Some(Ok(())) => match folder.read(wanted, into) {
                            Ok(true) => Some(Ok(())),
                            // Another process evicted some of it: it is fetched again.
                            Ok(false) => None,
                            Err(error) => Some(Err(error)),
                        },
                    }
                }
            };
            match done {
                None => index += 1,
                Some(result) => {
                    let pending = self.pending.remove(index).expect("the index is valid");
                    out.push(self.complete(pending, result));
                }
            }
        }
    }

    fn complete(&mut self, pending: Pending, result: io::Result<()>) -> Completion {
        let Pending { request, file, wanted } = pending;
        let path = match &file {
            Opened::Remote(PartFile { folder, path, .. }) => {
                wanted.iter().for_each(|wanted| folder.release(wanted));
                path.clone()
            }
            Opened::Local(path, _) => path.clone(),
        };
        let Request { token, offset, bytes, buffer, .. } = request;
        let result = match result {
            Ok(()) => {
                self.books.reads += 1;
                self.books.bytes_read += bytes as u64;
                self.books.bytes_read_device += bytes as u64;
                Ok(bytes)
            }
            Err(source) => {
                self.books.errors += 1;
                Err(Error::Io { action: "read", path, offset, bytes, source })
            }
        };
        Completion { token, buffer, start: 0, result }
    }
}

/// A synchronous read of a file of this machine.
fn transfer(file: &File, request: &mut Request) -> io::Result<()> {
    file.read_exact_at(&mut request.buffer.as_mut_slice()[..request.bytes], request.offset)
}

impl Engine for RemoteEngine {
    fn name(&self) -> &'static str {
        "store"
    }

    fn limits(&self) -> Limits {
        Limits { depth: self.depth }
    }

    fn open(&mut self, path: &Path, access: Access) -> Result<FileId, Error> {
        let failed = |source| Error::Open { path: path.to_path_buf(), source };
        if access != Access::Read {
            return Err(failed(io::ErrorKind::ReadOnlyFilesystem.into()));
        }
        let opened = match self.parts.get(path) {
            Some(part) => Opened::Remote(part.clone()),
            None => {
                let file = meetpoint_storage::files::open_regular(path).map_err(failed)?;
                Opened::Local(path.to_path_buf(), Arc::new(file))
            }
        };
        Ok(self.add(opened))
    }

    fn adopt(&mut self, file: File, name: &str) -> Result<FileId, Error> {
        Ok(self.add(Opened::Local(PathBuf::from(name), Arc::new(file))))
    }

    fn close(&mut self, file: FileId) {
        if let Some(opened) = self.files.get_mut(file.0 as usize) {
            *opened = None;
        }
    }

    fn is_direct(&self, _: FileId) -> bool {
        false
    }

    fn file_bytes(&self, file: FileId) -> Result<u64, Error> {
        let (path, length) = match self.opened(file)? {
            Opened::Remote(PartFile { path, folder, part }) => (path, folder.part_bytes(*part)),
            Opened::Local(path, file) => (path, file.metadata().map(|metadata| metadata.len())),
        };
        length.map_err(|source| Error::Length { path: path.clone(), source })
    }

    fn submit(&mut self, request: Request) -> Result<(), Box<RefusedRequest>> {
        let refused = |request, error| Err(Box::new(RefusedRequest { request, error }));
        if self.pending.len() >= self.depth {
            return refused(request, Error::QueueFull { depth: self.depth });
        }
        let file = match self.opened(request.file) {
            Ok(file) => file.clone(),
            Err(error) => return refused(request, error),
        };
        let (capacity, needed) = (request.buffer.capacity(), request.bytes);
        if capacity < needed {
            return refused(request, Error::BufferTooSmall { capacity, needed });
        }
        if request.kind != RequestKind::Read {
            let reason = "it only reads".to_owned();
            let error = Error::Unavailable { engine: "store", reason, remedy: None };
            return refused(request, error);
        }
        self.pending.push_back(Pending { request, file, wanted: None });
        Ok(())
    }

    fn wait(&mut self, timeout: Duration, out: &mut Vec<Completion>) -> Result<usize, Error> {
        let (before, started) = (out.len(), Instant::now());
        loop {
            let waits_for = self.pending.iter().find_map(|pending| match &pending.file {
                Opened::Remote(part) => Some(Arc::clone(&part.folder)),
                Opened::Local(..) => None,
            });
            // Read the counter first: an arrival between this check and the wait ends the wait.
            let waits_for = waits_for.map(|folder| (folder.arrivals(), folder));
            self.start();
            self.finish(out);
            let left = timeout.saturating_sub(started.elapsed());
            if out.len() > before || self.pending.is_empty() || left.is_zero() {
                return Ok(out.len() - before);
            }
            if let Some((seen, folder)) = waits_for {
                folder.wait(seen, left.min(WAIT_SLICE));
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.pending.len()
    }

    fn counters(&self) -> Counters {
        self.books
    }

    fn buffer(&mut self, bytes: usize) -> AlignedBuffer {
        AlignedBuffer::zeroed(bytes)
    }
}

impl Drop for RemoteEngine {
    fn drop(&mut self) {
        for pending in self.pending.drain(..) {
            if let (Opened::Remote(part), Some(wanted)) = (&pending.file, &pending.wanted) {
                part.folder.release(wanted);
            }
        }
    }
}
