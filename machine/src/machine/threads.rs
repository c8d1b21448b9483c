//! Simulated threads, and what they wait for.

use super::Machine;
use super::indices::{ProcessIndex, ThreadIndex};
use crate::real;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a thread waits for, besides its deadline.
#[derive(Debug, Clone)]
pub(crate) enum Wait {
    /// Nothing: it can run.
    Nothing,
    /// Only the deadline.
    Deadline,
    /// A wake-up of an address, by any of these bits.
    Address { address: usize, bits: u32 },
    /// Events of descriptors.
    Descriptors(Vec<libc::pollfd>),
    /// The end of a thread.
    End(ThreadIndex),
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// What it waited for happened.
    Happened,
    /// The deadline passed.
    TimedOut,
}

/// Where a thread waits until it runs.
#[derive(Debug)]
pub(crate) struct Gate(AtomicU32);

impl Gate {
    fn new() -> &'static Self {
        // Threads that were killed wait here until the program ends.
        Box::leak(Box::new(Self(AtomicU32::new(0))))
    }

    /// Lets the thread run.
    pub(crate) fn open(&self) {
        self.0.store(1, Ordering::Release);
        real::wake(&self.0);
    }

    /// Waits until the gate is open, and closes it behind the thread.
    pub(crate) fn pass(&self) {
        while self.0.swap(0, Ordering::Acquire) == 0 {
            real::wait(&self.0, 0);
        }
    }
}

/// A simulated thread.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(super) process: ProcessIndex,
    pub(super) name: String,
    pub(super) wait: Wait,
    pub(super) deadline_ns: Option<u64>,
    pub(super) since_ns: u64,
    pub(super) outcome: Outcome,
    pub(super) has_ended: bool,
    /// Number of changes of descriptors at the last check, when its own were not ready.
    pub(super) checked: u64,
    gate: &'static Gate,
    /// Its identity in the C library.
    native: Option<libc::pthread_t>,
    /// CPU time.
    cpu_ns: u64,
    /// The process of the next thread that it creates, if that is not its own.
    pub(super) next_process: Option<ProcessIndex>,
    /// What it must finish, and the deadline.
    pub(super) promise: Option<(u64, &'static str)>,
}

impl Machine {
    /// Adds a thread that can run.
    pub(super) fn add_thread(&mut self, process: ProcessIndex) -> ThreadIndex {
        let index = ThreadIndex(self.threads.len());
        self.threads.push(Thread {
            process,
            name: "main".to_owned(),
            wait: Wait::Nothing,
            deadline_ns: None,
            since_ns: self.now_ns,
            outcome: Outcome::Happened,
            has_ended: false,
            checked: 0,
            gate: Gate::new(),
            native: None,
            cpu_ns: 0,
            next_process: None,
            promise: None,
        });
        self.live.push(index);
        self.active.push(index);
        index
    }

    /// Adds a thread that the running thread creates.
    pub(crate) fn create_thread(&mut self, creator: ThreadIndex) -> ThreadIndex {
        let creator = &mut self.threads[creator.0];
        let process = creator.next_process.take().unwrap_or(creator.process);
        self.add_thread(process)
    }

    /// Sets the identity of a created thread; `None` if it could not be created.
    pub(crate) fn set_native(&mut self, index: ThreadIndex, native: Option<libc::pthread_t>) {
        self.threads[index.0].native = native;
        if native.is_none() {
            self.end_thread(index);
        }
    }

    /// The thread with an identity.
    pub(crate) fn thread_of(&self, native: libc::pthread_t) -> Option<ThreadIndex> {
        // An identity is reused after its thread was joined.
        let is_it = |thread: &&ThreadIndex| self.threads[thread.0].native == Some(native);
        let all: Vec<ThreadIndex> = (0..self.threads.len()).map(ThreadIndex).collect();
        all.iter().rev().find(is_it).copied()
    }

    pub(crate) fn has_ended(&self, index: ThreadIndex) -> bool {
        self.threads[index.0].has_ended
    }

    /// Ends a thread; those that wait for this continue.
    pub(crate) fn end_thread(&mut self, index: ThreadIndex) {
        self.end_wait(index, Outcome::Happened);
        self.threads[index.0].has_ended = true;
        self.live.retain(|other| *other != index);
        self.active.retain(|other| *other != index);
        for other in self.live.clone() {
            if matches!(self.threads[other.0].wait, Wait::End(ended) if ended == index) {
                self.end_wait(other, Outcome::Happened);
            }
        }
    }

    /// A thread can run again.
    pub(super) fn end_wait(&mut self, index: ThreadIndex, outcome: Outcome) {
        let thread = &mut self.threads[index.0];
        let wait = std::mem::replace(&mut thread.wait, Wait::Nothing);
        thread.deadline_ns = None;
        thread.outcome = outcome;
        if let Wait::Address { address, .. } = wait
            && let Entry::Occupied(mut sleepers) = self.sleepers.entry(address)
        {
            sleepers.get_mut().retain(|other| *other != index);
            if sleepers.get().is_empty() {
                sleepers.remove();
            }
        }
        if let Err(at) = self.active.binary_search(&index) {
            self.active.insert(at, index);
        }
    }

    pub(crate) fn set_name(&mut self, index: ThreadIndex, name: String) {
        self.threads[index.0].name = name;
    }

    pub(crate) fn gate(&self, index: ThreadIndex) -> &'static Gate {
        self.threads[index.0].gate
    }

    pub(crate) fn process_of(&self, index: ThreadIndex) -> ProcessIndex {
        self.threads[index.0].process
    }

    /// CPU time of a thread, which increases with each of its calls.
    pub(crate) fn cpu_ns(&mut self, index: ThreadIndex) -> u64 {
        self.threads[index.0].cpu_ns += 1000;
        self.threads[index.0].cpu_ns
    }

    pub(super) fn set_wait(&mut self, index: ThreadIndex, wait: Wait, deadline_ns: Option<u64>) {
        let now_ns = self.now_ns;
        if let Wait::Address { address, .. } = wait {
            self.sleepers.entry(address).or_default().push(index);
        }
        let needs_another = matches!(wait, Wait::Address { .. } | Wait::End(_));
        if needs_another
            && deadline_ns.is_none()
            && let Ok(at) = self.active.binary_search(&index)
        {
            self.active.remove(at);
        }
        let thread = &mut self.threads[index.0];
        thread.wait = wait;
        thread.deadline_ns = deadline_ns;
        thread.since_ns = now_ns;
        thread.outcome = Outcome::Happened;
        thread.checked = u64::MAX;
    }

    pub(super) fn outcome(&self, index: ThreadIndex) -> Outcome {
        self.threads[index.0].outcome
    }

    /// Wakes up to `most` threads that wait for an address, chosen at random; returns how many.
    pub(crate) fn wake(&mut self, address: usize, bits: u32, most: usize) -> usize {
        let Some(sleepers) = self.sleepers.get(&address) else { return 0 };
        let waits = |index: &&ThreadIndex| match self.threads[index.0].wait {
            Wait::Address { bits: by, .. } => by & bits != 0,
            _ => false,
        };
        let mut waiting: Vec<ThreadIndex> = sleepers.iter().filter(waits).copied().collect();
        let mut woken = 0;
        while woken < most && !waiting.is_empty() {
            let at = self.random.below(waiting.len() as u64);
            let index = waiting.swap_remove(usize::try_from(at).expect("it is below a length"));
            self.end_wait(index, Outcome::Happened);
            woken += 1;
        }
        woken
    }

    /// The running thread must finish something within a time limit; otherwise the simulation
    /// fails.
    pub(crate) fn promise(&mut self, index: ThreadIndex, promise: Option<(u64, &'static str)>) {
        let now_ns = self.now_ns;
        self.threads[index.0].promise = promise.map(|(within_ns, what)| (now_ns + within_ns, what));
    }

    /// `host/prepare-0`.
    pub(super) fn name_of(&self, index: ThreadIndex) -> String {
        let thread = &self.threads[index.0];
        format!("{}/{}", self.processes[thread.process.0].name, thread.name)
    }

    /// What a thread waits for, in words.
    pub(super) fn describe(&self, index: ThreadIndex) -> String {
        let thread = &self.threads[index.0];
        let since = |time_ns: u64| (self.now_ns.saturating_sub(time_ns)) as f64 / 1e6;
        let what = match &thread.wait {
            Wait::Nothing => "can run".to_owned(),
            Wait::Deadline => "sleeps".to_owned(),
            Wait::Address { .. } => "waits for a lock, a condition or a message".to_owned(),
            Wait::Descriptors(all) => {
                let all: Vec<String> =
                    all.iter().map(|it| self.name_of_descriptor(it.fd)).collect();
                format!("waits for {}", all.join(", "))
            }
            Wait::End(other) => format!("waits for the end of {}", self.name_of(*other)),
        };
        let left = thread.deadline_ns.map_or("no deadline".to_owned(), |deadline_ns| {
            let left_ms = deadline_ns.saturating_sub(self.now_ns) as f64 / 1e6;
            format!("at most {left_ms:.1} ms longer")
        });
        let promise = thread.promise.map(|(_, what)| format!(", inside {what}"));
        let pause = if self.is_paused(thread.process) { ", its process is paused" } else { "" };
        format!(
            "{}: {what} since {:.1} ms, {left}{}{pause}",
            self.name_of(index),
            since(thread.since_ns),
            promise.unwrap_or_default()
        )
    }
}
