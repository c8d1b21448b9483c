//! One thread drains the source, many read, check and convert its samples; results arrive in order,
//! and memory is bounded.
//!
//! Samples in flight have at most [`BYTES_AHEAD_MAX`] bytes of content in total, unless there is
//! only one; their stored forms take at most about twice as much. In addition, the source holds its
//! own data (a row group, a record batch) and one sample that waits for space.

use super::check::{SampleCheck, Scratch, Verdict, check};
use crate::source::{Content, Entry, Finished, Item, Source};
use crate::threads::{start_thread, threads};
use crate::{Error, LeftOut};
use meetpoint_kernels::Interrupt;
use meetpoint_prepare::abandoning;
use meetpoint_storage::MemoryLimit;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

/// Bytes of content that may be ahead of the writer, less in little memory; one sample may be
/// longer.
const BYTES_AHEAD_MAX: u64 = 64 << 20;
/// Samples that each thread may be ahead of the writer.
const SAMPLES_AHEAD_PER_THREAD: usize = 8;

/// A result passed to the writer, in the order of the source.
pub(super) enum PipelineEvent {
    /// A sample without its content, the length of its content in the source, and the verdict.
    Sample(Box<Item>, u64, Verdict),
    /// A sample that is already packed and not checked again.
    Passed(Box<Item>),
    /// A sample that the source cannot read.
    Unreadable(LeftOut),
    /// A file or member that is not a sample.
    NotASample(LeftOut),
}

/// The totals at the end of the source.
pub(super) struct SourceTotals {
    /// The totals of the source.
    pub(super) finished: Finished,
    /// Hidden and side files.
    pub(super) ignored: u64,
}

/// How to process a source.
pub(super) struct PipelineOptions<'a> {
    /// How each sample is checked.
    pub(super) how: SampleCheck<'a>,
    /// Threads that check samples; 0 for one per processor.
    pub(super) threads: usize,
    /// Number of samples at the beginning that are skipped.
    pub(super) passed: u64,
    /// The sample of the source at which packing ends; `None` for all samples.
    pub(super) until: Option<u64>,
    /// Set by another thread to stop, also inside a sample.
    pub(super) stop: &'a Arc<AtomicBool>,
}

/// The state shared by the threads.
struct Shared {
    state: Mutex<State>,
    /// Notified when there is work, or when there will be no more.
    work: Condvar,
    /// Notified when a result has arrived or a thread has ended.
    arrived: Condvar,
    /// Notified when there is space ahead of the writer, or nothing more to do.
    room: Condvar,
    /// Raised when the samples being checked are no longer wanted.
    interrupt: Interrupt,
    is_abandoned: Arc<AtomicBool>,
}

struct State {
    /// Samples to check, by their position in the order.
    work: VecDeque<(usize, Box<Item>)>,
    /// The source is exhausted: there will be no more work.
    is_drained: bool,
    /// Position of the sample that the writer needs next.
    wanted: usize,
    /// Bytes being read or waiting for the writer, and the maximum.
    bytes_ahead: u64,
    bytes_ahead_max: u64,
    /// The results starting at `wanted`, by position modulo length; `None` in a slot marks the end.
    slots: Vec<Option<Slot>>,
    /// The writer has ended, or a thread has panicked.
    is_over: bool,
}

enum Slot {
    Event(PipelineEvent),
    End(Result<SourceTotals, Error>),
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while holding the state")
    }

    fn put(&self, place: usize, slot: Slot) {
        let mut state = self.lock();
        let index = place % state.slots.len();
        state.slots[index] = Some(slot);
        drop(state);
        self.arrived.notify_one();
    }
}

/// Wakes all threads when its thread panics, so that none waits forever.
struct WakeOnPanic<'a>(&'a Shared);

impl Drop for WakeOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().is_over = true;
            self.0.work.notify_all();
            self.0.arrived.notify_all();
            self.0.room.notify_all();
        }
    }
}

/// Stops the threads when the writer returns or panics.
struct StopOnDrop<'a>(&'a Shared);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.is_abandoned.store(true, Ordering::Relaxed);
        self.0.lock().is_over = true;
        self.0.work.notify_all();
        self.0.room.notify_all();
    }
}

/// Drains `source`, checks its samples and passes the results to `write`, in order.
pub(super) fn go_through(
    source: &mut dyn Source,
    options: &PipelineOptions<'_>,
    write: &mut dyn FnMut(PipelineEvent) -> Result<(), Error>,
) -> Result<SourceTotals, Error> {
    let threads = threads(options.threads)?;
    let is_abandoned = Arc::new(AtomicBool::new(false));
    let (stop, abandoned) = (Arc::clone(options.stop), Arc::clone(&is_abandoned));
    let is_raised = move || stop.load(Ordering::Relaxed) || abandoned.load(Ordering::Relaxed);
    let interrupt = abandoning(Interrupt::when(is_raised));
    let shared = Shared {
        state: Mutex::new(State {
            work: VecDeque::new(),
            is_drained: false,
            wanted: 0,
            bytes_ahead: 0,
            bytes_ahead_max: BYTES_AHEAD_MAX.min(MemoryLimit::of_this_process().for_reading(1)),
            slots: (0..threads * SAMPLES_AHEAD_PER_THREAD).map(|_| None).collect(),
            is_over: false,
        }),
        work: Condvar::new(),
        arrived: Condvar::new(),
        room: Condvar::new(),
        interrupt,
        is_abandoned,
    };
    std::thread::scope(|scope| {
        // If a thread cannot be started, this stops the others.
        let _stop = StopOnDrop(&shared);
        for number in 1..=threads {
            start_thread(scope, (number, threads), || look_into(&shared, &options.how))?;
        }
        start_thread(scope, (threads + 1, threads), || drain(&shared, source, options))?;
        loop {
            let event = match receive(&shared) {
                Some(Slot::Event(event)) => event,
                Some(Slot::End(end)) => return end,
                // A thread has panicked; leaving the scope passes the panic on.
                None => return Err(Error::Interrupted),
            };
            let bytes = match &event {
                PipelineEvent::Sample(_, bytes, _) => *bytes,
                _ => 0,
            };
            write(event)?;
            shared.lock().bytes_ahead -= bytes;
            shared.room.notify_one();
        }
    })
}

fn receive(shared: &Shared) -> Option<Slot> {
    let mut state = shared.lock();
    loop {
        let index = state.wanted % state.slots.len();
        if let Some(slot) = state.slots[index].take() {
            state.wanted += 1;
            return Some(slot);
        }
        if state.is_over {
            return None;
        }
        state = shared.arrived.wait(state).expect("no thread panics while holding the state");
    }
}

/// Takes everything out of the source, as far as there is room.
fn drain(shared: &Shared, source: &mut dyn Source, options: &PipelineOptions<'_>) {
    let _wake_on_panic = WakeOnPanic(shared);
    let (mut place, mut samples, mut ignored) = (0, 0, 0);
    let end = loop {
        if options.until.is_some_and(|until| samples >= until) {
            break Ok(SourceTotals { finished: Finished::default(), ignored });
        }
        let entry = match source.next() {
            Ok(Some(entry)) => entry,
            Ok(None) => break source.finish().map(|finished| SourceTotals { finished, ignored }),
            Err(error) => break Err(error),
        };
        let event = match entry {
            Entry::Ignored => {
                ignored += 1;
                continue;
            }
            Entry::Sample(item) => {
                samples += 1;
                if samples > options.passed {
                    if !offer(shared, place, item) {
                        return;
                    }
                    place += 1;
                    continue;
                }
                PipelineEvent::Passed(item)
            }
            Entry::Unreadable(left_out) => PipelineEvent::Unreadable(left_out),
            Entry::NotASample(left_out) => PipelineEvent::NotASample(left_out),
        };
        if !wait_for_room(shared, place, 0) {
            return;
        }
        shared.put(place, Slot::Event(event));
        place += 1;
    };
    if wait_for_room(shared, place, 0) {
        shared.put(place, Slot::End(end));
        shared.lock().is_drained = true;
        shared.work.notify_all();
    }
}

/// Waits for space for `bytes` at a position; `false` if they are no longer needed.
fn wait_for_room(shared: &Shared, place: usize, bytes: u64) -> bool {
    let mut state = shared.lock();
    loop {
        if state.is_over {
            return false;
        }
        let has_room = place < state.wanted + state.slots.len()
            && (state.bytes_ahead == 0 || state.bytes_ahead + bytes <= state.bytes_ahead_max);
        if has_room {
            state.bytes_ahead += bytes;
            return true;
        }
        state = shared.room.wait(state).expect("no thread panics while holding the state");
    }
}

/// Queues a sample as soon as there is space.
fn offer(shared: &Shared, place: usize, item: Box<Item>) -> bool {
    if !wait_for_room(shared, place, item.content.bytes()) {
        return false;
    }
    shared.lock().work.push_back((place, item));
    shared.work.notify_one();
    true
}

/// Checks one sample after another.
fn look_into(shared: &Shared, how: &SampleCheck<'_>) {
    let _wake_on_panic = WakeOnPanic(shared);
    let mut scratch = Scratch::new(shared.interrupt.clone());
    while let Some((place, mut item)) = take(shared) {
        let bytes = item.content.bytes();
        let content = std::mem::replace(&mut item.content, Content::Bytes(Vec::new()));
        let verdict = check(&item, content, how, &mut scratch);
        shared.put(place, Slot::Event(PipelineEvent::Sample(item, bytes, verdict)));
    }
}

/// Waits for a sample to check; `None` if there is nothing more to do.
fn take(shared: &Shared) -> Option<(usize, Box<Item>)> {
    let mut state = shared.lock();
    loop {
        if state.is_over {
            return None;
        }
        if let Some(work) = state.work.pop_front() {
            return Some(work);
        }
        if state.is_drained {
            return None;
        }
        state = shared.work.wait(state).expect("no thread panics while holding the state");
    }
}
