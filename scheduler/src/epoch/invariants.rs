//! The invariants of an epoch: the cheap ones at each step of a debug build, all on request.

use crate::config::{Config, Strategy};
use crate::epoch::Epoch;
use crate::ledger::State;
use crate::types::{BatchIndex, Source};

/// Where the two ends stood at the last check.
#[derive(Debug, Clone)]
pub(crate) struct Watermarks {
    lo: u32,
    grant: u32,
}

impl Watermarks {
    pub(crate) fn new(config: &Config) -> Self {
        Self { lo: 0, grant: config.batches }
    }
}

impl Epoch {
    /// What can be seen in O(1), in debug builds.
    pub(crate) fn check_step(&mut self) {
        if cfg!(debug_assertions) {
            self.check_ends();
            self.check_limits();
        }
    }

    /// lo ≤ grant ≤ hi+1, lo never falls, grant never rises.
    fn check_ends(&mut self) {
        let (lo, grant) = (self.board.ledger.lo(), self.board.ledger.back());
        assert!(lo <= grant, "lo {lo} passed the grant {grant}");
        assert!(lo >= self.watermarks.lo, "lo fell from {} to {lo}", self.watermarks.lo);
        let before = self.watermarks.grant;
        assert!(grant <= before, "the grant rose from {before} to {grant}");
        self.watermarks = Watermarks { lo, grant };
        for device in &self.board.devices {
            // With work from the front, the device's end is lo.
            let outside = if matches!(self.board.config.strategy, Strategy::DeviceOnly) {
                device.claimed.last().is_none_or(|batch| batch.0 < lo)
            } else {
                device.claimed.first().is_none_or(|batch| batch.0 >= grant)
            };
            assert!(outside, "a device holds a batch that it was not granted");
        }
    }

    /// Lookaheads, spool and fetch places stay within their quotas.
    fn check_limits(&self) {
        let (board, config) = (&self.board, &self.board.config);
        assert!(board.ledger.host_open() <= config.host_ahead, "the host is too far ahead");
        let in_host = board.fetching + board.fetched;
        assert!(board.devices.is_empty() || in_host <= config.fetch_ahead, "too much fetched");
        for device in &board.devices {
            assert!(device.claimed.len() <= device.ahead, "a device is too far ahead");
            assert!(device.slots() <= device.spool_slots, "the spool is over its quota");
            assert!(
                device.lost.is_none() || !device.holds_unready(),
                "a lost device holds batches"
            );
        }
    }

    /// Checks every invariant over all batches: O(N). For tests; panics with what is broken.
    pub fn check_invariants(&self) {
        self.check_limits();
        let (board, ledger) = (&self.board, &self.board.ledger);
        let (mut consumed, mut host_open, mut fetching, mut fetched) = (0, 0, 0, 0);
        let mut held = vec![[0_u32; 3]; board.devices.len()];
        for batch in (0..ledger.batches()).map(BatchIndex) {
            let state = ledger.state(batch);
            let free = ledger.is_untouched(batch) || ledger.freed().contains(batch);
            assert_eq!(free, state == State::Free, "batch {} is {state:?}", batch.0);
            let lists = board.devices.iter().map(|device| {
                u32::from(device.claimed.contains(batch))
                    + u32::from(device.published.contains(batch))
            });
            let listed: u32 = lists.sum();
            match (state, ledger.source(batch)) {
                (State::Free, _) => assert_eq!(listed, 0, "a free batch is listed"),
                (State::Consumed, _) => consumed += 1,
                (_, Source::Host) => host_open += 1,
                (state, Source::Device(id)) => {
                    let device = &board.devices[usize::from(id.0)];
                    let counts = &mut held[usize::from(id.0)];
                    match state {
                        State::Claimed => {
                            assert!(device.claimed.contains(batch), "a claim is not listed");
                            assert_eq!(ledger.generation(batch), device.generation);
                            counts[0] += 1;
                        }
                        State::Published | State::Fetching => {
                            assert!(device.published.contains(batch), "a slot is not listed");
                            fetching += u32::from(state == State::Fetching);
                            counts[1] += 1;
                        }
                        _ => {
                            fetched += 1;
                            counts[2] += 1;
                        }
                    }
                }
            }
        }
        assert_eq!(consumed, ledger.consumed(), "consumed batches are miscounted");
        assert_eq!(host_open, ledger.host_open(), "the host's batches are miscounted");
        assert_eq!((fetching, fetched), (board.fetching, board.fetched), "fetches are miscounted");
        for (device, counts) in board.devices.iter().zip(held) {
            let kept = [device.claimed.len(), device.published.len(), device.ready];
            assert_eq!(kept, counts, "a device's batches are miscounted");
        }
    }
}
