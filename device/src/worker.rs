//! The preparing thread: takes batches from the queue, prepares them, publishes them.
//!
//! A batch that cannot be prepared or written is reported and left to the host; it never ends the
//! worker. A job has one or several workers. All workers of a device take turns, one batch each.

use crate::clock::{nanoseconds, thread_cpu_time};
use crate::cores;
use crate::disturbance::KernelCounters;
use crate::fault::BatchFaults;
use crate::governor::CpuThrottle;
use crate::memory::own_memory_bytes;
use crate::meters::{Heartbeats, Totals};
use crate::metrics::ClientUse;
use crate::owner::DisconnectHandle;
use crate::pieces::OutgoingMessage;
use crate::queue::{Assignment, Next, Queue, SlotGrant};
use crate::reporting::Reporter;
use crate::session::Job;
use crate::shares::Claimant;
use crate::spool::SpoolError;
use crate::turns::{Member, QueueEnd, Turn, Turns};
use meetpoint_format::column::BatchLayout;
use meetpoint_format::slot::{HEADER_BYTES, SlotHeader};
use meetpoint_format::wire::{DeviceMessage, Failed, Published, device_message::Message};
use meetpoint_kernels::Interrupt;
use meetpoint_link::{Emulation, Fault};
use meetpoint_prepare::{Error as PrepareError, PreparedBatch, abandoning};
use meetpoint_storage::AlignedBuffer;
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Sender;
use tonic::Status;

/// Interval of heartbeats while waiting for work or for a slot.
const WAIT_SLICE: Duration = Duration::from_millis(50);

/// Longest reason that is sent for a failed batch.
const REASON_CHARS_MAX: usize = 2000;

/// Everything that the worker of one Run stream needs besides its job.
pub(crate) struct WorkerEnvironment {
    pub(crate) queue: Arc<Queue>,
    pub(crate) heartbeats: Arc<Heartbeats>,
    pub(crate) messages: Sender<OutgoingMessage>,
    pub(crate) emulation: Emulation,
    pub(crate) core: Option<usize>,
    pub(crate) faults: Vec<Fault>,
    pub(crate) turns: Arc<Turns>,
    /// For whom it works.
    pub(crate) claimant: Claimant,
    /// What this client has used.
    pub(crate) client: Arc<ClientUse>,
    /// Where failed batches are logged; `None`: nowhere.
    pub(crate) failures: Option<Arc<Reporter>>,
    /// Sums over all workers of the job.
    pub(crate) totals: Arc<Mutex<Totals>>,
    pub(crate) disconnect: Arc<DisconnectHandle>,
}

/// The thread's state.
struct Worker {
    job: Job,
    environment: WorkerEnvironment,
    throttle: CpuThrottle,
    payload: AlignedBuffer,
    header: AlignedBuffer,
    /// What was already added to the totals.
    added: Added,
    /// Batches that this worker published.
    published: u64,
    member: Member,
    /// The fence of the current batch: once it is void, decoding is interrupted.
    fence: Arc<AtomicU64>,
}

/// Counters of a worker that grow.
#[derive(Debug, Clone, Copy, Default)]
struct Added {
    cpu: Duration,
    read_bytes: u64,
    written_bytes: u64,
}

/// Why a batch was not published.
enum Abandonment {
    /// It became void, or the job is over.
    Void,
    /// The reason, which is reported to the host.
    Failed(String),
    /// A sample is damaged; the host decides what to do.
    Damaged(String),
    /// Its pictures do not fit the slot that was reserved for it.
    TooLarge(String),
}

impl<E: std::error::Error> From<E> for Abandonment {
    fn from(error: E) -> Self {
        Self::Failed(error.to_string())
    }
}

/// The cause for which the host prepares a batch instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// This device, or the job.
    Device,
    /// A damaged sample.
    Sample,
    /// Pictures that are larger than the reserved memory.
    Size,
}

/// Times of one batch.
struct Clock {
    start: Instant,
    start_cpu: Duration,
    start_ns: u64,
    /// Waiting for a free slot, which is the host's time and not the batch's, and then for a turn.
    slot_wait: Duration,
    /// Stalled by a fault.
    stalled: Duration,
    /// The delay by faults, and the wait for storage, before this batch.
    stretched_before: Duration,
    idle_before: Duration,
}

/// Prepares batches until the queue is closed and returns how many it published. Call it on a
/// separate thread.
pub(crate) fn run(mut job: Job, environment: WorkerEnvironment) -> u64 {
    environment.heartbeats.this_thread();
    if let Some(core) = environment.core
        && let Err(error) = cores::pin(core)
    {
        let reason = format!("failed to pin the device's worker to core {core}: {error}");
        // If the host has disconnected, the error cannot be sent.
        let _ = environment.messages.blocking_send(Err(Status::internal(reason)));
        return 0;
    }
    let bytes = usize::try_from(job.payload_bytes_max).expect("memory for it was checked");
    let fence = Arc::new(AtomicU64::new(0));
    let (queue, current) = (Arc::clone(&environment.queue), Arc::clone(&fence));
    let interrupt = Interrupt::when(move || queue.is_void(current.load(Ordering::Relaxed)));
    // A limit of speed is based on the CPU time of this thread alone.
    let targets = environment.emulation.targets;
    let is_limited = targets.cpu_ratio.is_some();
    let counters = targets.is_limited().then(|| KernelCounters::of_this_thread(environment.core));
    job.preparer.set_interrupt(if is_limited { interrupt } else { abandoning(interrupt) });
    let mut worker = Worker {
        throttle: CpuThrottle::new(targets.cpu_ratio, Arc::clone(&job.waits), counters),
        payload: AlignedBuffer::zeroed(bytes),
        header: AlignedBuffer::zeroed(HEADER_BYTES),
        added: Added::default(),
        published: 0,
        member: environment.turns.join(environment.claimant.clone()),
        job,
        environment,
        fence,
    };
    worker.work();
    worker.add_up();
    worker.published
}

impl Worker {
    fn work(&mut self) {
        loop {
            let goes_on = match self.environment.queue.next(WAIT_SLICE) {
                Next::Nothing => true,
                Next::Batch(assignment) => self.batch(assignment),
                Next::Stopped => self.send_meters(),
                Next::Drained | Next::Closed => false,
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Handles one batch, including its message; `false` once the host has disconnected.
    fn batch(&mut self, reserved: Assignment) -> bool {
        let Assignment { epoch, batch, generation, fence } = reserved;
        self.environment.heartbeats.begin((epoch, batch, generation));
        let turn = self.wait_for_turn(reserved, QueueEnd::Tail);
        let claimed = match &turn {
            Ok(_) => self.environment.queue.claim(fence),
            Err(_) => {
                self.environment.queue.leave(fence);
                None
            }
        };
        let (Ok(turn), Some(at)) = (turn, claimed) else {
            self.environment.heartbeats.end();
            return true;
        };
        let (holder, _) = self.job.batching.holder(at.batch);
        if holder != self.job.device {
            drop(turn);
            self.environment.heartbeats.end();
            return self.send_failed(at, &self.not_held(at.batch, holder), Cause::Device);
        }
        self.environment.heartbeats.begin((at.epoch, at.batch, at.generation));
        let (plan, stretch) = turn.begin(&self.environment.faults);
        let mut clock = self.start_clock(stretch);
        let done = self.prepare_and_write(at, &plan, &mut clock, turn);
        let busy = self.enter(&clock, done.is_ok());
        match &done {
            Ok(_) => {
                self.published += 1;
                self.environment.client.batches.inc();
                let samples = self.job.batching.batch_len(at.batch);
                self.environment.client.samples.inc_by(samples.into());
            }
            Err(Abandonment::Void) => {}
            Err(
                Abandonment::Failed(reason)
                | Abandonment::Damaged(reason)
                | Abandonment::TooLarge(reason),
            ) => {
                self.environment.client.failed.inc();
                self.log_failure(at, reason);
            }
        }
        let was_sent = match done {
            Ok(slot) => {
                self.environment.queue.publish(slot);
                self.send(Message::Published(Published {
                    epoch: at.epoch,
                    batch: at.batch,
                    generation: at.generation,
                    slot,
                    busy_ns: nanoseconds(busy),
                    started_ns: clock.start_ns,
                    published_ns: monotonic_ns(),
                })) && self.send_meters()
            }
            Err(Abandonment::Void) => true,
            Err(Abandonment::Failed(reason)) => self.send_failed(at, &reason, Cause::Device),
            Err(Abandonment::Damaged(reason)) => self.send_failed(at, &reason, Cause::Sample),
            Err(Abandonment::TooLarge(reason)) => self.send_failed(at, &reason, Cause::Size),
        };
        self.environment.heartbeats.end();
        was_sent
    }

    /// Logs a batch that failed, for the operator of the device.
    fn log_failure(&self, at: Assignment, reason: &str) {
        let Some(failures) = &self.environment.failures else { return };
        let (client, Assignment { epoch, batch, .. }) = (&self.environment.claimant.client, at);
        let sentence =
            format!("batch {batch} of epoch {epoch} failed for client {client}: {reason}");
        failures.say(&sentence, Instant::now());
    }

    fn send_failed(&self, at: Assignment, reason: &str, cause: Cause) -> bool {
        let reason = self.job.shown_paths.rename(reason);
        self.send(Message::Failed(Failed {
            epoch: at.epoch,
            batch: at.batch,
            generation: at.generation,
            reason: reason.chars().take(REASON_CHARS_MAX).collect(),
            is_damage: cause == Cause::Sample,
            exceeds_slot: cause == Cause::Size,
        }))
    }

    fn not_held(&self, batch: u32, holder: u16) -> String {
        let own = self.job.device;
        format!(
            "batch {batch} belongs to device {holder}, but this is device {own}: grant it there"
        )
    }

    fn wait_for_turn(&mut self, at: Assignment, end: QueueEnd) -> Result<Turn, Abandonment> {
        let started = Instant::now();
        let queue = &self.environment.queue;
        let turn = self.member.wait(end, &self.environment.heartbeats, &mut || {
            let is_begun = end == QueueEnd::Head;
            !queue.is_void(at.fence) && (is_begun || !queue.is_draining())
        });
        let waited = started.elapsed();
        self.totals().turn_wait += waited;
        self.environment.client.add_turn_wait(waited);
        turn.ok_or(Abandonment::Void)
    }

    fn start_clock(&mut self, stretch: f64) -> Clock {
        self.throttle.stretch(stretch);
        self.throttle.begin_batch();
        self.throttle.skip();
        let start = Instant::now();
        self.totals().occupied.begin(start);
        Clock {
            start,
            start_cpu: thread_cpu_time(),
            start_ns: monotonic_ns(),
            slot_wait: Duration::ZERO,
            stalled: Duration::ZERO,
            stretched_before: self.throttle.stretched(),
            idle_before: self.job.waits.idle(),
        }
    }

    /// Prepares a batch and writes payload and header; returns the slot, still unpublished. The
    /// turn ends with it.
    fn prepare_and_write(
        &mut self,
        at: Assignment,
        plan: &BatchFaults,
        clock: &mut Clock,
        turn: Turn,
    ) -> Result<u32, Abandonment> {
        let samples = self.job.batching.batch_len(at.batch);
        let layout = self.prepare(at, samples, plan, clock)?;
        self.check_memory()?;
        let bytes = usize::try_from(layout.bytes()).expect("it was written");
        let header = self.encode_header(at, &layout);
        if plan.corrupt {
            self.payload.as_mut_slice()[bytes / 2] ^= 1;
        }
        self.pay(at)?;
        if plan.spool_full {
            let error = std::io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error());
            return Err(SpoolError::NoSpace(error).into());
        }
        let (slot, turn) = self.wait_for_slot(at, clock, turn)?;
        self.header.as_mut_slice()[..HEADER_BYTES].copy_from_slice(&header[..]);
        let written = if plan.tear { bytes / 2 } else { bytes };
        let done = self.write(at, slot, written);
        // The speed of sending depends on the host, and other hosts must not wait for it.
        drop(turn);
        let done = done.and_then(|()| self.send_slot(at, slot));
        if done.is_err() {
            self.environment.queue.give_back(slot);
        }
        done.map(|()| slot)
    }

    fn prepare(
        &mut self,
        at: Assignment,
        samples: u32,
        plan: &BatchFaults,
        clock: &mut Clock,
    ) -> Result<BatchLayout, Abandonment> {
        self.fence.store(at.fence, Ordering::Relaxed);
        let Self { job, environment, throttle, payload, .. } = self;
        let (queue, heartbeats) = (&environment.queue, &environment.heartbeats);
        let reads_are_paced = environment.emulation.targets.read_bytes_per_second.is_some()
            || environment.emulation.targets.latency_ns.is_some();
        let mut trap_is_set = plan.has_trap();
        let mut pace = |done: u32| {
            heartbeats.samples(done);
            if reads_are_paced {
                // An emulated drive is slow, not dead; while a real one hangs, the worker sends
                // no heartbeat.
                heartbeats.beat();
            }
            if trap_is_set && u64::from(done) * 2 >= u64::from(samples) {
                trap_is_set = false;
                let started = Instant::now();
                spring(plan, queue, &environment.disconnect);
                clock.stalled += started.elapsed();
                throttle.skip();
            }
            let mut go_on = || {
                heartbeats.beat();
                !queue.is_void(at.fence)
            };
            !queue.is_void(at.fence) && throttle.pay(&mut go_on)
        };
        let prepared = job.preparer.prepare(at.epoch, at.batch, payload, &mut pace);
        let PreparedBatch { layout, .. } = prepared.map_err(|error| match error {
            PrepareError::Interrupted => Abandonment::Void,
            error if error.is_damage() => Abandonment::Damaged(error.to_string()),
            error @ PrepareError::BatchTooLarge { .. } => Abandonment::TooLarge(error.to_string()),
            error => error.into(),
        })?;
        // A batch may end without a final check.
        pace(samples);
        if queue.is_void(at.fence) { Err(Abandonment::Void) } else { Ok(layout) }
    }

    fn encode_header(&self, at: Assignment, layout: &BatchLayout) -> Box<[u8; HEADER_BYTES]> {
        let columns = self.job.preparer.columns();
        SlotHeader {
            epoch: at.epoch,
            batch: at.batch,
            generation: at.generation,
            samples: layout.samples(),
            seed: self.job.batching.seed(),
            recipe: self.job.recipe,
            payload_bytes: layout.bytes(),
            columns: SlotHeader::table(columns, layout, self.payload.as_slice()),
        }
        .encode()
    }

    fn check_memory(&self) -> Result<(), Abandonment> {
        let Some(limit) = self.environment.emulation.memory_bytes_max else { return Ok(()) };
        let used = own_memory_bytes();
        if used <= limit {
            return Ok(());
        }
        Err(Abandonment::Failed(format!(
            "it took {used} bytes of memory, the device is limited to {limit}"
        )))
    }

    /// Sleeps for the computation since the last stage.
    fn pay(&mut self, at: Assignment) -> Result<(), Abandonment> {
        let Self { environment, throttle, .. } = self;
        let whole = throttle.pay(&mut || {
            environment.heartbeats.beat();
            !environment.queue.is_void(at.fence)
        });
        if whole && !environment.queue.is_void(at.fence) { Ok(()) } else { Err(Abandonment::Void) }
    }

    /// Waits for a free slot, and the turn to write it. While all are in use, another worker has
    /// the turn.
    fn wait_for_slot(
        &mut self,
        at: Assignment,
        clock: &mut Clock,
        turn: Turn,
    ) -> Result<(u32, Turn), Abandonment> {
        match self.environment.queue.take_slot(at.fence, Duration::ZERO) {
            SlotGrant::Slot(slot) => return Ok((slot, turn)),
            SlotGrant::Void => return Err(Abandonment::Void),
            SlotGrant::Full => drop(turn),
        }
        self.throttle.end_batch();
        let started = Instant::now();
        self.totals().occupied.end(started);
        let slot = loop {
            match self.environment.queue.take_slot(at.fence, WAIT_SLICE) {
                SlotGrant::Slot(slot) => break Ok(slot),
                SlotGrant::Void => break Err(Abandonment::Void),
                // The host is slow, not the device: report all samples as done and wait.
                SlotGrant::Full => self.environment.heartbeats.beat(),
            }
        };
        let waited = slot.and_then(|slot| match self.wait_for_turn(at, QueueEnd::Head) {
            Ok(turn) => Ok((slot, turn)),
            Err(lost) => {
                self.environment.queue.give_back(slot);
                Err(lost)
            }
        });
        let ended = Instant::now();
        self.totals().occupied.begin(ended);
        let waited_for_slot = ended - started;
        clock.slot_wait += waited_for_slot;
        self.environment.client.add_slot_wait(waited_for_slot);
        self.throttle.begin_batch();
        self.throttle.skip();
        waited
    }

    /// Writes the first bytes of the payload, then the header.
    fn write(&mut self, at: Assignment, slot: u32, bytes: usize) -> Result<(), Abandonment> {
        let Self { job: Job { spool, waits, .. }, environment, throttle, payload, header, .. } =
            self;
        let mut go_on = || {
            environment.heartbeats.beat();
            !environment.queue.is_void(at.fence)
        };
        let moved = waits.during(|| spool.write_payload(slot, payload, bytes, &mut go_on));
        // The sleep for copying comes before the batch counts as ready.
        let whole = moved? && go_on() && throttle.settle(&mut go_on) && go_on() && {
            waits.during(|| spool.write_header(slot, header, &mut go_on))?
        };
        if whole { Ok(()) } else { Err(Abandonment::Void) }
    }

    /// Sends what was written, if the host shares no memory with the device.
    fn send_slot(&mut self, at: Assignment, slot: u32) -> Result<(), Abandonment> {
        let Self { job: Job { spool, waits, .. }, environment, .. } = self;
        let mut go_on = || {
            environment.heartbeats.beat();
            !environment.queue.is_void(at.fence)
        };
        let whole = waits.during(|| spool.send(slot, &environment.messages, &mut go_on));
        if whole { Ok(()) } else { Err(Abandonment::Void) }
    }

    /// Accounts for a batch, whatever its result, and returns how long it took.
    fn enter(&mut self, clock: &Clock, is_published: bool) -> Duration {
        let ended = Instant::now();
        let busy = (ended - clock.start).saturating_sub(clock.slot_wait);
        let stretched = self.throttle.stretched() - clock.stretched_before;
        let idle = self.job.waits.idle() - clock.idle_before;
        let busy_cpu = thread_cpu_time() - clock.start_cpu;
        self.throttle.end_batch();
        let disturbances = self.throttle.disturbances();
        // First, so that meters that count the batch also count its bytes.
        self.add_up();
        let mut totals = self.totals();
        totals.occupied.end(ended);
        totals.busy += busy;
        totals.busy_cpu += busy_cpu;
        totals.not_computing += idle + clock.stalled + stretched;
        totals.batches += u64::from(is_published);
        totals.disturbances = disturbances;
        drop(totals);
        busy
    }

    fn send_meters(&mut self) -> bool {
        self.add_up();
        let meters = self.totals().message(&self.job, &self.environment.emulation.targets);
        self.send(Message::Meters(meters))
    }

    /// Adds to the totals what this worker used since the last call.
    fn add_up(&mut self) {
        let now = Added {
            cpu: thread_cpu_time(),
            read_bytes: self.job.preparer.counters().bytes_read,
            written_bytes: self.job.spool.bytes_written(),
        };
        let before = std::mem::replace(&mut self.added, now);
        let cpu = now.cpu.saturating_sub(before.cpu);
        let read_bytes = now.read_bytes - before.read_bytes;
        let written_bytes = now.written_bytes - before.written_bytes;
        let mut totals = self.totals();
        totals.cpu += cpu;
        totals.read_bytes += read_bytes;
        totals.written_bytes += written_bytes;
        drop(totals);
        let client = &self.environment.client;
        client.add_cpu(cpu);
        client.read_bytes.inc_by(read_bytes);
        client.sent_bytes.inc_by(written_bytes);
    }

    fn totals(&self) -> MutexGuard<'_, Totals> {
        // A panic cannot leave sums inconsistent.
        self.environment.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message to the host, waiting while the connection is full; `false` once it has
    /// disconnected.
    fn send(&self, message: Message) -> bool {
        let message = DeviceMessage { message: Some(message) };
        self.environment.messages.blocking_send(Ok(message)).is_ok()
    }
}

/// Executes the faults half-way through a batch.
fn spring(plan: &BatchFaults, queue: &Queue, disconnect: &DisconnectHandle) {
    if plan.die {
        let own = rustix::process::getpid();
        // Cannot fail: a process may always kill itself.
        let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
    }
    if plan.drop_link {
        disconnect.disconnect();
    }
    if let Some(stall) = plan.stall {
        let start = Instant::now();
        while stall.is_none_or(|duration| start.elapsed() < duration) {
            let left = stall.map_or(WAIT_SLICE, |duration| duration - start.elapsed());
            if queue.wait_closed(left.min(WAIT_SLICE)) {
                return;
            }
        }
    }
}

fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).expect("a monotonic clock is not negative");
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).expect("nanoseconds are not negative")
}
