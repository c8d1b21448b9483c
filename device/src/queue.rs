//! The work of a worker, the free slots, and the fence that voids work in progress.
//!
//! The link's side puts messages in, the worker's side takes work out. Every wait is bounded.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of ranges of batches in a queue; a host grants a few at a time.
const RANGES_MAX: usize = 1 << 16;

/// A batch to prepare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub(crate) epoch: u32,
    pub(crate) generation: u32,
    pub(crate) batch: u32,
    /// The fence under which it was handed out.
    pub(crate) fence: u64,
}

/// The next action of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// A batch is reserved for this worker, which [claims](Queue::claim) it once it has a turn.
    /// Until then it is any of those that wait; this is the first of them.
    Batch(Assignment),
    /// Nothing yet: poll again.
    Nothing,
    /// The host sends no more work. Returned once.
    Stopped,
    /// The device begins no more batches. Returned to every worker.
    Drained,
    /// The job is over.
    Closed,
}

/// The result of taking a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotGrant {
    /// This slot; it belongs to the worker until it is published or given back.
    Slot(u32),
    /// All slots are in use: poll again.
    Full,
    /// The batch is void.
    Void,
}

/// The owner of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Free,
    /// The worker owns it.
    Writing,
    /// The host owns it, until it releases it.
    Published,
}

/// An invalid message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidMessage {
    #[error("work for {count} batches from {first}, but an epoch has batches 0..{batches}")]
    Range { first: u32, count: u32, batches: u64 },
    #[error("work for epoch {epoch}, generation {generation}, which have not begun")]
    Future { epoch: u32, generation: u32 },
    #[error("slot {slot} released, but the spool has slots 0..{slots}")]
    Slot { slot: u32, slots: usize },
    #[error("more than {RANGES_MAX} ranges of work are waiting")]
    TooMuch,
}

/// Batches first, first ± 1, …
#[derive(Debug, Clone, Copy)]
struct Range {
    next: u32,
    left: u32,
    descending: bool,
}

#[derive(Debug)]
struct State {
    /// Epoch and generation; `None` before the first epoch.
    now: Option<(u32, u32)>,
    ranges: VecDeque<Range>,
    /// Batches in the ranges.
    waiting: u64,
    /// Those of them for which a worker waits for a turn. Batches are claimed in their order,
    /// whichever worker has a turn first.
    reserved: u64,
    slots: Vec<Slot>,
    stopped: bool,
    draining: bool,
    closed: bool,
}

/// The queue of one job.
#[derive(Debug)]
pub(crate) struct Queue {
    batches: u64,
    state: Mutex<State>,
    changed: Condvar,
    /// Incremented whenever earlier work becomes void.
    fence: AtomicU64,
}

impl Queue {
    /// An empty queue for epochs of `batches` and a spool of `slots`, all free.
    pub(crate) fn new(batches: u64, slots: u32) -> Self {
        let state = State {
            now: None,
            ranges: VecDeque::new(),
            waiting: 0,
            reserved: 0,
            slots: vec![Slot::Free; slots as usize],
            stopped: false,
            draining: false,
            closed: false,
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Self { batches, state, changed, fence: AtomicU64::new(0) }
    }

    /// Voids everything and begins an epoch. A slot that the host has not released still belongs to
    /// the host.
    pub(crate) fn start_epoch(&self, epoch: u32, generation: u32) {
        self.fence_off(|state| {
            state.now = Some((epoch, generation));
            state.stopped = false;
        });
    }

    /// Voids everything of the epoch and continues under another generation. A revoke of an earlier
    /// epoch is ignored: an epoch may begin before the host has finished the previous one.
    pub(crate) fn revoke(&self, epoch: u32, generation: u32) {
        if self.lock().now <= Some((epoch, generation)) {
            self.fence_off(|state| state.now = Some((epoch, generation)));
        }
    }

    /// Voids everything until the next epoch begins.
    pub(crate) fn stop(&self) {
        self.fence_off(|state| state.stopped = true);
    }

    /// Begins no more batches; those in progress are finished and published.
    pub(crate) fn drain(&self) {
        self.lock().draining = true;
        self.changed.notify_all();
    }

    /// Whether no more batches are begun.
    pub(crate) fn is_draining(&self) -> bool {
        self.lock().draining
    }

    /// Ends the job.
    pub(crate) fn close(&self) {
        self.fence_off(|state| state.closed = true);
    }

    /// Appends batches. Work of an earlier epoch or generation was revoked and is dropped; work of
    /// a later one is an error.
    pub(crate) fn work(
        &self,
        (epoch, generation): (u32, u32),
        first: u32,
        count: u32,
        descending: bool,
    ) -> Result<(), InvalidMessage> {
        let reaches = u64::from(first) + if descending { 1 } else { u64::from(count) };
        if reaches > self.batches || (descending && u64::from(first) + 1 < u64::from(count)) {
            return Err(InvalidMessage::Range { first, count, batches: self.batches });
        }
        let mut state = self.lock();
        if state.now < Some((epoch, generation)) {
            return Err(InvalidMessage::Future { epoch, generation });
        }
        if state.now != Some((epoch, generation)) || state.stopped || count == 0 {
            return Ok(());
        }
        if state.ranges.len() >= RANGES_MAX {
            return Err(InvalidMessage::TooMuch);
        }
        state.ranges.push_back(Range { next: first, left: count, descending });
        state.waiting += u64::from(count);
        self.changed.notify_all();
        Ok(())
    }

    /// Takes a slot back from the host. A slot that the host does not own is not changed, because a
    /// release may occur twice.
    pub(crate) fn release(&self, slot: u32) -> Result<(), InvalidMessage> {
        let mut state = self.lock();
        let slots = state.slots.len();
        let place =
            state.slots.get_mut(slot as usize).ok_or(InvalidMessage::Slot { slot, slots })?;
        if *place == Slot::Published {
            *place = Slot::Free;
            self.changed.notify_all();
        }
        Ok(())
    }

    /// Reserves a batch, waiting for one at most `timeout`.
    pub(crate) fn next(&self, timeout: Duration) -> Next {
        let mut state = self.lock();
        let has_news = |state: &State| state.closed || state.draining || state.stopped;
        if !has_news(&state) && state.waiting <= state.reserved {
            state = self.wait(state, timeout);
        }
        if state.closed {
            return Next::Closed;
        }
        if state.draining {
            return Next::Drained;
        }
        if state.stopped {
            state.stopped = false;
            return Next::Stopped;
        }
        if state.waiting <= state.reserved {
            return Next::Nothing;
        }
        let fence = self.fence.load(Ordering::Acquire);
        let Some(((epoch, generation), range)) = state.now.zip(state.ranges.front()) else {
            return Next::Nothing;
        };
        let batch = range.next;
        state.reserved += 1;
        Next::Batch(Assignment { epoch, generation, batch, fence })
    }

    /// Takes the first batch for a worker that reserved one under this fence; `None` if it is void.
    pub(crate) fn claim(&self, fence: u64) -> Option<Assignment> {
        let mut state = self.lock();
        if self.is_void(fence) {
            return None;
        }
        state.reserved -= 1;
        state.waiting -= 1;
        let (epoch, generation) = state.now?;
        let range = state.ranges.front_mut()?;
        let batch = range.next;
        range.left -= 1;
        if range.left == 0 {
            state.ranges.pop_front();
        } else if range.descending {
            range.next -= 1;
        } else {
            range.next += 1;
        }
        Some(Assignment { epoch, generation, batch, fence })
    }

    /// Leaves a reserved batch to others.
    pub(crate) fn leave(&self, fence: u64) {
        let mut state = self.lock();
        if !self.is_void(fence) {
            state.reserved -= 1;
        }
    }

    /// Whether work handed out under `fence` is void.
    pub(crate) fn is_void(&self, fence: u64) -> bool {
        self.fence.load(Ordering::Acquire) != fence
    }

    /// Whether the job is over.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Waits until the job is over, at most `timeout`; whether it is.
    pub(crate) fn wait_closed(&self, timeout: Duration) -> bool {
        let state = self.lock();
        let (state, _) = self
            .changed
            .wait_timeout_while(state, timeout, |state| !state.closed)
            .unwrap_or_else(PoisonError::into_inner);
        state.closed
    }

    /// Takes a free slot for a batch, waiting for one at most `timeout`.
    pub(crate) fn take_slot(&self, fence: u64, timeout: Duration) -> SlotGrant {
        let mut state = self.lock();
        let free = |state: &State| state.slots.iter().position(|slot| *slot == Slot::Free);
        if free(&state).is_none() && !self.is_void(fence) {
            state = self.wait(state, timeout);
        }
        if self.is_void(fence) {
            return SlotGrant::Void;
        }
        let Some(slot) = free(&state) else { return SlotGrant::Full };
        state.slots[slot] = Slot::Writing;
        SlotGrant::Slot(u32::try_from(slot).expect("a spool has fewer slots than 2^32"))
    }

    /// Passes a written slot to the host.
    pub(crate) fn publish(&self, slot: u32) {
        self.lock().slots[slot as usize] = Slot::Published;
    }

    /// Frees a slot that was taken and not published.
    pub(crate) fn give_back(&self, slot: u32) {
        self.lock().slots[slot as usize] = Slot::Free;
    }

    fn fence_off(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        state.ranges.clear();
        (state.waiting, state.reserved) = (0, 0);
        change(&mut state);
        self.fence.fetch_add(1, Ordering::Release);
        self.changed.notify_all();
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, timeout: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic cannot leave the state inconsistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn batch(queue: &Queue) -> Option<u32> {
        match queue.next(NOW) {
            Next::Batch(reserved) => queue.claim(reserved.fence).map(|claimed| claimed.batch),
            _ => None,
        }
    }

    #[test]
    fn batches_come_in_the_order_they_were_granted() {
        let queue = Queue::new(100, 1);
        assert_eq!(queue.next(NOW), Next::Nothing);
        queue.start_epoch(0, 1);
        queue.work((0, 1), 99, 3, true).unwrap();
        queue.work((0, 1), 10, 2, false).unwrap();
        queue.work((0, 1), 0, 1, true).unwrap();
        let got: Vec<_> = std::iter::from_fn(|| batch(&queue)).collect();
        assert_eq!(got, [99, 98, 97, 10, 11, 0]);
        assert_eq!(queue.next(NOW), Next::Nothing);
    }

    #[test]
    fn a_revoke_empties_the_queue_and_voids_what_was_handed_out() {
        let queue = Queue::new(100, 1);
        queue.start_epoch(3, 1);
        queue.work((3, 1), 50, 2, true).unwrap();
        let Next::Batch(old) = queue.next(NOW) else { panic!("there is work") };
        assert!(!queue.is_void(old.fence));
        queue.revoke(3, 2);
        assert!(queue.is_void(old.fence));
        assert_eq!(queue.next(NOW), Next::Nothing);
        assert_eq!(queue.take_slot(old.fence, NOW), SlotGrant::Void);
        // Sent before the revoke, but come after it.
        queue.work((3, 1), 50, 2, true).unwrap();
        assert_eq!(queue.next(NOW), Next::Nothing);
        queue.work((3, 2), 40, 1, true).unwrap();
        let Next::Batch(new) = queue.next(NOW) else { panic!("there is work") };
        assert_eq!((new.batch, new.generation, queue.is_void(new.fence)), (40, 2, false));
    }

    #[test]
    fn batches_are_claimed_in_order_and_no_more_are_reserved_than_there_are() {
        let queue = Queue::new(100, 1);
        queue.start_epoch(0, 1);
        queue.work((0, 1), 9, 2, true).unwrap();
        let reserved = [queue.next(NOW), queue.next(NOW)];
        assert!(reserved.iter().all(|next| matches!(next, Next::Batch(_))));
        assert_eq!(queue.next(NOW), Next::Nothing);
        let claim = || queue.claim(1).map(|claimed| claimed.batch);
        assert_eq!(claim(), Some(9));
        queue.leave(1);
        assert!(matches!(queue.next(NOW), Next::Batch(_)));
        queue.revoke(0, 2);
        queue.work((0, 2), 5, 1, true).unwrap();
        assert_eq!(claim(), None, "it was reserved before the revoke");
        queue.leave(1);
        assert_eq!(batch(&queue), Some(5));
    }

    #[test]
    fn a_slot_is_the_hosts_until_it_releases_it_even_over_the_end_of_an_epoch() {
        let queue = Queue::new(10, 2);
        queue.start_epoch(0, 1);
        let fence = 1;
        assert_eq!(queue.take_slot(fence, NOW), SlotGrant::Slot(0));
        assert_eq!(queue.take_slot(fence, NOW), SlotGrant::Slot(1));
        queue.publish(0);
        queue.give_back(1);
        assert_eq!(queue.take_slot(fence, NOW), SlotGrant::Slot(1));
        queue.publish(1);
        assert_eq!(queue.take_slot(fence, NOW), SlotGrant::Full);
        queue.start_epoch(1, 2);
        assert_eq!(queue.take_slot(2, NOW), SlotGrant::Full);
        queue.release(0).unwrap();
        queue.release(0).unwrap();
        assert_eq!(queue.take_slot(2, NOW), SlotGrant::Slot(0));
        // The worker writes to it: a late second release does not take it away.
        queue.release(0).unwrap();
        assert_eq!(queue.take_slot(2, NOW), SlotGrant::Full);
    }

    #[test]
    fn invalid_messages_are_refused() {
        let queue = Queue::new(10, 2);
        assert!(matches!(queue.work((0, 0), 0, 1, false), Err(InvalidMessage::Future { .. })));
        queue.start_epoch(0, 1);
        for (first, count, descending) in
            [(10, 1, true), (10, 1, false), (9, 2, false), (3, 5, true), (u32::MAX, 1, true)]
        {
            let refused = queue.work((0, 1), first, count, descending);
            assert!(matches!(refused, Err(InvalidMessage::Range { .. })), "{first} {count}");
        }
        assert!(matches!(queue.work((0, 2), 0, 1, false), Err(InvalidMessage::Future { .. })));
        assert!(matches!(queue.work((1, 0), 0, 1, false), Err(InvalidMessage::Future { .. })));
        assert_eq!(queue.release(2), Err(InvalidMessage::Slot { slot: 2, slots: 2 }));
        queue.work((0, 1), 3, 4, true).unwrap();
        queue.work((0, 1), 0, 10, false).unwrap();
        queue.work((0, 1), 5, 0, false).unwrap();
    }

    #[test]
    fn a_stop_is_returned_once_and_a_close_always() {
        let queue = Queue::new(10, 1);
        queue.start_epoch(0, 1);
        queue.work((0, 1), 0, 10, false).unwrap();
        queue.stop();
        assert_eq!(queue.next(NOW), Next::Stopped);
        assert_eq!(queue.next(NOW), Next::Nothing);
        assert!(!queue.wait_closed(NOW));
        queue.close();
        assert!(queue.is_closed() && queue.wait_closed(Duration::from_secs(60)));
        assert_eq!(queue.next(Duration::from_secs(60)), Next::Closed);
        assert_eq!(queue.next(NOW), Next::Closed);
    }

    #[test]
    fn a_queue_that_drains_begins_nothing_and_finishes_what_was_begun() {
        let queue = Queue::new(10, 1);
        queue.start_epoch(0, 1);
        queue.work((0, 1), 0, 10, false).unwrap();
        let Next::Batch(begun) = queue.next(NOW) else { panic!("there is work") };
        assert_eq!(queue.claim(begun.fence), Some(begun));
        queue.drain();
        assert_eq!([queue.next(NOW), queue.next(NOW)], [Next::Drained; 2]);
        assert!(queue.is_draining() && !queue.is_void(begun.fence));
        assert_eq!(queue.take_slot(begun.fence, NOW), SlotGrant::Slot(0));
        queue.work((0, 1), 5, 1, false).unwrap();
        assert_eq!(queue.next(Duration::from_secs(60)), Next::Drained);
        queue.close();
        assert_eq!(queue.next(NOW), Next::Closed);
    }

    #[test]
    fn a_worker_that_waits_is_woken_by_a_release() {
        let queue = Queue::new(10, 1);
        assert_eq!(queue.take_slot(0, NOW), SlotGrant::Slot(0));
        queue.publish(0);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| queue.take_slot(0, Duration::from_secs(60)));
            queue.release(0).unwrap();
            assert_eq!(waiting.join().unwrap(), SlotGrant::Slot(0));
        });
    }
}
