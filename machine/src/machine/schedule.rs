//! Which thread runs next, and when the clock jumps.

use super::indices::ThreadIndex;
use super::{Event, Machine, Outcome, Wait, current, with};
use crate::real;

/// Maximum number of decisions. A job that reaches it has a livelock.
const DECISIONS_MAX: u64 = 20_000_000;

/// Maximum simulated time of a job.
const TIME_MAX_NS: u64 = 3_600_000_000_000;

/// Maximum delay of a preempted thread.
const DELAY_MAX_NS: u64 = 50_000_000;

/// The calling thread waits; returns how the wait ended.
pub(crate) fn block(wait: Wait, deadline_ns: Option<u64>) -> Outcome {
    let own = current().expect("only simulated threads wait");
    with(|machine| machine.set_wait(own, wait, deadline_ns));
    switch(own);
    with(|machine| machine.outcome(own))
}

/// Lets time pass, and another thread run at random. Every call of a simulated thread begins with
/// it.
pub(crate) fn yield_now() {
    let own = current().expect("only simulated threads yield");
    let is_preempted = with(|machine| {
        machine.pass_time();
        let is_preempted = machine.random.one_in(machine.interleaving.preempt_one_in);
        if is_preempted && machine.random.one_in(machine.interleaving.delay_one_in) {
            let until_ns = machine.now_ns + machine.random.below(DELAY_MAX_NS);
            machine.set_wait(own, Wait::Deadline, Some(until_ns));
        }
        is_preempted
    });
    if is_preempted {
        switch(own);
    }
}

/// Runs another thread, and returns when the calling thread runs again.
fn switch(own: ThreadIndex) {
    let next = with(Machine::choose);
    if next == own {
        return;
    }
    let (gate, own_gate) = with(|machine| (machine.gate(next), machine.gate(own)));
    gate.open();
    own_gate.pass();
}

/// The calling thread ends, and another one runs.
pub(crate) fn end(own: ThreadIndex) {
    with(|machine| machine.end_thread(own));
    let gate = with(|machine| {
        let next = machine.choose();
        machine.gate(next)
    });
    super::leave();
    gate.open();
}

impl Machine {
    /// Chooses the thread that runs next. The clock jumps if none can run now.
    fn choose(&mut self) -> ThreadIndex {
        loop {
            self.decisions += 1;
            self.pass_time();
            self.end_waits();
            let mut ready = std::mem::take(&mut self.ready);
            ready.clear();
            ready.extend(self.active.iter().copied().filter(|index| {
                let thread = &self.threads[index.0];
                matches!(thread.wait, Wait::Nothing) && !self.is_paused(thread.process)
            }));
            let chosen = self.choose_of(&ready);
            self.ready = ready;
            if self.decisions > DECISIONS_MAX {
                self.fail("livelock: threads wake each other without end");
            }
            if let Some(chosen) = chosen {
                self.trace.add(Event::Runs, self.now_ns, chosen.0, 0, 0);
                return chosen;
            }
            match self.next_time_ns() {
                Some(next_ns) if next_ns <= TIME_MAX_NS => self.now_ns = next_ns.max(self.now_ns),
                Some(_) => self.fail("the job does not end"),
                None => self.fail("deadlock: every thread waits, and none has a deadline"),
            }
            self.check_promises();
        }
    }

    fn choose_of(&mut self, ready: &[ThreadIndex]) -> Option<ThreadIndex> {
        if ready.is_empty() {
            return None;
        }
        let (mut neglected, mut until) = self.neglected;
        if until < self.decisions {
            neglected = *self.random.choose(&self.live);
            until = self.decisions + self.random.within(1, 2000);
            self.neglected = (neglected, until);
        }
        loop {
            let chosen = *self.random.choose(ready);
            if chosen != neglected || ready.len() == 1 {
                return Some(chosen);
            }
        }
    }

    /// Ends the waits whose deadline has passed or whose descriptors are ready.
    fn end_waits(&mut self) {
        let (now_ns, changes) = (self.now_ns, self.descriptors.changes());
        let mut at = 0;
        while let Some(index) = self.active.get(at).copied() {
            at += 1;
            let thread = &mut self.threads[index.0];
            if matches!(thread.wait, Wait::Nothing) {
                continue;
            }
            let is_due = thread.deadline_ns.is_some_and(|deadline_ns| deadline_ns <= now_ns);
            let has_changed = std::mem::replace(&mut thread.checked, changes) != changes;
            let is_ready = match &mut thread.wait {
                Wait::Descriptors(descriptors) if has_changed => real::poll_now(descriptors),
                _ => false,
            };
            if is_ready {
                self.end_wait(index, Outcome::Happened);
            } else if is_due {
                self.end_wait(index, Outcome::TimedOut);
            }
        }
    }

    /// When the next thread can run, if nothing happens before.
    fn next_time_ns(&self) -> Option<u64> {
        let times = self.active.iter().filter_map(|index| {
            let thread = &self.threads[index.0];
            let resumes_ns = self.processes[thread.process.0].paused_until_ns;
            match thread.wait {
                Wait::Nothing => Some(resumes_ns),
                _ => thread.deadline_ns.map(|deadline_ns| deadline_ns.max(resumes_ns)),
            }
        });
        times.min()
    }

    /// Fails if a thread has missed its deadline.
    fn check_promises(&self) {
        for index in &self.live {
            let thread = &self.threads[index.0];
            if let Some((deadline_ns, what)) = thread.promise
                && deadline_ns < self.now_ns
                && !self.is_paused(thread.process)
            {
                self.fail(&format!("{what} takes too long"));
            }
        }
    }
}
