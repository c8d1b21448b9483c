//! The blocks that wait to be fetched, and those that could not be.
//!
//! Consecutive blocks are fetched by one request: a run. Runs that readers wait for go before those
//! that are prefetched.

use super::blocks::{BLOCK_BYTES, Blocks};
use crate::error::RemoteError;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;

/// Maximum number of requests in flight. There are many, because short requests, as in a shuffled
/// order, are limited by the latency of the store, not by its bandwidth.
const REQUESTS_MAX: usize = 64;
/// Maximum number of blocks that are being fetched: 16 long requests.
const FETCHING_BLOCKS_MAX: u64 = 16 * RUN_BLOCKS_MAX;
/// Maximum number of blocks of a request.
const RUN_BLOCKS_MAX: u64 = (4 << 20) / BLOCK_BYTES;

/// When blocks are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    /// Readers wait for them.
    Demanded,
    /// They are prefetched.
    Ahead,
}

/// Requests that wait, and what failed.
#[derive(Debug, Default)]
pub(super) struct FetchQueue {
    /// Runs of claimed blocks for which readers wait.
    demanded: VecDeque<Range<u64>>,
    /// Runs of claimed blocks to prefetch.
    ahead: VecDeque<Range<u64>>,
    in_flight: usize,
    /// Blocks of the requests in flight.
    fetching: u64,
    /// All blocks that this process has claimed.
    claimed: HashSet<u64>,
    /// Blocks that could not be fetched, and why.
    failed: HashMap<u64, RemoteError>,
    /// Requests that have ended.
    ended: u64,
}

impl FetchQueue {
    /// Adds claimed blocks as runs.
    pub(super) fn push(&mut self, mut claimed: Vec<u64>, blocks: &Blocks, urgency: Urgency) {
        claimed.sort_unstable();
        let mut runs: Vec<Range<u64>> = Vec::new();
        for block in claimed {
            self.claimed.insert(block);
            self.failed.remove(&block);
            let (part, _) = blocks.place(block);
            match runs.last_mut() {
                Some(run)
                    if run.end == block
                        && run.end - run.start < RUN_BLOCKS_MAX
                        && blocks.place(run.start).0 == part =>
                {
                    run.end = block + 1;
                }
                _ => runs.push(block..block + 1),
            }
        }
        match urgency {
            Urgency::Demanded => self.demanded.extend(runs),
            Urgency::Ahead => self.ahead.extend(runs),
        }
    }

    /// Moves a run to prefetch that contains some of these blocks to those that readers wait for.
    pub(super) fn hurry(&mut self, blocks: &Range<u64>) {
        let is_wanted = |run: &Range<u64>| run.start < blocks.end && blocks.start < run.end;
        if let Some(index) = self.ahead.iter().position(is_wanted) {
            self.demanded.extend(self.ahead.remove(index));
        }
    }

    /// The run to fetch next, which is in flight from now on: what readers wait for goes first.
    /// `None` if no run waits, or if a limit of requests or blocks in flight is reached.
    pub(super) fn next(&mut self) -> Option<Range<u64>> {
        let queue = match self.demanded.is_empty() {
            true => &mut self.ahead,
            false => &mut self.demanded,
        };
        let run = queue.front()?;
        let blocks = run.end - run.start;
        let is_over = self.fetching > 0 && self.fetching + blocks > FETCHING_BLOCKS_MAX;
        if self.in_flight >= REQUESTS_MAX || is_over {
            return None;
        }
        self.in_flight += 1;
        self.fetching += blocks;
        queue.pop_front()
    }

    /// Records the end of a run in flight.
    pub(super) fn end(&mut self, run: Range<u64>, fetched: &Result<(), RemoteError>) {
        self.ended += 1;
        self.in_flight -= 1;
        self.fetching -= run.end - run.start;
        for block in run {
            self.claimed.remove(&block);
            match fetched {
                Ok(()) => drop(self.failed.remove(&block)),
                Err(error) => drop(self.failed.insert(block, error.clone())),
            }
        }
    }

    /// Requests that have ended so far.
    pub(super) fn ended(&self) -> u64 {
        self.ended
    }

    /// Records that a block cannot be fetched.
    pub(super) fn fail(&mut self, block: u64, error: RemoteError) {
        self.failed.insert(block, error);
    }

    /// Why one of these blocks could not be fetched.
    pub(super) fn failure(&self, mut blocks: Range<u64>) -> Option<&RemoteError> {
        blocks.find_map(|block| self.failed.get(&block))
    }

    /// Lets blocks be tried again that could not be fetched.
    pub(super) fn forget_failures(&mut self, blocks: Range<u64>) {
        if !self.failed.is_empty() {
            blocks.for_each(|block| drop(self.failed.remove(&block)));
        }
    }

    /// All blocks that this process has claimed, which it gives up.
    pub(super) fn take_claimed(&mut self) -> HashSet<u64> {
        std::mem::take(&mut self.claimed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> Blocks {
        Blocks::new(vec![4 * BLOCK_BYTES, 1000 * BLOCK_BYTES])
    }

    #[test]
    fn a_run_ends_with_its_part_and_at_the_longest_request() {
        let mut queue = FetchQueue::default();
        queue.push((0..4 + RUN_BLOCKS_MAX + 1).rev().collect(), &blocks(), Urgency::Ahead);
        let long = 4..4 + RUN_BLOCKS_MAX;
        let runs: Vec<_> = std::iter::from_fn(|| queue.next()).collect();
        assert_eq!(runs, [0..4, long.clone(), long.end..long.end + 1]);
    }

    #[test]
    fn what_readers_wait_for_goes_first() {
        let mut queue = FetchQueue::default();
        for block in [10, 20, 30] {
            queue.push(vec![block], &blocks(), Urgency::Ahead);
        }
        queue.push(vec![40], &blocks(), Urgency::Demanded);
        queue.hurry(&(19..22));
        let runs: Vec<_> = std::iter::from_fn(|| queue.next()).collect();
        assert_eq!(runs, [40..41, 20..21, 10..11, 30..31]);
    }

    #[test]
    fn a_failed_block_has_a_cause_until_it_is_tried_again() {
        let mut queue = FetchQueue::default();
        queue.push(vec![5, 6], &blocks(), Urgency::Demanded);
        let run = queue.next().unwrap();
        assert_eq!((run.clone(), queue.next()), (5..7, None));
        queue.end(run, &Err(RemoteError::NoCache));
        assert_eq!(queue.failure(6..9), Some(&RemoteError::NoCache));
        assert_eq!((queue.failure(7..9), queue.ended()), (None, 1));
        queue.forget_failures(6..7);
        assert_eq!((queue.failure(6..9), queue.failure(5..6).is_some()), (None, true));
        assert!(queue.take_claimed().is_empty());
    }

    #[test]
    fn requests_in_flight_are_limited() {
        let mut queue = FetchQueue::default();
        (0..100).for_each(|block| queue.push(vec![4 + 2 * block], &blocks(), Urgency::Ahead));
        let runs: Vec<_> = std::iter::from_fn(|| queue.next()).collect();
        assert_eq!(runs.len(), REQUESTS_MAX);
        queue.end(runs[0].clone(), &Ok(()));
        assert!(queue.next().is_some() && queue.next().is_none());
    }
}
