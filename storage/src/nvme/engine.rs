//! The engine, which passes reads and writes to the NVMe driver as commands through io_uring.

use super::address::Address;
use super::command::{Command, Memory, nvm};
use super::device::NvmeDevice;
use super::status::Status;
use crate::engine::WAIT_MAX;
use crate::lender::BufferAllocator;
use crate::open::Opened;
use crate::requests::{Commanded, Next, Requests};
use crate::transfer::{Piece, Work};
use crate::uring::broken;
use crate::uring::ring::{Ring, memory};
use crate::{
    Access, AlignedBuffer, BLOCK_BYTES, Completion, Counters, Engine, Error, FileId, Limits,
    RefusedRequest, Request, RequestKind,
};
use io_uring::{cqueue, opcode, squeue, types};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// `NVME_URING_CMD_IO` of `linux/nvme_ioctl.h`.
const URING_COMMAND_IO: u32 = 0xc048_4e80;

/// Maximum bytes of one command, even if the drive allows more, so that its pages do not exceed the
/// number of segments that the driver maps.
const COMMAND_BYTES_MAX: u64 = 256 << 10;

/// A range of a namespace.
#[derive(Debug)]
struct Extent {
    file: File,
    namespace: u32,
    block_bytes: u32,
    /// First byte in the namespace; a whole number of blocks.
    begin: u64,
    /// Length in bytes. Reads beyond it are short, as at the end of a file.
    bytes: u64,
    writable: bool,
}

impl Extent {
    fn open(path: &Path, access: Access) -> io::Result<Opened<Self>> {
        let Address { device, extent } = Address::parse(path)?;
        let writable = access == Access::ReadWrite;
        let device = NvmeDevice::open(&device, writable)?;
        let namespace = device.namespace_id()?;
        let controller = device.controller()?;
        let format = device.namespace(namespace)?;
        let invalid = |problem: String| Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        if format.metadata_bytes > 0 {
            let bytes = format.metadata_bytes;
            return invalid(format!(
                "its blocks have {bytes} bytes of metadata; format it without"
            ));
        }
        let block_bytes = format.block_bytes;
        if block_bytes as usize > BLOCK_BYTES {
            return invalid(format!("its blocks of {block_bytes} bytes are larger than buffers"));
        }
        let (begin, bytes) = extent.unwrap_or((0, format.bytes()));
        let end = begin.saturating_add(bytes);
        if !begin.is_multiple_of(block_bytes.into()) || end > format.bytes() {
            return invalid(format!(
                "the extent does not lie in whole blocks of {block_bytes} bytes within {} bytes",
                format.bytes()
            ));
        }
        let piece_bytes_max =
            COMMAND_BYTES_MAX.min(controller.transfer_bytes_max.unwrap_or(u64::MAX));
        Ok(Opened {
            path: path.to_path_buf(),
            alignment: Some(block_bytes as usize),
            piece_bytes_max: piece_bytes_max as usize,
            body: Self { file: device.into_file(), namespace, block_bytes, begin, bytes, writable },
        })
    }
}

impl Commanded for Extent {
    /// A command, and the piece of memory that it transfers.
    type Command = (Command, Piece);

    fn next(&self, kind: RequestKind, piece: Piece) -> Next<Self::Command> {
        let left = self.bytes.saturating_sub(piece.offset).min(piece.bytes as u64);
        match kind {
            RequestKind::Sync => return Next::Send((nvm::flush(self.namespace), piece)),
            RequestKind::Write if !self.writable => {
                return Next::Answer(Err(io::Error::from_raw_os_error(libc::EBADF)));
            }
            RequestKind::Read if left == 0 => return Next::Answer(Ok(0)),
            RequestKind::Read | RequestKind::Write => {}
        }
        let block_bytes = u64::from(self.block_bytes);
        let first = (self.begin + piece.offset) / block_bytes;
        let blocks = u32::try_from(left.div_ceil(block_bytes)).expect("a command is short");
        let command = match kind {
            RequestKind::Write => nvm::write(self.namespace, first, blocks),
            RequestKind::Read | RequestKind::Sync => nvm::read(self.namespace, first, blocks),
        };
        let bytes = blocks as usize * self.block_bytes as usize;
        Next::Send((command, Piece { bytes, ..piece }))
    }

    fn moved(&self, kind: RequestKind, piece: Piece) -> usize {
        match kind {
            RequestKind::Sync => 0,
            RequestKind::Read | RequestKind::Write => {
                self.bytes.saturating_sub(piece.offset).min(piece.bytes as u64) as usize
            }
        }
    }

    fn write_end(&self) -> Option<u64> {
        self.writable.then_some(self.bytes)
    }
}

/// An engine whose files are namespaces of NVMe drives, or extents of them; [`Address`] has the
/// form of their names.
///
/// Requests are split at the largest transfer of the drive. Nothing is cached, neither by Linux
/// nor here; a sync sends Flush. An extent does not grow. If dropped with requests in flight, the
/// engine waits up to [`DROP_WAIT`](crate::uring::DROP_WAIT) for them and leaks the buffers of
/// those that do not complete.
pub struct NvmeEngine {
    ring: Ring<squeue::Entry128, cqueue::Entry32>,
    requests: Requests<Extent>,
    buffers: BufferAllocator,
}

impl NvmeEngine {
    /// Sets up a ring for `depth` requests in flight. Linux 5.19 or later.
    pub fn new(depth: usize) -> Result<Self, Error> {
        let requests = Requests::new(depth);
        let ring = Ring::new(requests.depth())?;
        Ok(Self { ring, requests, buffers: BufferAllocator::default() })
    }

    /// Collects the commands that the drive has completed.
    fn reap(&mut self, out: &mut Vec<Completion>) {
        while let Some((slot, answer)) = self.ring.pop() {
            // A result of 0 is success; any other number is the drive's status.
            let answer = answer.and_then(|field| match Status::new(field as u16) {
                None => Ok(()),
                Some(status) => Err(io::Error::other(status)),
            });
            let ring = &mut self.ring;
            self.requests.complete(slot, answer, &mut |slot, work, command| {
                ring.push_entry(&entry(work, &command).user_data(slot));
            });
        }
        self.requests.take_ended(out);
    }
}

/// A command as an entry of the ring.
fn entry(work: &Work<Extent>, (command, piece): &(Command, Piece)) -> squeue::Entry128 {
    let memory = match work.kind() {
        RequestKind::Sync => Memory { address: 0, bytes: 0 },
        RequestKind::Read | RequestKind::Write => {
            let (start, bytes) = memory(work, *piece);
            Memory { address: start.expose_provenance() as u64, bytes }
        }
    };
    let passed = command.passthrough(memory).expect("these commands use no CDW4 or CDW5");
    let mut bytes = [0; 80];
    bytes[..passed.len()].copy_from_slice(&passed);
    opcode::UringCmd80::new(types::Fd(work.file.body.file.as_raw_fd()), URING_COMMAND_IO)
        .cmd(bytes)
        .build()
}

impl Engine for NvmeEngine {
    fn name(&self) -> &'static str {
        "nvme"
    }

    fn limits(&self) -> Limits {
        Limits { depth: self.requests.depth() }
    }

    fn open(&mut self, path: &Path, access: Access) -> Result<FileId, Error> {
        let opened = Extent::open(path, access);
        let failed = |source| Error::Open { path: path.to_path_buf(), source };
        Ok(self.requests.files.add(opened.map_err(failed)?))
    }

    /// Always fails: an extent is identified by its name, which an open file does not have.
    fn adopt(&mut self, _file: File, name: &str) -> Result<FileId, Error> {
        let problem = "the engine nvme opens namespaces by name, /dev/ngXnY";
        let source = io::Error::new(io::ErrorKind::Unsupported, problem);
        Err(Error::Open { path: PathBuf::from(name), source })
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
        let ring = &mut self.ring;
        self.requests.submit(request, &mut |slot, work, command| {
            ring.push_entry(&entry(work, &command).user_data(slot));
        })?;
        // Entries that are not submitted now are submitted by the next wait, which reports errors.
        let _ = self.ring.flush();
        Ok(())
    }

    fn wait(&mut self, timeout: Duration, out: &mut Vec<Completion>) -> Result<usize, Error> {
        let before = out.len();
        let deadline = Instant::now() + timeout.min(WAIT_MAX);
        let mut last = false;
        loop {
            self.reap(out);
            if out.len() > before || !self.requests.has_commands() || last {
                if self.ring.queued() > 0 {
                    let _ = self.ring.flush();
                }
                return Ok(out.len() - before);
            }
            let remaining = deadline.saturating_duration_since(Instant::now());
            last = remaining.is_zero();
            self.ring.enter(remaining).map_err(|error| broken(&error))?;
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

impl Drop for NvmeEngine {
    fn drop(&mut self) {
        self.ring.abandon(&mut self.requests.slots);
    }
}
