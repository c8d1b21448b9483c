//! Memory for decoding large pictures, which the preparers of a process share.
//!
//! A sample that needs little memory according to its headers is decoded at once. Any other waits
//! in turn until the memory that it needs is free, so samples that are decoded at the same time
//! never exceed the limit together. A single sample that needs more than the limit is an error.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Samples that need at most this are not counted: each preparer may use this amount at any time.
pub const UNCOUNTED_BYTES: u64 = 16 << 20;

/// How often a waiting caller is asked whether to continue.
const WAIT_SLICE: Duration = Duration::from_millis(20);

/// Memory for decoding, shared by preparers.
#[derive(Debug)]
pub struct DecodeMemory {
    limit: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    reserved: u64,
    next_ticket: u64,
    /// The waiting preparers, in order of arrival.
    waiting: VecDeque<u64>,
}

/// Why no memory was reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoMemory {
    /// The sample needs more than the limit.
    Never {
        /// Maximum bytes at a time.
        limit: u64,
    },
    /// The caller gave up.
    GivenUp,
}

/// Memory that is reserved until this is dropped.
#[derive(Debug)]
pub struct Reserved {
    of: Arc<DecodeMemory>,
    bytes: u64,
}

impl DecodeMemory {
    /// A budget of `limit` bytes, shared by all clones.
    pub fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, state: Mutex::default(), changed: Condvar::new() })
    }

    /// Reserves memory, in turn; waits while `goes_on` returns true. `None` if the amount is too
    /// small to be counted.
    pub fn reserve(
        self: &Arc<Self>,
        bytes: u64,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Reserved>, NoMemory> {
        if bytes <= UNCOUNTED_BYTES {
            return Ok(None);
        }
        if bytes > self.limit {
            return Err(NoMemory::Never { limit: self.limit });
        }
        let mut state = self.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.push_back(ticket);
        while state.waiting.front() != Some(&ticket) || state.reserved + bytes > self.limit {
            drop(state);
            let is_wanted = goes_on();
            state = self.lock();
            if !is_wanted {
                state.waiting.retain(|waiting| *waiting != ticket);
                self.changed.notify_all();
                return Err(NoMemory::GivenUp);
            }
            let waited = self.changed.wait_timeout(state, WAIT_SLICE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.waiting.pop_front();
        state.reserved += bytes;
        drop(state);
        // The next one may fit beside it.
        self.changed.notify_all();
        Ok(Some(Reserved { of: Arc::clone(self), bytes }))
    }

    /// Whether a sample that needs this much is ever decoded.
    pub fn admits(&self, bytes: u64) -> bool {
        bytes <= UNCOUNTED_BYTES.max(self.limit)
    }

    /// Maximum bytes at a time.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes that are reserved now.
    pub fn reserved(&self) -> u64 {
        self.lock().reserved
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Sums and tickets are consistent after every statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.of.lock().reserved -= self.bytes;
        self.of.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: u64 = UNCOUNTED_BYTES + 1;

    #[test]
    fn small_samples_need_no_turn() {
        let memory = DecodeMemory::new(0);
        assert!(matches!(memory.reserve(UNCOUNTED_BYTES, &mut || false), Ok(None)));
    }

    #[test]
    fn a_sample_that_never_fits_is_refused_at_once() {
        let memory = DecodeMemory::new(LARGE);
        let refused = memory.reserve(LARGE + 1, &mut || unreachable!("there is no use in waiting"));
        assert_eq!(refused.unwrap_err(), NoMemory::Never { limit: LARGE });
    }

    #[test]
    fn memory_is_free_again_when_it_is_dropped() {
        let memory = DecodeMemory::new(2 * LARGE);
        let one = memory.reserve(LARGE, &mut || false).unwrap();
        let two = memory.reserve(LARGE, &mut || false).unwrap();
        assert_eq!(memory.reserved(), 2 * LARGE);
        assert_eq!(memory.reserve(LARGE, &mut || false).unwrap_err(), NoMemory::GivenUp);
        drop(one);
        let again = memory.reserve(LARGE, &mut || false).unwrap();
        drop((two, again));
        assert_eq!(memory.reserved(), 0);
    }

    #[test]
    fn a_large_sample_gets_its_turn_before_small_ones_that_came_later() {
        let memory = DecodeMemory::new(3 * LARGE);
        let first = memory.reserve(LARGE, &mut || false).unwrap();
        std::thread::scope(|scope| {
            let (asked, is_waiting) = std::sync::mpsc::channel();
            let shared = Arc::clone(&memory);
            let large = scope.spawn(move || {
                shared.reserve(3 * LARGE, &mut || {
                    // The receiver is dropped once the wait was observed.
                    let _ = asked.send(());
                    true
                })
            });
            is_waiting.recv().unwrap();
            // There would be enough memory, but it is not this one's turn.
            assert_eq!(memory.reserve(LARGE, &mut || false).unwrap_err(), NoMemory::GivenUp);
            drop(first);
            assert!(matches!(large.join().unwrap(), Ok(Some(_))));
        });
    }
}
