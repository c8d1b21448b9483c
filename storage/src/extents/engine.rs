//! Reads files that are ranges of block devices through another engine.
//!
//! Every read is limited to the ranges of its file before the other engine receives it; an engine
//! that reads directly then transfers the whole blocks around them.

use super::file::{ExtentFile, ExtentFiles};
use crate::choose::{EngineKind, SelectedEngine, open_engine};
use crate::engine::WAIT_MAX;
use crate::nvme::{Address, NvmeDevice, NvmeEngine};
use crate::slots::Slots;
use crate::{
    Access, AlignedBuffer, BLOCK_BYTES, Completion, Counters, Engine, EngineNote, Error, FileId,
    Limits, RefusedRequest, Request, RequestKind,
};
use meetpoint_diagnose::shown;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Creates the engine that reads a block device: NVMe commands for the character device of a
/// namespace (`/dev/ng0n1`, or `/dev/ng0n1@OFFSET+BYTES`), else the given kind. With
/// [`EngineKind::Spdk`], `block` can be any name that the engine opens.
///
/// Fails with a remedy for other character devices.
pub fn open_block_engine(
    kind: EngineKind,
    depth: usize,
    block: &Path,
) -> Result<SelectedEngine, Error> {
    if is_namespace(kind, block)? {
        let engine = Box::new(NvmeEngine::new(depth)?);
        return Ok(SelectedEngine { engine, note: None });
    }
    open_engine(kind, depth)
}

/// Whether a path names an NVMe namespace or an extent of one ([`Address`]).
fn is_namespace(kind: EngineKind, block: &Path) -> Result<bool, Error> {
    let is_char_device = |path: &Path| Ok(std::fs::metadata(path)?.file_type().is_char_device());
    let found: io::Result<Option<PathBuf>> = match is_char_device(block) {
        Ok(is_it) => Ok(is_it.then(|| block.to_path_buf())),
        Err(error) => Address::parse(block).and_then(|address| match address {
            Address { device, extent: Some(_) } => {
                is_char_device(&device).map(|is_it| is_it.then_some(device))
            }
            Address { extent: None, .. } => Err(error),
        }),
    };
    let device = match found {
        Ok(Some(device)) => device,
        Ok(None) => return Ok(false),
        // A name of SPDK is not a file.
        Err(_) if kind == EngineKind::Spdk => return Ok(false),
        Err(source) => return Err(Error::Open { path: block.to_path_buf(), source }),
    };
    match NvmeDevice::open(&device, false).and_then(|device| device.namespace_id()) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(Error::Device {
            path: block.to_path_buf(),
            device: "character device".into(),
            reason: error.to_string().into(),
            remedy: Box::new(
                "name a block device (/dev/nvme0n1), an image of one, or the character device of \
                 an NVMe namespace (/dev/ng0n1)"
                    .into(),
            ),
        }),
        Err(source) => Err(Error::Open { path: block.to_path_buf(), source }),
    }
}

/// Length in bytes of a block device, of an image of one, or of an NVMe namespace; `kind` as for
/// [`open_block_engine`].
pub fn block_bytes(kind: EngineKind, block: &Path) -> Result<u64, Error> {
    let mut engine = open_block_engine(kind, 1, block)?.engine;
    let file = engine.open(block, Access::Read)?;
    engine.file_bytes(file)
}

/// A file that is open.
#[derive(Debug)]
struct Opened {
    /// Its name in errors.
    path: PathBuf,
    file: Arc<ExtentFile>,
    /// The block device in the inner engine.
    block: FileId,
}

/// A request that is not finished.
struct Gathering {
    token: u64,
    file: Arc<Opened>,
    offset: u64,
    wanted: usize,
    /// Memory of the caller; with the inner engine if the request is one piece.
    buffer: Option<AlignedBuffer>,
    /// Pieces that are not finished.
    left: usize,
    /// Why the first piece that failed did.
    failure: Option<Error>,
}

/// A piece of a request.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// The request's number.
    request: u64,
    /// Where in the request's memory it belongs; `None` if it is all of the request.
    at: Option<usize>,
    /// Where on the device it begins.
    offset: u64,
    bytes: usize,
}

/// An engine whose files are [`ExtentFiles`]. It only reads, and opens no other file.
pub struct ExtentEngine {
    inner: Box<dyn Engine>,
    files: ExtentFiles,
    blocks: HashMap<PathBuf, FileId>,
    open: Vec<Option<Arc<Opened>>>,
    requests: Slots<Gathering>,
    /// Pieces that the inner engine has.
    parts: Slots<Part>,
    /// Pieces that it does not have yet.
    waiting: VecDeque<Part>,
    /// Requests that needed no read.
    ended: VecDeque<Completion>,
    scratch: Vec<Completion>,
    books: Counters,
}

impl ExtentEngine {
    /// Reads these files through `inner`, which opens their block devices.
    pub fn new(inner: Box<dyn Engine>, files: ExtentFiles) -> Self {
        Self {
            inner,
            files,
            blocks: HashMap::new(),
            open: Vec::new(),
            requests: Slots::default(),
            parts: Slots::default(),
            waiting: VecDeque::new(),
            ended: VecDeque::new(),
            scratch: Vec::new(),
            books: Counters::default(),
        }
    }

    fn opened(&self, file: FileId) -> Result<&Arc<Opened>, Error> {
        let opened = self.open.get(file.0 as usize).and_then(Option::as_ref);
        opened.ok_or(Error::NoSuchFile(file.0))
    }

    /// Opens the block device of a file, once.
    fn block(&mut self, path: &Path, file: &ExtentFile) -> Result<FileId, Error> {
        let block = match self.blocks.get(file.block()) {
            Some(block) => *block,
            None => {
                let opened = self.inner.open(file.block(), Access::Read)?;
                self.blocks.insert(file.block().clone(), opened);
                opened
            }
        };
        let bytes = self.inner.file_bytes(block)?;
        let outside = file.ranges().iter().find(|it| it.end().is_none_or(|end| end > bytes));
        match outside {
            None => Ok(block),
            Some(range) => {
                let problem = format!(
                    "its extent at {} of {} bytes is outside of {}, which has {bytes} bytes",
                    range.offset,
                    range.bytes,
                    shown(file.block())
                );
                let source = io::Error::new(io::ErrorKind::InvalidInput, problem);
                Err(Error::Open { path: path.to_path_buf(), source })
            }
        }
    }

    /// Passes waiting pieces to the inner engine, as many as it accepts.
    fn feed(&mut self) {
        while self.inner.in_flight() < self.inner.limits().depth {
            let Some(part) = self.waiting.pop_front() else { return };
            let gathering = self.requests.get_mut(part.request);
            let file = gathering.file.block;
            let buffer = match part.at {
                None => gathering.buffer.take().expect("the only piece takes it once"),
                Some(_) => self.inner.buffer(part.bytes + 2 * BLOCK_BYTES),
            };
            let Part { offset, bytes, .. } = part;
            let token = self.parts.insert(part);
            let kind = RequestKind::Read;
            let request = Request { token, file, kind, offset, bytes, buffer };
            if let Err(refused) = self.inner.submit(request) {
                let RefusedRequest { request, error } = *refused;
                self.parts.remove(token);
                if matches!(error, Error::QueueFull { .. }) {
                    if part.at.is_none() {
                        self.requests.get_mut(part.request).buffer = Some(request.buffer);
                    }
                    self.waiting.push_front(part);
                    return;
                }
                self.finish(part, request.buffer, 0, Err(error));
            }
        }
    }

    /// Records the result of a piece; completes its request with the last one.
    fn finish(
        &mut self,
        part: Part,
        buffer: AlignedBuffer,
        start: usize,
        result: Result<usize, Error>,
    ) {
        let gathering = self.requests.get_mut(part.request);
        gathering.left -= 1;
        let mut start_of_request = 0;
        match (part.at, &result) {
            (None, _) => {
                start_of_request = start;
                gathering.buffer = Some(buffer);
            }
            (Some(at), Ok(_)) => {
                let into = gathering.buffer.as_mut().expect("it stays here");
                let from = &buffer.as_slice()[start..start + part.bytes];
                into.as_mut_slice()[at..at + part.bytes].copy_from_slice(from);
            }
            (Some(_), Err(_)) => {}
        }
        if let Err(error) = result {
            gathering.failure.get_or_insert(error);
        }
        if gathering.left == 0 {
            let gathering = self.requests.remove(part.request);
            let completion = gathering.complete(start_of_request, &mut self.books);
            self.ended.push_back(completion);
        }
    }
}

impl Gathering {
    fn complete(self, start: usize, books: &mut Counters) -> Completion {
        let Self { token, file, offset, wanted, buffer, failure, .. } = self;
        let result = match failure {
            // A short read inside of the file's ranges: the device is shorter than it was.
            Some(Error::Io { source, .. }) => {
                let path = file.path.clone();
                Err(Error::Io { action: "read", path, offset, bytes: wanted, source })
            }
            Some(error) => Err(error),
            None => {
                let left = file.file.bytes().saturating_sub(offset);
                let got = usize::try_from(left).map_or(wanted, |left| left.min(wanted));
                match got == wanted {
                    true => Ok(wanted),
                    false => {
                        let path = file.path.clone();
                        Err(Error::ShortRead { path, offset, wanted, got })
                    }
                }
            }
        };
        match &result {
            Ok(bytes) => {
                books.reads += 1;
                books.bytes_read += *bytes as u64;
            }
            Err(_) => books.errors += 1,
        }
        let buffer = buffer.expect("every piece has come back");
        Completion { token, buffer, start, result }
    }
}

impl Engine for ExtentEngine {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn open(&mut self, path: &Path, access: Access) -> Result<FileId, Error> {
        let failed = |kind: io::ErrorKind| Error::Open { path: path.into(), source: kind.into() };
        if access != Access::Read {
            return Err(failed(io::ErrorKind::ReadOnlyFilesystem));
        }
        let file = self.files.get(path).map(Arc::clone);
        let file = file.ok_or_else(|| failed(io::ErrorKind::NotFound))?;
        let block = self.block(path, &file)?;
        let opened = Some(Arc::new(Opened { path: path.to_path_buf(), file, block }));
        let free = self.open.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.open.push(None);
            self.open.len() - 1
        });
        self.open[index] = opened;
        Ok(FileId(u32::try_from(index).expect("a process has fewer files than 2^32")))
    }

    /// Always fails: an open file has no extents here.
    fn adopt(&mut self, _file: File, name: &str) -> Result<FileId, Error> {
        let problem = "only files by their extents are read here";
        let source = io::Error::new(io::ErrorKind::Unsupported, problem);
        Err(Error::Open { path: PathBuf::from(name), source })
    }

    fn close(&mut self, file: FileId) {
        if let Some(opened) = self.open.get_mut(file.0 as usize) {
            *opened = None;
        }
    }

    fn is_direct(&self, file: FileId) -> bool {
        self.opened(file).is_ok_and(|opened| self.inner.is_direct(opened.block))
    }

    fn file_bytes(&self, file: FileId) -> Result<u64, Error> {
        Ok(self.opened(file)?.file.bytes())
    }

    fn submit(&mut self, request: Request) -> Result<(), Box<RefusedRequest>> {
        let depth = self.limits().depth;
        let (capacity, needed) = (request.buffer.capacity(), request.bytes);
        let checked = if self.in_flight() >= depth {
            Err(Error::QueueFull { depth })
        } else if request.kind != RequestKind::Read {
            let (engine, reason) = (self.name(), "extents are only read".to_owned());
            Err(Error::Unavailable { engine, reason, remedy: None })
        } else if capacity < needed {
            Err(Error::BufferTooSmall { capacity, needed })
        } else {
            self.opened(request.file).map(Arc::clone)
        };
        let file = match checked {
            Ok(file) => file,
            Err(error) => return Err(Box::new(RefusedRequest { request, error })),
        };
        let Request { token, offset, bytes: wanted, buffer, .. } = request;
        let pieces = file.file.pieces(offset, wanted);
        let is_whole = pieces.len() == 1 && pieces[0].bytes == wanted;
        let (left, buffer) = (pieces.len(), Some(buffer));
        let gathering = Gathering { token, file, offset, wanted, buffer, left, failure: None };
        // Nothing is read for a request that reaches beyond the end: it fails in any case.
        if left == 0 || gathering.reaches_beyond_end() {
            self.ended.push_back(gathering.complete(0, &mut self.books));
            return Ok(());
        }
        let number = self.requests.insert(gathering);
        let mut at = 0;
        for piece in pieces {
            let place = (!is_whole).then_some(at);
            at += piece.bytes;
            let (offset, bytes) = (piece.offset, piece.bytes);
            self.waiting.push_back(Part { request: number, at: place, offset, bytes });
        }
        self.feed();
        Ok(())
    }

    fn wait(&mut self, timeout: Duration, out: &mut Vec<Completion>) -> Result<usize, Error> {
        let before = out.len();
        let deadline = Instant::now() + timeout.min(WAIT_MAX);
        loop {
            self.feed();
            let left = match self.ended.is_empty() {
                true => deadline.saturating_duration_since(Instant::now()),
                false => Duration::ZERO,
            };
            let mut scratch = std::mem::take(&mut self.scratch);
            let waited = self.inner.wait(left, &mut scratch);
            for Completion { token, buffer, start, result } in scratch.drain(..) {
                let part = self.parts.remove(token);
                self.finish(part, buffer, start, result);
            }
            self.scratch = scratch;
            self.feed();
            out.extend(self.ended.drain(..));
            if out.len() > before || self.in_flight() == 0 || left.is_zero() {
                waited?;
                return Ok(out.len() - before);
            }
            waited?;
        }
    }

    fn in_flight(&self) -> usize {
        self.requests.len() + self.ended.len()
    }

    fn counters(&self) -> Counters {
        let inner = self.inner.counters();
        let Counters { bytes_read_device, resumed, .. } = inner;
        Counters { bytes_read_device, resumed, ..self.books }
    }

    fn buffer(&mut self, bytes: usize) -> AlignedBuffer {
        self.inner.buffer(bytes)
    }

    fn notes(&self) -> &[EngineNote] {
        self.inner.notes()
    }
}

impl Gathering {
    fn reaches_beyond_end(&self) -> bool {
        self.offset.saturating_add(self.wanted as u64) > self.file.file.bytes()
    }
}
