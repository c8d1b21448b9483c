//! System calls of io_uring; no other file makes any.
#![expect(unsafe_code, reason = "submissions carry raw pointers to buffers")]

use super::DROP_WAIT;
use crate::slots::Slots;
use crate::transfer::{Piece, Work};
use crate::{RequestKind, RingRefusal};
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

/// The id of the completion of [`Ring::push_cancel`].
const CANCEL: u64 = u64::MAX;

/// How long to wait before a retry if the kernel has no room for a request.
const BUSY_PAUSE: Duration = Duration::from_millis(1);

/// A ring with room for a given number of requests, one entry each, and one cancellation. Commands
/// of a driver need larger entries, so the entry types are parameters.
pub(crate) struct Ring<
    S: squeue::EntryMarker = squeue::Entry,
    C: cqueue::EntryMarker = cqueue::Entry,
> {
    ring: IoUring<S, C>,
}

impl<S, C> Ring<S, C>
where
    S: squeue::EntryMarker + From<squeue::Entry>,
    C: cqueue::EntryMarker + Into<cqueue::Entry>,
{
    pub(crate) fn new(depth: usize) -> Result<Self, RingRefusal> {
        let entries = (depth + 1).next_power_of_two() as u32;
        // Completions need not interrupt a thread that is decoding; Linux before 5.19 does not
        // support this flag.
        let ring = IoUring::<S, C>::builder()
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .build(entries)
            .or_else(|error| match error.raw_os_error() {
                Some(libc::EINVAL) => IoUring::<S, C>::builder().build(entries),
                _ => Err(error),
            })
            .map_err(|error| RingRefusal::of_setup(error, uring_disabled().as_deref()))?;
        match ring.params().is_feature_ext_arg() {
            true => Ok(Self { ring }),
            false => Err(RingRefusal::NoTimedWait),
        }
    }

    /// Queues the cancellation of everything.
    pub(crate) fn push_cancel(&mut self) {
        let entry = opcode::AsyncCancel2::new(types::CancelBuilder::any()).build();
        self.push_entry(&entry.user_data(CANCEL).into());
    }

    /// Cancels all requests and waits up to [`DROP_WAIT`] for their completions. Leaks the slots of
    /// requests that have not completed by then, because the kernel may still use their buffers.
    pub(crate) fn abandon<T>(&mut self, slots: &mut Slots<T>) {
        if slots.len() == 0 {
            return;
        }
        self.push_cancel();
        let deadline = Instant::now() + DROP_WAIT;
        while slots.len() > 0 {
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() || self.enter(remaining).is_err() {
                break;
            }
            while let Some((slot, _)) = self.pop() {
                if slot != CANCEL {
                    slots.remove(slot);
                }
            }
        }
        if slots.len() > 0 {
            std::mem::forget(std::mem::take(slots));
        }
    }

    /// Queues an entry. The engine keeps the memory that it points to until the completion arrives.
    pub(crate) fn push_entry(&mut self, entry: &S) {
        // SAFETY: the engine holds the buffer and the file of each request until its completion
        // arrives, and leaks the buffer if none arrives.
        let pushed = unsafe { self.ring.submission().push(entry) };
        pushed.expect("the ring has room: it has one entry for each request and one to cancel");
    }

    /// Entries not yet submitted to the kernel.
    pub(crate) fn queued(&mut self) -> usize {
        self.ring.submission().len()
    }

    /// Submits the queued entries to the kernel.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        passing(self.ring.submit())
    }

    /// Submits the queued entries and waits for a completion, at most `timeout`.
    pub(crate) fn enter(&mut self, timeout: Duration) -> io::Result<()> {
        let timeout = types::Timespec::from(timeout);
        let limit = types::SubmitArgs::new().timespec(&timeout);
        let entered = self.ring.submitter().submit_with_args(1, &limit);
        if entered.as_ref().is_err_and(|error| is_busy(error.raw_os_error())) {
            std::thread::sleep(BUSY_PAUSE);
        }
        passing(entered)
    }

    /// The next completion that has arrived.
    pub(crate) fn pop(&mut self) -> Option<(u64, io::Result<usize>)> {
        let entry: cqueue::Entry = self.ring.completion().next()?.into();
        let answer = usize::try_from(entry.result())
            .map_err(|_| io::Error::from_raw_os_error(-entry.result()));
        Some((entry.user_data(), answer))
    }

    /// The kernel's features that are shown in reports.
    pub(super) fn features(&self) -> Vec<&'static str> {
        let params = self.ring.params();
        let all = [
            ("nodrop", params.is_feature_nodrop()),
            ("ext_arg", params.is_feature_ext_arg()),
            ("native_workers", params.is_feature_native_workers()),
            ("resource_tagging", params.is_feature_resource_tagging()),
            ("min_timeout", params.is_feature_min_timeout()),
        ];
        all.into_iter().filter_map(|(name, there)| there.then_some(name)).collect()
    }

    /// Registers memory, once per ring. Requests with buffers in it may then be pushed as
    /// `registered`.
    pub(super) fn register(&self, start: NonNull<u8>, bytes: usize) -> io::Result<()> {
        let memory = libc::iovec { iov_base: start.as_ptr().cast(), iov_len: bytes };
        // SAFETY: the kernel pins the pages, and transfers into them are requested only with a
        // buffer that keeps them allocated.
        unsafe { self.ring.submitter().register_buffers(&[memory]) }
    }
}

impl Ring {
    /// Queues the next piece of a request; its completion has this `id`.
    ///
    /// `registered` is whether its buffer is registered. The engine keeps `work`, and with it the
    /// buffer, until the completion arrives.
    pub(super) fn push(&mut self, work: &Work<File>, registered: bool, id: u64) {
        let piece = work.transfer.next();
        let fd = types::Fd(work.file.body.as_raw_fd());
        let entry = match work.kind() {
            RequestKind::Sync => opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build(),
            RequestKind::Read => {
                let (to, bytes) = memory(work, piece);
                if registered {
                    opcode::ReadFixed::new(fd, to, bytes, 0).offset(piece.offset).build()
                } else {
                    opcode::Read::new(fd, to, bytes).offset(piece.offset).build()
                }
            }
            RequestKind::Write => {
                let (from, bytes) = memory(work, piece);
                if registered {
                    opcode::WriteFixed::new(fd, from, bytes, 0).offset(piece.offset).build()
                } else {
                    opcode::Write::new(fd, from, bytes).offset(piece.offset).build()
                }
            }
        };
        self.push_entry(&entry.user_data(id));
    }
}

/// Address and length of a piece in memory.
pub(crate) fn memory<B>(work: &Work<B>, piece: Piece) -> (*mut u8, u32) {
    let bytes = u32::try_from(piece.bytes).expect("a piece is at most 1 GiB");
    assert!(piece.at + piece.bytes <= work.buffer.capacity(), "a piece lies in its buffer");
    // SAFETY: the piece is within the buffer, as checked above.
    (unsafe { work.buffer.start().as_ptr().add(piece.at) }, bytes)
}

/// Ignores errors after which a wait is repeated: a timeout, an interruption, a busy kernel.
fn passing(entered: io::Result<usize>) -> io::Result<()> {
    match entered.map_err(|error| (error.raw_os_error(), error)) {
        Ok(_) | Err((Some(libc::ETIME | libc::EINTR), _)) => Ok(()),
        Err((code, _)) if is_busy(code) => Ok(()),
        Err((_, error)) => Err(error),
    }
}

/// Whether the kernel had no room for a request.
fn is_busy(code: Option<i32>) -> bool {
    matches!(code, Some(libc::EAGAIN | libc::EBUSY))
}

/// The sysctl `kernel.io_uring_disabled`, if the kernel has it.
fn uring_disabled() -> Option<String> {
    let value = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").ok()?;
    Some(value.trim().to_owned())
}
