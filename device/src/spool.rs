//! The destination of ready batches: shared memory, a file through a storage engine, or messages to
//! a host that shares neither.

use crate::pieces::{GoOn, OutgoingMessage, Pieces};
use meetpoint_format::slot::HEADER_BYTES;
use meetpoint_format::wire::SpoolKind;
use meetpoint_storage::slow::{Direction, Figures, Meter, Pace, SlowEngine, Throttle};
use meetpoint_storage::{
    AlignedBuffer, Engine, EngineKind, FileId, Request, RequestKind, SharedMapping,
};
use rustix::fs::{FileType, OFlags, SealFlags, fcntl_get_seals, fcntl_getfl, fstat};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Sender;

/// Most slots of a spool.
pub(crate) const SLOTS_MAX: u32 = 1 << 16;

/// Longest wait between two heartbeats.
const WAIT_SLICE: Duration = Duration::from_millis(50);

/// The layout of slots; slot i begins at i times the bytes of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) kind: SpoolKind,
    pub(crate) slots: u32,
    pub(crate) slot_bytes: u64,
}

/// Errors of a spool.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpoolError {
    #[error("the spool has {got} bytes, its {slots} slots of {slot_bytes} need more")]
    TooShort { got: u64, slots: u32, slot_bytes: u64 },
    #[error("the spool was announced as {said}, but {problem}")]
    Kind { said: &'static str, problem: &'static str },
    #[error("the memory spool is not sealed against shrinking (F_SEAL_SHRINK)")]
    NotSealed,
    #[error("failed to map or inspect the spool: {0}")]
    Io(#[from] std::io::Error),
    #[error("the spool is full: {0}")]
    NoSpace(std::io::Error),
    #[error(transparent)]
    Storage(#[from] meetpoint_storage::Error),
}

/// A spool for writing.
pub(crate) struct Spool {
    slot_bytes: u64,
    body: Body,
    bytes_written: u64,
}

enum Body {
    Memory { mapping: SharedMapping, throttle: Option<Throttle> },
    File { engine: Box<dyn Engine>, file: FileId, meter: Option<Meter>, patience: Pace },
    Stream { pieces: Pieces, throttle: Option<Throttle> },
}

impl Spool {
    /// A spool whose slots are in the memory of a remote host.
    pub(crate) fn stream(slot_bytes: u64, pace: Pace) -> Self {
        let body = Body::Stream { pieces: Pieces::default(), throttle: throttle(pace) };
        Self { slot_bytes, body, bytes_written: 0 }
    }

    /// Sends what was written to a slot since the last call, waiting while the connection is full;
    /// `false` if `go_on` cancelled it or the host has disconnected. Without effect on slots that
    /// the host shares.
    pub(crate) fn send(
        &mut self,
        slot: u32,
        to: &Sender<OutgoingMessage>,
        go_on: GoOn<'_>,
    ) -> bool {
        match &mut self.body {
            Body::Memory { .. } | Body::File { .. } => true,
            Body::Stream { pieces, throttle } => {
                // The time of sending counts towards the time that the bandwidth requires.
                let begun = throttle.as_mut().map(|throttle| (throttle.begin(), throttle));
                let bytes = pieces.bytes();
                pieces.send(slot, to, go_on)
                    && begun.is_none_or(|(begun, throttle)| {
                        throttle.finish(begun, Direction::Write, bytes, go_on)
                    })
            }
        }
    }

    /// Opens a spool that a host handed over, after checking that it has the announced geometry.
    pub(crate) fn open(
        fd: BorrowedFd<'_>,
        geometry: Geometry,
        pace: Pace,
        kind: EngineKind,
    ) -> Result<Self, SpoolError> {
        let Geometry { slots, slot_bytes, .. } = geometry;
        let stat = fstat(fd).map_err(std::io::Error::from)?;
        let got = u64::try_from(stat.st_size).unwrap_or(0);
        match slot_bytes.checked_mul(u64::from(slots)) {
            Some(bytes) if bytes <= got => {}
            _ => return Err(SpoolError::TooShort { got, slots, slot_bytes }),
        }
        let body = match geometry.kind {
            SpoolKind::Memory => open_memory(fd, got, pace)?,
            SpoolKind::File => {
                if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                    let problem = "it is not a regular file";
                    return Err(SpoolError::Kind { said: "a file", problem });
                }
                open_file(fd, pace, kind)?
            }
            SpoolKind::Unspecified | SpoolKind::Stream => {
                let problem = "the kinds with a descriptor are memory and file";
                return Err(SpoolError::Kind { said: "of no kind", problem });
            }
        };
        Ok(Self { slot_bytes, body, bytes_written: 0 })
    }

    /// Writes a batch's payload, the first `bytes` of `payload`, after the space for its header.
    /// `false` if `go_on` cancelled it, which is possible only for memory; a write to a file always
    /// completes.
    pub(crate) fn write_payload(
        &mut self,
        slot: u32,
        payload: &mut AlignedBuffer,
        bytes: usize,
        go_on: GoOn<'_>,
    ) -> Result<bool, SpoolError> {
        let offset = u64::from(slot) * self.slot_bytes + HEADER_BYTES as u64;
        self.write(offset, payload, bytes, go_on)
    }

    /// Writes a slot's header, which makes it visible.
    pub(crate) fn write_header(
        &mut self,
        slot: u32,
        header: &mut AlignedBuffer,
        go_on: GoOn<'_>,
    ) -> Result<bool, SpoolError> {
        self.write(u64::from(slot) * self.slot_bytes, header, HEADER_BYTES, go_on)
    }

    fn write(
        &mut self,
        offset: u64,
        buffer: &mut AlignedBuffer,
        bytes: usize,
        go_on: GoOn<'_>,
    ) -> Result<bool, SpoolError> {
        let whole = match &mut self.body {
            Body::Memory { mapping, throttle } => {
                let begun = throttle.as_mut().map(|throttle| (throttle.begin(), throttle));
                mapping.write(offset, &buffer.as_slice()[..bytes]);
                begun.is_none_or(|(begun, throttle)| {
                    throttle.finish(begun, Direction::Write, bytes as u64, go_on)
                })
            }
            Body::File { engine, file, patience, .. } => {
                write_file(engine.as_mut(), *file, *patience, offset, buffer, bytes, go_on)?;
                true
            }
            Body::Stream { pieces, .. } => {
                pieces.add(offset % self.slot_bytes, &buffer.as_slice()[..bytes]);
                true
            }
        };
        self.bytes_written += bytes as u64;
        Ok(whole)
    }

    /// Bytes written, headers included.
    pub(crate) fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    /// The achieved write bandwidth, if it is limited.
    pub(crate) fn achieved(&self) -> Option<Figures> {
        match &self.body {
            Body::Memory { throttle, .. } | Body::Stream { throttle, .. } => {
                throttle.as_ref().map(|throttle| throttle.achieved().write)
            }
            Body::File { meter, .. } => meter.as_ref().map(|meter| meter.achieved().write),
        }
    }
}

fn open_memory(fd: BorrowedFd<'_>, bytes: u64, pace: Pace) -> Result<Body, SpoolError> {
    let Ok(seals) = fcntl_get_seals(fd) else {
        return Err(SpoolError::Kind { said: "memory", problem: "it cannot be sealed" });
    };
    if !seals.contains(SealFlags::SHRINK) {
        return Err(SpoolError::NotSealed);
    }
    let mapping = SharedMapping::new(fd, bytes)?;
    Ok(Body::Memory { mapping, throttle: throttle(pace) })
}

/// Memory has no command latency.
fn throttle(pace: Pace) -> Option<Throttle> {
    let pace = Pace { latency: Duration::ZERO, ..pace };
    pace.write_bytes_per_second.is_some().then(|| Throttle::new(pace))
}

fn open_file(fd: BorrowedFd<'_>, pace: Pace, kind: EngineKind) -> Result<Body, SpoolError> {
    let flags = fcntl_getfl(fd).map_err(std::io::Error::from)?;
    if flags & OFlags::RWMODE == OFlags::RDONLY {
        return Err(SpoolError::Kind { said: "a file", problem: "it is open only for reading" });
    }
    let file = File::from(fd.as_fd().try_clone_to_owned()?);
    let (mut engine, meter) = slowed(meetpoint_storage::open_engine(kind, 2)?.engine, pace);
    let file = engine.adopt(file, "the spool")?;
    Ok(Body::File { engine, file, meter, patience: pace })
}

/// The engine slowed down to a pace, and a meter of the achieved pace; without a limit, the engine
/// itself.
pub(crate) fn slowed(engine: Box<dyn Engine>, pace: Pace) -> (Box<dyn Engine>, Option<Meter>) {
    if pace == Pace::default() {
        return (engine, None);
    }
    let slow = SlowEngine::new(engine, pace);
    let meter = slow.meter();
    (Box::new(slow), Some(meter))
}

/// Writes and waits. While a device of this pace would still be writing, the worker sends
/// heartbeats; after that, the storage hangs, and it sends none.
fn write_file(
    engine: &mut dyn Engine,
    file: FileId,
    pace: Pace,
    offset: u64,
    buffer: &mut AlignedBuffer,
    bytes: usize,
    go_on: GoOn<'_>,
) -> Result<(), SpoolError> {
    let start = Instant::now();
    let patience = match pace.write_bytes_per_second {
        Some(rate) => Duration::from_secs_f64(1.5 * bytes as f64 / rate as f64) + pace.latency,
        None => pace.latency,
    };
    let memory = std::mem::replace(buffer, AlignedBuffer::zeroed(0));
    let capacity = memory.capacity();
    let bytes = bytes.next_multiple_of(meetpoint_storage::BLOCK_BYTES);
    let kind = RequestKind::Write;
    let request = Request { token: 0, file, kind, offset, bytes, buffer: memory };
    if let Err(refused) = engine.submit(request) {
        *buffer = refused.request.buffer;
        return Err(refused.error.into());
    }
    let mut done = Vec::with_capacity(1);
    while engine.in_flight() > 0 {
        if let Err(error) = engine.wait(WAIT_SLICE, &mut done) {
            *buffer = AlignedBuffer::zeroed(capacity);
            return Err(error.into());
        }
        if start.elapsed() < patience {
            go_on();
        }
    }
    let completion = done.pop().expect("one request was in flight and is no more");
    *buffer = completion.buffer;
    match completion.result {
        Ok(_) => Ok(()),
        Err(meetpoint_storage::Error::Io { source, .. })
            if source.kind() == std::io::ErrorKind::StorageFull =>
        {
            Err(SpoolError::NoSpace(source))
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, fcntl_add_seals, ftruncate, memfd_create};
    use std::os::unix::fs::FileExt;

    const SLOT: u64 = 3 * 4096;

    fn memfd(bytes: u64, seals: SealFlags) -> File {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("spool", flags).unwrap());
        ftruncate(&file, bytes).unwrap();
        fcntl_add_seals(&file, seals).unwrap();
        file
    }

    fn open(file: &File, kind: SpoolKind, slots: u32, pace: Pace) -> Result<Spool, SpoolError> {
        let geometry = Geometry { kind, slots, slot_bytes: SLOT };
        Spool::open(file.as_fd(), geometry, pace, EngineKind::Auto)
    }

    fn refusal(file: &File, kind: SpoolKind, slots: u32) -> String {
        open(file, kind, slots, Pace::default()).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn a_payload_follows_its_header_in_memory_and_in_a_file() {
        let seals = SealFlags::SHRINK | SealFlags::GROW;
        let file = tempfile::tempfile().unwrap();
        file.set_len(4 * SLOT).unwrap();
        for (file, kind) in [(memfd(4 * SLOT, seals), SpoolKind::Memory), (file, SpoolKind::File)] {
            let mut spool = open(&file, kind, 4, Pace::default()).unwrap();
            let (mut payload, mut header) =
                (AlignedBuffer::zeroed(8192), AlignedBuffer::zeroed(4096));
            payload.as_mut_slice()[..5000].fill(7);
            header.as_mut_slice().fill(9);
            assert!(spool.write_payload(3, &mut payload, 5000, &mut || true).unwrap());
            assert!(spool.write_header(3, &mut header, &mut || true).unwrap());
            assert_eq!((payload.capacity(), header.capacity()), (8192, 4096));
            let mut slot = vec![0; SLOT as usize];
            file.read_exact_at(&mut slot, 3 * SLOT).unwrap();
            assert!(slot[..4096].iter().all(|byte| *byte == 9));
            assert!(slot[4096..9096].iter().all(|byte| *byte == 7));
            assert!(slot[9096..].iter().all(|byte| *byte == 0));
            assert_eq!(spool.bytes_written(), 9096);
        }
    }

    #[test]
    fn a_spool_that_is_not_what_the_host_says_is_refused() {
        let sealed = memfd(4 * SLOT, SealFlags::SHRINK);
        assert!(refusal(&sealed, SpoolKind::Memory, 5).contains("need more"));
        assert!(refusal(&sealed, SpoolKind::Unspecified, 4).contains("of no kind"));
        let open_ended = memfd(4 * SLOT, SealFlags::GROW);
        assert!(refusal(&open_ended, SpoolKind::Memory, 4).contains("F_SEAL_SHRINK"));
        let plain = tempfile::NamedTempFile::new().unwrap();
        plain.as_file().set_len(4 * SLOT).unwrap();
        let read_only = File::open(plain.path()).unwrap();
        assert!(refusal(&read_only, SpoolKind::File, 4).contains("only for reading"));
        let huge = Geometry { kind: SpoolKind::File, slots: u32::MAX, slot_bytes: u64::MAX };
        let opened = Spool::open(plain.as_file().as_fd(), huge, Pace::default(), EngineKind::Auto);
        assert!(matches!(opened.map(|_| ()), Err(SpoolError::TooShort { .. })));
    }

    #[test]
    fn a_file_on_a_full_disk_is_reported() {
        let full = File::options().read(true).write(true).open("/dev/full").unwrap();
        let engine = meetpoint_storage::open_engine(EngineKind::Threads, 2).unwrap().engine;
        let mut engine = engine;
        let file = engine.adopt(full, "the spool").unwrap();
        let mut buffer = AlignedBuffer::zeroed(4096);
        let pace = Pace::default();
        let written = write_file(engine.as_mut(), file, pace, 0, &mut buffer, 4096, &mut || true);
        assert!(matches!(written, Err(SpoolError::NoSpace(_))), "{written:?}");
        assert_eq!(buffer.capacity(), 4096);
    }

    #[test]
    fn a_memory_spool_with_a_bandwidth_can_be_given_up_while_it_waits() {
        let seals = SealFlags::SHRINK;
        let pace = Pace { write_bytes_per_second: Some(1), ..Pace::default() };
        let mut spool = open(&memfd(SLOT, seals), SpoolKind::Memory, 1, pace).unwrap();
        let mut payload = AlignedBuffer::zeroed(8192);
        assert!(!spool.write_payload(0, &mut payload, 8192, &mut || false).unwrap());
    }
}
