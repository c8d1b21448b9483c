//! A device that works through its queue in virtual time and misbehaves as configured.

use std::collections::VecDeque;

use super::{Faults, Random};

/// The messages from a device to the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Message {
    Progress,
    Published { device: u16, batch: u32, generation: u32 },
    Failed { batch: u32, generation: u32 },
    Leaving,
}

/// Time between two false reports.
const FALSE_TIME_NS: u64 = 4_000_000;

#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) number: u16,
    random: Random,
    faults: Faults,
    batch_ns: u64,
    queue: VecDeque<(u32, u32)>,
    current: Option<(u32, u32)>,
    due: Option<u64>,
    lying_until: Option<u64>,
    done: u32,
    dead: bool,
    /// It prepares nothing more, and says so.
    left: bool,
    pub(crate) stopped: bool,
    /// The last generation that it received.
    pub(crate) fence: Option<u32>,
    /// Slots in use.
    pub(crate) slots: u32,
}

impl Device {
    pub(crate) fn new(number: u16, batch_ns: u64, faults: Faults, random: Random) -> Self {
        Self {
            number,
            random,
            faults,
            batch_ns,
            queue: VecDeque::new(),
            current: None,
            due: None,
            lying_until: None,
            done: 0,
            dead: false,
            left: false,
            stopped: false,
            fence: None,
            slots: 0,
        }
    }

    pub(crate) fn append(&mut self, batches: impl Iterator<Item = u32>, generation: u32) {
        assert!(!self.stopped, "work after the stop");
        self.queue.extend(batches.map(|batch| (batch, generation)));
    }

    /// The queue is dropped; the batch in progress is sometimes published nevertheless, too late.
    pub(crate) fn revoke(&mut self) {
        self.queue.clear();
        if self.random.percent(50) {
            self.current = None;
        }
    }

    pub(crate) fn stop(&mut self) {
        assert!(!self.stopped, "the stop is sent once");
        self.stopped = true;
    }

    /// Batches that it holds, except those that were taken back.
    pub(crate) fn held(&self) -> u64 {
        let is_valid = |(_, generation): &(u32, u32)| self.fence.is_none_or(|it| it <= *generation);
        self.queue.len() as u64 + u64::from(self.current.as_ref().is_some_and(is_valid))
    }

    pub(crate) fn died(&self) -> bool {
        self.dead
    }

    /// Its link ends.
    pub(crate) fn lose(&mut self) {
        self.dead = true;
    }

    /// It has a new link and no work, and does not die again.
    pub(crate) fn join(&mut self, generation: u32) {
        self.queue.clear();
        (self.current, self.due, self.lying_until) = (None, None, None);
        (self.dead, self.stopped) = (false, false);
        self.faults.dies_after = None;
        self.fence = Some(generation);
    }

    pub(crate) fn due(&self) -> Option<u64> {
        self.due
    }

    /// Starts the next batch; returns when it ends, if it started one.
    pub(crate) fn begin(&mut self, now: u64) -> Option<u64> {
        if self.dead || self.left || self.due.is_some() {
            return None;
        }
        self.current = Some(self.queue.pop_front()?);
        let slower = match self.faults.slows_after {
            Some((after, times)) if self.done >= after => times,
            _ => 1,
        };
        let mean = self.batch_ns * slower;
        let mut time = if self.faults.jitter { self.random.around(mean) } else { mean };
        if self.random.percent(self.faults.stalls) {
            let stall = self.random.below(100) * self.batch_ns;
            if self.random.percent(self.faults.lies) {
                let for_ever = self.random.percent(25);
                self.lying_until = Some(if for_ever { u64::MAX } else { now + stall });
                time = FALSE_TIME_NS;
            } else {
                time += stall;
            }
        }
        self.due = Some(now + time.max(1));
        self.due
    }

    /// Its time is due: returns what it sends, with the latency of each message.
    pub(crate) fn work(&mut self, now: u64) -> Vec<(u64, Message)> {
        if self.dead || self.due.is_none_or(|due| now < due) {
            return Vec::new();
        }
        if self.lying_until.is_some_and(|until| now < until) {
            self.due = Some(now + FALSE_TIME_NS);
            return vec![(0, Message::Progress)];
        }
        self.lying_until = None;
        self.due = None;
        let mut sent = Vec::new();
        if let Some((batch, generation)) = self.current.take() {
            self.done += 1;
            if self.faults.dies_after.is_some_and(|after| self.done > after) {
                self.dead = true;
                return sent;
            }
            let late = self.random.percent(self.faults.late);
            let delay = if late { self.random.below(40) * self.batch_ns } else { 0 };
            let published = Message::Published { device: self.number, batch, generation };
            if self.random.percent(self.faults.fails) {
                sent.push((delay, Message::Failed { batch, generation }));
            } else {
                sent.push((delay, published));
            }
            if self.random.percent(self.faults.duplicated) {
                sent.push((delay + self.random.below(self.batch_ns * 4), published));
            }
            if self.faults.leaves_after.is_some_and(|after| self.done > after) {
                self.left = true;
                sent.push((delay + 1, Message::Leaving));
                return sent;
            }
        }
        if self.random.percent(self.faults.nonsense) {
            sent.push((0, self.nonsense()));
        }
        if let Some(due) = self.begin(now) {
            self.due = Some(due);
        }
        sent
    }

    /// A false report. It uses other devices and generations, as it might otherwise match a real
    /// claim by accident.
    fn nonsense(&mut self) -> Message {
        let batch = self.random.next() as u32 >> self.random.below(32);
        let generation = u32::MAX - self.random.below(8) as u32;
        match self.random.below(3) {
            0 => Message::Published { device: 77, batch, generation: 1 },
            1 => Message::Published { device: self.number, batch, generation },
            _ => Message::Failed { batch, generation },
        }
    }
}
