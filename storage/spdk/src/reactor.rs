//! The loop of SPDK's thread: takes commands, lets SPDK work, sleeps when there is nothing to do.

use crate::ending::Requests;
use crate::ffi::{Bdev, Environment};
use crate::source::{FileModule, Source};
use crate::transfer::{Done, Failure, Transfer};
use crate::{Error, Options};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::time::{Duration, Instant};

/// Bdevs that stay created after their last user has closed them, because a job opens the same
/// files again and creating one takes milliseconds.
const IDLE_MAX: usize = 16;

/// How often SPDK works while nothing is in flight: it keeps connections alive.
const IDLE_POLL: Duration = Duration::from_millis(10);

/// How long the thread polls without a pause after the last progress.
const SPIN: Duration = Duration::from_micros(50);

/// Pause between polls after that, while transfers are in flight.
const PAUSE: Duration = Duration::from_micros(20);

/// Commands that are taken between two polls.
const COMMANDS_MAX: usize = 64;

/// Longest time that the end waits for transfers in flight.
const END_MAX: Duration = Duration::from_secs(5);

/// Identifies an open device; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviceId(pub(crate) u64);

/// The properties of an open device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) id: DeviceId,
    pub(crate) bdev: String,
    pub(crate) block_bytes: u32,
    pub(crate) blocks: u64,
}

/// A message to the thread.
pub(crate) enum Command {
    /// Opens a device. If the answer is not awaited any longer, it is closed again.
    Open { source: Source, writable: bool, reply: SyncSender<Result<Geometry, Error>> },
    /// Closes a device after its transfers have ended.
    Close(DeviceId),
    /// Starts a transfer.
    Transfer(DeviceId, Transfer),
}

/// A bdev that this thread created, or found in the configuration.
struct Created {
    source: Source,
    name: String,
    users: usize,
}

/// An open device.
struct Open<'env> {
    id: DeviceId,
    bdev: Bdev<'env>,
    created: usize,
    is_closing: bool,
}

struct Reactor<'env> {
    environment: &'env Environment,
    /// Numbers of names; `None` after deletion.
    created: Vec<Option<Created>>,
    open: Vec<Open<'env>>,
    next_id: u64,
    /// Transfers for which SPDK had no memory.
    waiting: VecDeque<(DeviceId, Transfer)>,
}

/// Runs SPDK until it is stopped or every sender of commands is gone. Reports once whether it
/// started.
pub(crate) fn run(
    options: &Options,
    commands: &Receiver<Command>,
    requests: &Requests,
    started: &SyncSender<Result<(), Error>>,
) {
    let environment = match Environment::start(options, requests) {
        Ok(environment) => environment,
        Err(error) => {
            let _ = started.send(Err(error));
            return;
        }
    };
    let _ = started.send(Ok(()));
    let mut reactor = Reactor {
        environment: &environment,
        created: Vec::new(),
        open: Vec::new(),
        next_id: 0,
        waiting: VecDeque::new(),
    };
    reactor.serve(commands, requests);
    if !reactor.close_all(requests) {
        // A device hangs with a transfer: its memory is in use, so nothing can be freed.
        std::mem::forget(reactor);
        std::mem::forget(environment);
    }
}

impl Reactor<'_> {
    fn serve(&mut self, commands: &Receiver<Command>, requests: &Requests) {
        let mut progress = Instant::now();
        while !requests.is_stopped() {
            let is_busy = self.environment.in_flight() > 0 || !self.waiting.is_empty();
            let command = if !is_busy {
                commands.recv_timeout(IDLE_POLL)
            } else if progress.elapsed() < SPIN {
                commands.try_recv().map_err(|error| match error {
                    TryRecvError::Empty => RecvTimeoutError::Timeout,
                    TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
                })
            } else {
                commands.recv_timeout(PAUSE)
            };
            let first = match command {
                Ok(command) => Some(command),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let more = std::iter::from_fn(|| commands.try_recv().ok()).take(COMMANDS_MAX);
            let more = first.is_some().then_some(more).into_iter().flatten();
            for command in first.into_iter().chain(more) {
                progress = Instant::now();
                match command {
                    Command::Open { source, writable, reply } => {
                        let opened = self.open(source, writable);
                        let id = opened.as_ref().ok().map(|geometry| geometry.id);
                        if let (Err(_), Some(id)) = (reply.try_send(opened), id) {
                            self.close(id);
                        }
                    }
                    Command::Close(id) => self.close(id),
                    Command::Transfer(id, transfer) => self.submit(id, transfer),
                }
            }
            if self.environment.poll() {
                progress = Instant::now();
            }
            for _ in 0..self.waiting.len() {
                if let Some((id, transfer)) = self.waiting.pop_front() {
                    self.submit(id, transfer);
                }
            }
            self.sweep();
        }
    }

    fn open(&mut self, source: Source, writable: bool) -> Result<Geometry, Error> {
        let existing = |created: &Option<Created>| {
            created.as_ref().is_some_and(|created| created.source.is_same(&source))
        };
        let index = match self.created.iter().position(existing) {
            Some(index) => index,
            None => self.create(source)?,
        };
        let created = self.created[index].as_mut().expect("it was found or created");
        let bdev = created.source.bdev(&created.name);
        let needs_dma = created.source.may_need_dma();
        match Bdev::open(self.environment, &bdev, writable, needs_dma) {
            Ok(bdev) => {
                created.users += 1;
                let id = DeviceId(self.next_id);
                self.next_id += 1;
                let geometry = Geometry {
                    id,
                    bdev: bdev.name().to_owned(),
                    block_bytes: bdev.block_bytes,
                    blocks: bdev.blocks,
                };
                self.open.push(Open { id, bdev, created: index, is_closing: false });
                Ok(geometry)
            }
            Err(error) => {
                if created.users == 0 {
                    self.delete(index);
                }
                Err(error)
            }
        }
    }

    fn create(&mut self, source: Source) -> Result<usize, Error> {
        self.delete_idle(IDLE_MAX);
        let free = self.created.iter().position(Option::is_none);
        let index = free.unwrap_or(self.created.len());
        // A name is not reused: SPDK may still be deleting the former one.
        let name = format!("meetpoint{}", self.next_id);
        self.next_id += 1;
        let is_uring = matches!(&source, Source::File(file) if file.module == FileModule::Uring);
        if is_uring && !self.environment.has_method(c"bdev_uring_create") {
            let reason = "this SPDK was configured without liburing (--with-uring); use aio";
            return Err(Error::Open { bdev: name, reason: reason.to_owned() });
        }
        if let Some(json) = source.creation(&name) {
            let failed = |reason| Error::Open { bdev: source.bdev(&name), reason };
            self.environment.load(&json).map_err(failed)?;
        }
        if index == self.created.len() {
            self.created.push(None);
        }
        self.created[index] = Some(Created { source, name, users: 0 });
        Ok(index)
    }

    /// Deletes created bdevs without users until at most `rest` are left.
    fn delete_idle(&mut self, rest: usize) {
        loop {
            let is_idle = |created: &Option<Created>| {
                created.as_ref().is_some_and(|created| created.users == 0)
            };
            if self.created.iter().filter(|created| is_idle(created)).count() <= rest {
                return;
            }
            if let Some(index) = self.created.iter().position(is_idle) {
                self.delete(index);
            }
        }
    }

    fn delete(&mut self, index: usize) {
        if let Some(created) = self.created[index].take()
            && let Some(json) = created.source.deletion(&created.name)
        {
            // A bdev that is not deleted costs a descriptor, nothing else.
            let _ = self.environment.load(&json);
        }
    }

    fn submit(&mut self, id: DeviceId, transfer: Transfer) {
        let Some(open) = self.open.iter().find(|open| open.id == id) else {
            let result = Err(Failure::Os(libc::EBADF));
            let _ = transfer.reply.try_send(Done { token: transfer.token, result });
            return;
        };
        if let Err(transfer) = open.bdev.submit(self.environment, transfer) {
            self.waiting.push_back((id, transfer));
        }
    }

    fn close(&mut self, id: DeviceId) {
        if let Some(open) = self.open.iter_mut().find(|open| open.id == id) {
            open.is_closing = true;
        }
        self.sweep();
    }

    /// Closes the devices that are no longer used.
    fn sweep(&mut self) {
        let waiting = &self.waiting;
        let is_done = |open: &mut Open<'_>| {
            let id = open.id;
            open.is_closing
                && open.bdev.in_flight() == 0
                && !waiting.iter().any(|(other, _)| *other == id)
        };
        for open in self.open.extract_if(.., is_done) {
            if let Some(created) = &mut self.created[open.created] {
                created.users -= 1;
            }
        }
    }

    /// Whether everything is closed.
    fn close_all(&mut self, requests: &Requests) -> bool {
        let deadline = Instant::now() + END_MAX;
        let is_over = || requests.is_abandoned() || Instant::now() >= deadline;
        while self.environment.in_flight() > 0 && !is_over() {
            self.environment.poll();
        }
        if self.environment.in_flight() > 0 {
            return false;
        }
        self.waiting.clear();
        self.open.clear();
        self.created.iter_mut().flatten().for_each(|created| created.users = 0);
        self.delete_idle(0);
        true
    }
}
