//! The simulated machine: a clock that jumps, threads of which one runs at a time, and processes
//! that can be killed and paused.
//!
//! Every simulated thread is a thread of the operating system. All but one wait at their gate; the
//! one that runs owns the machine, and hands it to another when it waits, or at random. In reading
//! order: `random`, `trace`, `indices`, `threads` (what a thread waits for), `processes`,
//! `descriptors`, `schedule` (who runs next, and when the clock jumps), `shared` (data that
//! simulated processes share).
#![expect(unsafe_code, reason = "the machine is a static that its running thread owns")]

mod descriptors;
mod indices;
mod processes;
mod random;
mod schedule;
mod shared;
mod threads;
mod trace;

pub(crate) use descriptors::DescriptorKind;
pub(crate) use indices::{ProcessIndex, ThreadIndex};
pub(crate) use processes::StorageFaults;
pub(crate) use random::Random;
pub(crate) use schedule::{block, end, yield_now};
pub(crate) use shared::Shared;
pub(crate) use threads::{Gate, Outcome, Wait};
pub(crate) use trace::Event;

use crate::real;
use descriptors::Descriptors;
use processes::Process;
use std::cell::{Cell, UnsafeCell};
use std::collections::BTreeMap;
use threads::Thread;
use trace::Trace;

/// How threads are interleaved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interleaving {
    /// A thread that could continue is preempted once in this many calls.
    pub(crate) preempt_one_in: u64,
    /// A futex wait ends early (a spurious wake-up) once in this many waits.
    pub(crate) spurious_one_in: u64,
    /// A preempted thread is delayed by up to 50 ms once in this many preemptions.
    pub(crate) delay_one_in: u64,
}

/// The state of the machine.
pub(crate) struct Machine {
    now_ns: u64,
    /// Decides which thread runs.
    random: Random,
    /// The random bytes that programs receive.
    entropy: Random,
    interleaving: Interleaving,
    threads: Vec<Thread>,
    /// Threads that have not ended.
    live: Vec<ThreadIndex>,
    /// The same in the same order, without those that only another thread can wake.
    active: Vec<ThreadIndex>,
    /// Threads that wait for an address, by address, in the order of their waits.
    sleepers: BTreeMap<usize, Vec<ThreadIndex>>,
    /// Threads that can run, while one is chosen.
    ready: Vec<ThreadIndex>,
    /// A thread that runs only if no other can, and the decision until which this applies.
    neglected: (ThreadIndex, u64),
    processes: Vec<Process>,
    descriptors: Descriptors,
    trace: Trace,
    decisions: u64,
}

struct Slot(UnsafeCell<Option<Machine>>);

// SAFETY: only the thread that owns the machine uses the slot, and ownership passes through gates,
// which synchronize.
unsafe impl Sync for Slot {}

static MACHINE: Slot = Slot(UnsafeCell::new(None));

/// Index of threads that are not simulated.
const NOT_SIMULATED: usize = usize::MAX;

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(NOT_SIMULATED) };
}

/// The calling thread, if it is simulated.
pub(crate) fn current() -> Option<ThreadIndex> {
    match CURRENT.get() {
        NOT_SIMULATED => None,
        index => Some(ThreadIndex(index)),
    }
}

/// Makes the calling thread the simulated thread with this index.
pub(crate) fn become_thread(index: ThreadIndex) {
    CURRENT.set(index.0);
}

/// Declares the calling thread no longer simulated.
pub(crate) fn leave() {
    CURRENT.set(NOT_SIMULATED);
}

/// Uses the machine. Only its running thread may call this, and `with` must call no replaced
/// function.
pub(crate) fn with<R>(with: impl FnOnce(&mut Machine) -> R) -> R {
    debug_assert!(current().is_some(), "only simulated threads use the machine");
    // SAFETY: the calling thread is simulated and runs, so no other thread uses the machine; the
    // closure makes no call that would use it again.
    let machine = unsafe { &mut *MACHINE.0.get() };
    with(machine.as_mut().expect("simulated threads exist only on a machine"))
}

/// Starts a machine, on which the calling thread is the first thread of the first process. There
/// is one machine per program.
pub(crate) fn start(seed: u64, interleaving: Interleaving, is_printed: bool) {
    let mut machine = Machine {
        now_ns: 1_000_000_000,
        random: Random::new(seed, 1),
        entropy: Random::new(seed, 2),
        interleaving,
        threads: Vec::new(),
        live: Vec::new(),
        active: Vec::new(),
        sleepers: BTreeMap::new(),
        ready: Vec::new(),
        neglected: (ThreadIndex(0), 0),
        processes: Vec::new(),
        descriptors: Descriptors::default(),
        trace: Trace::new(is_printed),
        decisions: 0,
    };
    machine.add_process("operator".to_owned());
    let first = machine.add_thread(ProcessIndex(0));
    // SAFETY: no thread is simulated yet, so nothing else uses the slot.
    unsafe { *MACHINE.0.get() = Some(machine) };
    become_thread(first);
}

impl Machine {
    /// The monotonic clock.
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Advances the clock a little, as in every call.
    pub(crate) fn pass_time(&mut self) {
        self.now_ns += self.random.within(50, 500);
    }

    pub(crate) fn entropy(&mut self) -> &mut Random {
        &mut self.entropy
    }

    pub(crate) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// Whether a futex wait ends early.
    pub(crate) fn is_spurious(&mut self) -> bool {
        self.random.one_in(self.interleaving.spurious_one_in)
    }

    /// Checksum and number of events, and the number of decisions.
    pub(crate) fn summary(&self) -> (u64, u64, u64) {
        (self.trace.checksum(), self.trace.events(), self.decisions)
    }

    /// Adds an event of the running thread.
    pub(crate) fn event(&mut self, event: Event, first: u64, second: u64) {
        let thread = current().expect("events are those of simulated threads");
        self.trace.add(event, self.now_ns, thread.0, first, second);
        if self.trace.is_printed() && !matches!(event, Event::Runs) {
            let name = self.name_of(thread);
            let text = format!("{event:?} {first} {second}");
            self.trace.print(self.now_ns, &name, &text);
        }
    }

    /// Adds a sentence of the running thread.
    pub(crate) fn note(&mut self, text: &str) {
        let thread = current().expect("notes are those of simulated threads");
        let name = self.name_of(thread);
        self.trace.note(self.now_ns, thread.0, &name, text);
    }

    /// Ends this program because of a failure, with a description of all threads.
    pub(crate) fn fail(&self, why: &str) -> ! {
        let mut text = format!("FAILED at {:.3} s: {why}\n", self.now_ns as f64 / 1e9);
        for index in &self.live {
            text.push_str(&format!("    {}\n", self.describe(*index)));
        }
        real::report(&text);
        real::end_program(1);
    }
}

/// Adds a sentence to the trace.
pub(crate) fn note(text: &str) {
    with(|machine| machine.note(text));
}

/// Ends this program because of a failure.
pub(crate) fn fail(why: &str) -> ! {
    with(|machine| machine.fail(why))
}
