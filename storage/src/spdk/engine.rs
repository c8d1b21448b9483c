//! The engine, which sends requests to SPDK's thread and receives its answers.
#![expect(unsafe_code, reason = "another thread reads and writes the buffers of requests")]

use super::name::Name;
use crate::engine::WAIT_MAX;
use crate::lender::BufferAllocator;
use crate::nvme::Status;
use crate::open::Opened;
use crate::requests::{Commanded, Next, Requests};
use crate::transfer::{Piece, Work};
use crate::uring::DROP_WAIT;
use crate::uring::ring::memory;
use crate::{
    Access, AlignedBuffer, BLOCK_BYTES, Completion, Counters, Engine, Error, FileId, Limits,
    RefusedRequest, Request, RequestKind,
};
use meetpoint_diagnose::Remedy;
use meetpoint_storage_spdk::{
    Device, Done, Error as SpdkError, Failure, FileModule, FileSource, Memory, Operation, Options,
    Source, Spdk, Transfer,
};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Name in reports.
const NAME: &str = "spdk";

/// The smallest block of SPDK.
const BLOCK_BYTES_MIN: usize = 512;

/// Most bytes of one transfer; SPDK splits them further at the limits of a drive.
const PIECE_BYTES_MAX: usize = 1 << 20;

/// A range of a device of SPDK.
#[derive(Debug)]
struct Body {
    /// `None` for an empty file.
    device: Option<Arc<Device>>,
    /// The file, if the device cannot make its writes durable.
    unflushed: Option<Arc<File>>,
    block_bytes: u64,
    /// First byte in the device; a multiple of the block.
    begin: u64,
    /// Bytes that the device can transfer, from `begin`; a multiple of the block.
    reachable: u64,
    /// Length in bytes. It does not change.
    bytes: u64,
    writable: bool,
}

impl Commanded for Body {
    /// The operation of the device, and its number of bytes.
    type Command = (Operation, u64);

    fn next(&self, kind: RequestKind, piece: Piece) -> Next<Self::Command> {
        let left = self.bytes.saturating_sub(piece.offset).min(piece.bytes as u64);
        let here = self.reachable.saturating_sub(piece.offset);
        match (kind, &self.unflushed) {
            (RequestKind::Sync, Some(file)) if self.writable => {
                Next::Answer(rustix::fs::fdatasync(file).map(|()| 0).map_err(Into::into))
            }
            (RequestKind::Sync, None) if self.writable && self.device.is_some() => {
                Next::Send((Operation::Flush, 0))
            }
            // Nothing can have been written.
            (RequestKind::Sync, _) => Next::Answer(Ok(0)),
            (RequestKind::Write, _) if !self.writable => {
                Next::Answer(Err(io::Error::from_raw_os_error(libc::EBADF)))
            }
            (RequestKind::Write, _) => Next::Send((Operation::Write, piece.bytes as u64)),
            (RequestKind::Read, _) if left == 0 => Next::Answer(Ok(0)),
            (RequestKind::Read, _) => {
                let bytes = left.next_multiple_of(self.block_bytes).min(here);
                Next::Send((Operation::Read, bytes))
            }
        }
    }

    fn moved(&self, kind: RequestKind, piece: Piece) -> usize {
        match self.next(kind, piece) {
            Next::Send((_, bytes)) => {
                self.bytes.saturating_sub(piece.offset).min(bytes).try_into().unwrap_or(usize::MAX)
            }
            Next::Answer(_) => 0,
        }
    }

    fn write_end(&self) -> Option<u64> {
        self.writable.then_some(self.bytes)
    }
}

/// An engine whose files are block devices of SPDK: files of this machine through `bdev_aio` or
/// `bdev_uring`, devices of SPDK's configuration, namespaces of NVMe-oF targets. [`Name`] has the
/// form of their names.
///
/// The engines of a process share SPDK's thread. Nothing is cached here; a sync flushes the device.
/// The length of a file is fixed when it is opened, and must be a multiple of its block, usually
/// 512 bytes. If dropped with requests in flight, the
/// engine waits up to [`DROP_WAIT`] for them and leaks the buffers of those that do not complete.
pub struct SpdkEngine {
    spdk: Spdk,
    requests: Requests<Body>,
    done: Receiver<Done>,
    reply: SyncSender<Done>,
    buffers: BufferAllocator,
}

impl SpdkEngine {
    /// Starts SPDK if no engine of the process has done so, with the [`Options`] of the
    /// environment.
    pub fn new(depth: usize) -> Result<Self, Error> {
        let requests = Requests::new(depth);
        let spdk = Spdk::get(Options::from_environment).map_err(|error| unavailable(&error))?;
        // There is room for every answer, so that SPDK's thread never waits for an engine.
        let (reply, done) = sync_channel(requests.depth());
        Ok(Self { spdk, requests, done, reply, buffers: BufferAllocator::default() })
    }

    /// Opens a file or block device, or a range of it.
    fn open_file(
        &self,
        opened: Opened<File>,
        module: FileModule,
        range: Option<(u64, u64)>,
        writable: bool,
    ) -> Result<Opened<Body>, Error> {
        let bytes = opened.bytes()?;
        let Opened { path, alignment, body, .. } = opened;
        let block_bytes = alignment.unwrap_or(1).max(BLOCK_BYTES_MIN) as u32;
        if bytes == 0 {
            return Ok(described(None, &path, block_bytes.into(), (0, 0), writable));
        }
        if !bytes.is_multiple_of(block_bytes.into()) {
            return Err(Error::Device {
                path,
                device: format!("bdev_{}", module.as_str()).into(),
                reason: format!("its length of {bytes} bytes is not a multiple of {block_bytes}")
                    .into(),
                remedy: Box::new(
                    Remedy::advice("use engine = \"io_uring\" for files")
                        .or("have a device serve the dataset by its extents on a block device"),
                ),
            });
        }
        let file = Arc::new(body);
        let metadata =
            file.metadata().map_err(|source| Error::Open { path: path.clone(), source })?;
        let identity = (metadata.dev(), metadata.ino(), bytes);
        // bdev_uring has no flush.
        let unflushed = (module == FileModule::Uring).then(|| Arc::clone(&file));
        let source = FileSource { file, identity, module, block_bytes, writable };
        let mut opened = self.open_range(Source::File(source), range, &path, writable)?;
        opened.body.unflushed = unflushed;
        Ok(opened)
    }

    /// Opens a device, or a range of it.
    fn open_range(
        &self,
        source: Source,
        range: Option<(u64, u64)>,
        path: &Path,
        writable: bool,
    ) -> Result<Opened<Body>, Error> {
        let device = self.open_device(source, path, writable)?;
        let block_bytes = u64::from(device.block_bytes());
        let invalid = |problem: String| Error::Open {
            path: path.to_path_buf(),
            source: io::Error::new(io::ErrorKind::InvalidInput, problem),
        };
        if block_bytes > BLOCK_BYTES as u64 {
            return Err(invalid(format!(
                "its blocks of {block_bytes} bytes are larger than buffers"
            )));
        }
        let whole = device.bytes();
        let (begin, bytes) = range.unwrap_or((0, whole));
        let reachable = bytes.checked_next_multiple_of(block_bytes).unwrap_or(u64::MAX);
        if !begin.is_multiple_of(block_bytes) || begin.saturating_add(reachable) > whole {
            return Err(invalid(format!(
                "the range does not lie in whole blocks of {block_bytes} bytes within {whole} bytes"
            )));
        }
        Ok(described(Some(device), path, block_bytes, (begin, bytes), writable))
    }

    fn open_device(
        &self,
        source: Source,
        path: &Path,
        writable: bool,
    ) -> Result<Arc<Device>, Error> {
        self.spdk.open(source, writable).map_err(|error| match error {
            SpdkError::Open { bdev, reason } => Error::Device {
                path: path.to_path_buf(),
                device: format!("bdev {bdev}").into(),
                reason: reason.into(),
                remedy: Box::new(
                    "check its name or address, and that nothing else has it open for writing"
                        .into(),
                ),
            },
            other => unavailable(&other),
        })
    }

    fn take(&mut self, done: Done) {
        let Done { token: slot, result } = done;
        let reply = &self.reply;
        self.requests.complete(slot, result.map_err(io_error), &mut |slot, work, command| {
            send(reply, slot, work, command);
        });
    }
}

/// Sends a transfer to the device of a request.
fn send(
    reply: &SyncSender<Done>,
    slot: u64,
    work: &Work<Body>,
    (operation, bytes): (Operation, u64),
) {
    let piece = work.transfer.next();
    let body = &work.file.body;
    let memory = match operation {
        Operation::Flush => Memory::none(),
        Operation::Read | Operation::Write => {
            let (start, room) = memory(work, piece);
            assert!(bytes <= u64::from(room), "a transfer lies in its piece");
            // SAFETY: the buffer belongs to the request, which stays in its slot until the answer
            // arrives, and is leaked if none does.
            unsafe { Memory::new(start.cast(), bytes as usize) }
        }
    };
    let offset = body.begin + piece.offset;
    let device = body.device.as_ref().expect("a transfer has a device");
    device.submit(Transfer { operation, offset, memory, token: slot, reply: reply.clone() });
}

/// A range of a device as an open file.
fn described(
    device: Option<Arc<Device>>,
    path: &Path,
    block_bytes: u64,
    (begin, bytes): (u64, u64),
    writable: bool,
) -> Opened<Body> {
    let reachable = bytes.next_multiple_of(block_bytes);
    Opened {
        path: path.to_path_buf(),
        alignment: Some(block_bytes as usize),
        piece_bytes_max: PIECE_BYTES_MAX,
        body: Body { device, unflushed: None, block_bytes, begin, reachable, bytes, writable },
    }
}

fn io_error(failure: Failure) -> io::Error {
    match failure {
        Failure::Os(number) => io::Error::from_raw_os_error(number),
        Failure::Nvme(field) => match Status::new(field) {
            Some(status) => io::Error::other(status),
            None => io::Error::from_raw_os_error(libc::EIO),
        },
    }
}

/// The error for SPDK as a whole.
fn unavailable(error: &SpdkError) -> Error {
    let remedy: Remedy = match error {
        SpdkError::Option { .. } => "set the variable as docs/spdk.md describes it".into(),
        SpdkError::Start { .. } => {
            "free memory, or set MEETPOINT_SPDK_MEMORY_MIB; engine = \"io_uring\" needs no SPDK"
                .into()
        }
        SpdkError::Timeout(_) | SpdkError::Ended => {
            "check the device or the target, and start the program again".into()
        }
        _ => "check the name of the device".into(),
    };
    Error::Unavailable { engine: NAME, reason: error.to_string(), remedy: Some(remedy) }
}

impl Engine for SpdkEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn limits(&self) -> Limits {
        Limits { depth: self.requests.depth() }
    }

    fn open(&mut self, path: &Path, access: Access) -> Result<FileId, Error> {
        let writable = access == Access::ReadWrite;
        let failed = |source| Error::Open { path: path.to_path_buf(), source };
        let opened = match Name::parse(path).map_err(failed)? {
            Name::File(file, module, range) => {
                let opened = Opened::open(&file, access).map_err(|error| match error {
                    Error::Open { source, .. } => failed(source),
                    other => other,
                })?;
                let opened = Opened { path: path.to_path_buf(), ..opened };
                self.open_file(opened, module, range, writable)?
            }
            Name::Bdev(name, range) => {
                self.open_range(Source::Named(name), range, path, writable)?
            }
            Name::Target(target, range) => {
                self.open_range(Source::Target(target), range, path, writable)?
            }
        };
        Ok(self.requests.files.add(opened))
    }

    /// Opens the file again through `bdev_aio`, for writing if it is open for writing.
    fn adopt(&mut self, file: File, name: &str) -> Result<FileId, Error> {
        let failed = |source: io::Error| Error::Open { path: PathBuf::from(name), source };
        let flags = rustix::fs::fcntl_getfl(&file).map_err(|error| failed(error.into()))?;
        let mode = flags & rustix::fs::OFlags::RWMODE;
        let writable = mode != rustix::fs::OFlags::RDONLY;
        let opened = self.open_file(Opened::adopt(file, name)?, FileModule::Aio, None, writable)?;
        Ok(self.requests.files.add(opened))
    }

    fn close(&mut self, file: FileId) {
        self.requests.files.close(file);
    }

    fn is_direct(&self, file: FileId) -> bool {
        self.requests.files.is_direct(file)
    }

    fn file_bytes(&self, file: FileId) -> Result<u64, Error> {
        Ok(self.requests.file(file)?.body.bytes)
    }

    fn submit(&mut self, request: Request) -> Result<(), Box<RefusedRequest>> {
        let reply = &self.reply;
        self.requests.submit(request, &mut |slot, work, command| send(reply, slot, work, command))
    }

    fn wait(&mut self, timeout: Duration, out: &mut Vec<Completion>) -> Result<usize, Error> {
        let before = out.len();
        let deadline = Instant::now() + timeout.min(WAIT_MAX);
        loop {
            while let Ok(done) = self.done.try_recv() {
                self.take(done);
            }
            self.requests.take_ended(out);
            if out.len() > before || !self.requests.has_commands() {
                return Ok(out.len() - before);
            }
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Ok(0);
            }
            // The end of SPDK's thread does not close the channel, of which this engine has an end.
            match self.done.recv_timeout(remaining.min(Duration::from_secs(1))) {
                Ok(done) => self.take(done),
                Err(_) if self.spdk.has_ended() => return Err(unavailable(&SpdkError::Ended)),
                Err(_) => {}
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.requests.in_flight()
    }

    fn counters(&self) -> Counters {
        self.requests.counters()
    }

    fn buffer(&mut self, bytes: usize) -> AlignedBuffer {
        self.buffers.lend(bytes, self.requests.depth(), |_, _| 0)
    }
}

impl Drop for SpdkEngine {
    fn drop(&mut self) {
        let deadline = Instant::now() + DROP_WAIT;
        while self.requests.slots.len() > 0 {
            let remaining = deadline.saturating_duration_since(Instant::now());
            match self.done.recv_timeout(remaining) {
                Ok(done) => drop(self.requests.slots.remove(done.token)),
                Err(_) => break,
            }
        }
        if self.requests.slots.len() > 0 {
            std::mem::forget(std::mem::take(&mut self.requests.slots));
        }
    }
}
