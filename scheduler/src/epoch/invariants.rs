//! The invariants of an epoch: the cheap ones are checked at each step of a debug build, all on
//! request.

use crate::board::Board;
use crate::device::DeviceLoss;
use crate::epoch::Epoch;
use crate::ledger::State;
use crate::types::{BatchIndex, Source};

/// Number of parts and devices that are checked at each step; on request, all are.
const CHECKED_MAX: usize = 8;

/// The ends at the last check: front and untouched batches of the first parts.
#[derive(Debug, Clone)]
pub(crate) struct Watermarks([(u32, u32); CHECKED_MAX]);

impl Watermarks {
    pub(crate) fn new(board: &Board) -> Self {
        Self(std::array::from_fn(|at| ends(board, at)))
    }
}

fn ends(board: &Board, at: usize) -> (u32, u32) {
    let parts = &board.ledger.parts;
    if at < parts.len() { (parts.part(at).front(), parts.part(at).untouched()) } else { (0, 0) }
}

impl Epoch {
    /// Checks in O(1), in debug builds.
    pub(crate) fn check_step(&mut self) {
        if cfg!(debug_assertions) {
            self.check_ends();
            self.check_limits(CHECKED_MAX);
        }
    }

    /// lo ≤ grant ≤ hi+1 for each part, lo never decreases, and a claimed batch is never untouched
    /// again.
    fn check_ends(&mut self) {
        for (at, before) in self.watermarks.0.iter_mut().enumerate() {
            let (front, untouched) = ends(&self.board, at);
            assert!(front >= before.0, "lo of part {at} fell from {} to {front}", before.0);
            assert!(untouched <= before.1, "claims of part {at} vanished");
            *before = (front, untouched);
            if at < self.board.ledger.parts.len() {
                let part = self.board.ledger.parts.part(at);
                assert!(front <= part.back() && part.back() <= part.count(), "the ends crossed");
            }
        }
    }

    /// Lookaheads, spool slots and open fetches stay within their limits.
    fn check_limits(&self, devices: usize) {
        let (board, terms) = (&self.board, &self.board.terms);
        assert!(board.ledger.host_open() <= terms.host_ahead, "the host is too far ahead");
        let in_host = board.fetching + board.fetched;
        assert!(board.devices.is_empty() || in_host <= terms.fetch_ahead, "too much fetched");
        for device in board.devices.iter().take(devices) {
            assert!(device.claimed.len() <= device.ahead, "a device is too far ahead");
            assert!(device.slots() <= device.spool_slots, "the spool is over its quota");
            let unready = match device.lost {
                None => false,
                Some(DeviceLoss::Slow | DeviceLoss::Leaving) => !device.claimed.is_empty(),
                Some(_) => device.holds_unready(),
            };
            assert!(!unready, "a lost device holds batches");
        }
    }

    /// Checks every invariant over all batches: O(N). For tests; panics with the violated
    /// invariant.
    pub fn check_invariants(&self) {
        self.check_limits(usize::MAX);
        let ledger = &self.board.ledger;
        let mut consumed = 0;
        for batch in (0..ledger.batches()).map(BatchIndex) {
            let (part, n) = ledger.parts.locate(batch);
            assert_eq!(ledger.parts.batch(part, n), batch, "holder and nth are not inverses");
            let untouched = ledger.parts.is_untouched(batch);
            let freed = ledger.parts.part(part).is_freed(n);
            let entry = ledger.entry(batch);
            assert!(!(untouched && entry.is_some()), "batch {} is untouched and held", batch.0);
            assert_eq!(freed, entry.is_some_and(|entry| entry.state == State::Free));
            consumed += u32::from(!untouched && entry.is_none());
        }
        assert_eq!(consumed, ledger.consumed(), "consumed batches are miscounted");
        self.check_entries();
    }

    /// Every open batch is in the lists of its holder, and nothing else is.
    fn check_entries(&self) {
        let (board, ledger) = (&self.board, &self.board.ledger);
        let (mut host_open, mut host_ready, mut fetching) = (0, 0, 0);
        let mut held = vec![[0_u32; 3]; board.devices.len()];
        for (batch, entry) in ledger.entries() {
            let Source::Device(id) = entry.source else {
                host_open += 1;
                host_ready += u32::from(entry.state == State::Ready);
                continue;
            };
            let (part, _) = ledger.parts.locate(batch);
            assert_eq!(part, ledger.parts.of(id), "a device holds a batch that is not its own");
            let device = board.device(id);
            let counts = &mut held[usize::from(id.0)];
            match entry.state {
                State::Claimed => {
                    assert!(device.claimed.contains(batch), "a claim is not listed");
                    assert_eq!(entry.generation, device.generation);
                    counts[0] += 1;
                }
                State::Published | State::Fetching => {
                    assert!(device.published.contains(batch), "a slot is not listed");
                    fetching += u32::from(entry.state == State::Fetching);
                    counts[1] += 1;
                }
                State::Ready => counts[2] += 1,
                State::Free => {}
                State::Consumed => panic!("a consumed batch is open"),
            }
        }
        assert_eq!((host_open, host_ready), (ledger.host_open(), ledger.host_ready()));
        let sum = |at: usize| held.iter().map(|counts| counts[at]).sum::<u32>();
        assert_eq!(sum(0), ledger.device_claimed(), "claims are miscounted");
        assert_eq!(sum(1) + sum(2), ledger.device_finished(), "slots are miscounted");
        assert_eq!((fetching, sum(2)), (board.fetching, board.fetched), "fetches are miscounted");
        for (device, counts) in board.devices.iter().zip(held) {
            let listed = [device.claimed.len(), device.published.len(), device.ready];
            assert_eq!(listed, counts, "a device's batches are miscounted");
        }
    }
}
