//! Simulated processes: groups of threads and descriptors that are killed and paused together.

use super::indices::{ProcessIndex, ThreadIndex};
use super::{Machine, current};
use crate::real;

/// The faults of the storage of a process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StorageFaults {
    /// Until when reads and writes are slow.
    pub(crate) slow_until_ns: u64,
    /// How long each takes until then.
    pub(crate) delay_ns: u64,
    /// Until when they fail.
    pub(crate) fail_until_ns: u64,
    /// Until when writes fail because the storage is full.
    pub(crate) full_until_ns: u64,
    /// Until when one bit of what is read is flipped.
    pub(crate) corrupt_until_ns: u64,
    /// Whether the faults other than delays affect only spools.
    pub(crate) is_of_spool: bool,
}

/// A simulated process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(super) name: String,
    pub(super) paused_until_ns: u64,
    is_alive: bool,
    storage: StorageFaults,
}

impl Machine {
    pub(crate) fn add_process(&mut self, name: String) -> ProcessIndex {
        let storage = StorageFaults::default();
        self.processes.push(Process { name, paused_until_ns: 0, is_alive: true, storage });
        ProcessIndex(self.processes.len() - 1)
    }

    /// The next thread that the running thread creates belongs to this process.
    pub(crate) fn set_next_process(&mut self, process: ProcessIndex) {
        let own = current().expect("only simulated threads create processes");
        self.threads[own.0].next_process = Some(process);
    }

    pub(crate) fn is_alive(&self, process: ProcessIndex) -> bool {
        self.processes[process.0].is_alive
    }

    /// Whether a process has a thread that has not ended.
    pub(crate) fn has_threads(&self, process: ProcessIndex) -> bool {
        self.live.iter().any(|index| self.threads[index.0].process == process)
    }

    pub(super) fn is_paused(&self, process: ProcessIndex) -> bool {
        self.processes[process.0].paused_until_ns > self.now_ns
    }

    /// No thread of a process runs for a time, as after SIGSTOP.
    pub(crate) fn pause(&mut self, process: ProcessIndex, duration_ns: u64) {
        let until_ns = self.now_ns + duration_ns;
        let paused = &mut self.processes[process.0].paused_until_ns;
        *paused = until_ns.max(*paused);
        for thread in self.threads.iter_mut().filter(|thread| thread.process == process) {
            if let Some((deadline_ns, _)) = &mut thread.promise {
                *deadline_ns += duration_ns;
            }
        }
    }

    /// No thread of a process ever runs again, and its descriptors are closed, as after SIGKILL.
    pub(crate) fn kill(&mut self, process: ProcessIndex) {
        self.processes[process.0].is_alive = false;
        let of_process: Vec<ThreadIndex> =
            self.live.iter().copied().filter(|it| self.process_of(*it) == process).collect();
        for index in of_process {
            self.end_thread(index);
        }
        for descriptor in self.descriptors.take_those_of(process) {
            real::close_now(descriptor);
        }
        self.descriptors.changed();
    }

    /// The faults of the storage of a process.
    pub(crate) fn storage(&mut self, process: ProcessIndex) -> &mut StorageFaults {
        &mut self.processes[process.0].storage
    }

    /// The faults of the storage of the running process.
    pub(crate) fn own_storage(&self) -> StorageFaults {
        let thread = current().expect("only simulated threads have simulated storage");
        self.processes[self.process_of(thread).0].storage
    }
}
