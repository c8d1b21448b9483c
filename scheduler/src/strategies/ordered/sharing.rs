//! Rules that give each part a share: when the shares are fixed, and to which values.
//!
//! The shares are configured or replayed, follow from known times, or are determined within the
//! epoch: both ends work towards each other until enough was measured, and each end keeps the
//! batches that it has claimed by then. If they meet before that, or the devices are lost, the
//! split is their current position.

use std::fmt::Debug;

use crate::board::Board;
use crate::ranks::Proposal;
use crate::terms::Terms;

use super::order::Pattern;
use super::order_progress::OrderProgress;
use super::rule::{Ordered, Rule};
use super::shares::{self, DivisionInputs, PartSpeed};

/// How shares follow from times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Division {
    /// Both ends finish together.
    EqualFinish,
    /// The shortest epoch.
    Optimal,
}

/// The cap of a part's share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caps {
    /// The capacity of its spool.
    Spool,
    /// The number of batches that pass through its spool while its batches are consumed in
    /// sequence.
    Drained,
    /// The number of batches it holds.
    Held,
}

/// The state of the parts, for computing shares.
#[derive(Debug, Clone)]
pub(crate) struct Shares {
    speeds: Vec<PartSpeed>,
    limited_by_spool: bool,
}

/// The differences between strategies that give shares.
pub(crate) trait SharePolicy: Debug + Clone {
    /// A total that is known in advance.
    fn given(&self) -> Option<(u32, Caps)> {
        None
    }

    /// How shares follow from times; `None` if they do not.
    fn division(&self) -> Option<(Division, Caps)>;

    /// The effective t_g for the host.
    fn ready_ns(&self, board: &Board) -> u64 {
        board.ready_ns()
    }

    /// The order for the shares in `progress`. `first`: host steps before the pattern begins.
    fn pattern(
        &self,
        progress: &OrderProgress,
        board: &Board,
        shares: &Shares,
        first: u32,
    ) -> Pattern;

    /// The order if ranks agreed on a total.
    fn agreed_pattern(&self, pattern: Pattern, _combined: &Proposal, _total: u32) -> Pattern {
        pattern
    }

    /// The order that a record fixes by the numbers before its shares.
    fn replayed(
        &self,
        progress: &mut OrderProgress,
        board: &Board,
        shares: &mut Shares,
        turns: &[u64],
    ) -> Pattern;

    /// The numbers of a record before its shares; `None` if the order leaves no record.
    fn turns(&self, _pattern: Pattern) -> Option<Vec<u64>> {
        Some(Vec::new())
    }

    /// Called when the host asks for a batch: whether to leave all batches that it has not claimed
    /// to the devices.
    #[inline]
    fn switches(&mut self, _board: &Board) -> bool {
        false
    }

    /// Whether this rank would do so, if ranks decide that together.
    fn would_switch(&self) -> bool {
        false
    }

    /// The total that ranks agreed on. `most`: the number of batches that no host has claimed.
    fn agreed_total(&self, combined: &Proposal, most: u32) -> Option<u32> {
        combined.share_known.then(|| combined.share.max(combined.device_claimed).min(most))
    }
}

/// The rule of a strategy that gives shares.
#[derive(Debug, Clone)]
pub(crate) struct Sharing<S> {
    shares: Shares,
    by: S,
}

impl<S: SharePolicy> Sharing<S> {
    /// A plan whose shares are not fixed yet.
    pub(crate) fn plan(terms: &Terms, pattern: Pattern, by: S) -> Ordered<Self> {
        let unknown = PartSpeed { device_ns: 0, cap: 0 };
        let speeds = vec![unknown; terms.holders.parts()];
        let shares = Shares { speeds, limited_by_spool: false };
        Ordered::new(terms, pattern, Self { shares, by })
    }

    fn replay(&mut self, progress: &mut OrderProgress, board: &mut Board, numbers: &[u64]) {
        let parts = progress.layout.shares.len();
        let (turns, shares) = numbers.split_at(numbers.len() - parts);
        for (share, &recorded) in progress.layout.shares.iter_mut().zip(shares) {
            *share = u32::try_from(recorded).expect("checked with the configuration");
        }
        let pattern = self.by.replayed(progress, board, &mut self.shares, turns);
        progress.begin_fixed(board, pattern);
    }

    /// Computes the shares in `progress` from the times; `false` while too little is known.
    fn find_shares(&mut self, progress: &mut OrderProgress, board: &Board) -> bool {
        let Some((division, caps)) = self.by.division() else { return false };
        if !board.times_known(board.terms.profile_batches.max(1)) || board.host_ns() == 0 {
            return false;
        }
        if division == Division::Optimal && board.ready_ns() == 0 {
            return false;
        }
        self.shares.measure(board, caps);
        if self.shares.speeds.iter().all(|part| part.device_ns == 0) {
            return false;
        }
        let inputs = DivisionInputs {
            batches: board.ledger.batches(),
            host_ns: board.host_ns(),
            ready_ns: self.by.ready_ns(board),
        };
        let to = &mut progress.layout.shares;
        self.shares.limited_by_spool = match division {
            Division::EqualFinish => shares::equal_finish(inputs, &self.shares.speeds, to),
            Division::Optimal => shares::optimal(inputs, &self.shares.speeds, to),
        };
        true
    }

    /// Fixes the shares if measurements, claims or losses allow it.
    #[inline(never)]
    fn learn_shares(&mut self, progress: &mut OrderProgress, board: &mut Board) {
        // The batches that the host has claimed so far come first.
        let first = board.ledger.consumed_by_host() + board.ledger.host_open();
        if board.ledger.untouched() == 0 || board.all_lost() {
            // The split is their current position.
            progress.layout.shares.fill(0);
            self.fix(progress, board, first);
            return;
        }
        if board.terms.ranks == 1 && self.find_shares(progress, board) {
            self.fix(progress, board, first);
        }
    }

    /// Fixes the order to the shares in `progress`, as far as claims allow. `first`: host steps
    /// before the turns begin.
    fn fix(&mut self, progress: &mut OrderProgress, board: &mut Board, first: u32) {
        progress.clamp_shares(board);
        let pattern = self.by.pattern(progress, board, &self.shares, first);
        progress.begin_fixed(board, pattern);
    }
}

impl<S: SharePolicy> Rule for Sharing<S> {
    fn start(&mut self, progress: &mut OrderProgress, board: &mut Board) {
        if let Some(numbers) = board.terms.replay.clone() {
            self.replay(progress, board, &numbers);
        } else if let Some((total, caps)) = self.by.given() {
            self.shares.measure(board, caps);
            shares::divide(total, &self.shares.speeds, &mut progress.layout.shares);
            let given: u32 = progress.layout.shares.iter().sum();
            self.shares.limited_by_spool = given < total;
            self.fix(progress, board, 0);
        } else if board.terms.ranks == 1 {
            self.learn(progress, board);
        }
    }

    #[inline]
    fn learn(&mut self, progress: &mut OrderProgress, board: &mut Board) {
        if !progress.fixed {
            self.learn_shares(progress, board);
        }
    }

    #[inline]
    fn host_asks(&mut self, progress: &mut OrderProgress, board: &mut Board) {
        if !progress.fixed && self.by.switches(board) {
            progress.share_everything(board);
            self.fix(progress, board, 0);
        }
    }

    fn split(&self, progress: &OrderProgress) -> (Option<u32>, bool) {
        (progress.fixed.then_some(progress.layout.total), self.shares.limited_by_spool)
    }

    fn record(&self, progress: &OrderProgress) -> Option<Vec<u64>> {
        if !progress.fixed {
            return None;
        }
        let mut numbers = self.by.turns(progress.layout.pattern)?;
        numbers.extend(progress.layout.shares.iter().map(|&share| u64::from(share)));
        Some(numbers)
    }

    fn propose(&mut self, progress: &mut OrderProgress, board: &Board, proposal: &mut Proposal) {
        if progress.fixed {
            progress.propose_fixed(proposal);
            return;
        }
        proposal.switch = self.by.would_switch();
        if self.find_shares(progress, board) {
            proposal.share_known = true;
            proposal.share = progress.layout.shares.iter().sum();
            let (ready_ns, device_ns) = (self.by.ready_ns(board), self.shares.together_ns());
            proposal.times_ns = [board.host_ns(), ready_ns, device_ns];
        }
    }

    fn agreed(&mut self, progress: &mut OrderProgress, board: &mut Board, combined: &Proposal) {
        if progress.fixed {
            return;
        }
        let batches = board.ledger.batches();
        let most = batches - combined.host_claimed.min(batches);
        let Some(total) = self.by.agreed_total(combined, most) else { return };
        self.shares.measure(board, Caps::Held);
        shares::divide(total, &self.shares.speeds, &mut progress.layout.shares);
        progress.clamp_shares(board);
        let pattern = self.by.pattern(progress, board, &self.shares, combined.host_claimed);
        progress.begin_fixed(board, self.by.agreed_pattern(pattern, combined, total));
    }
}

impl Shares {
    /// Speeds and caps of all parts.
    fn measure(&mut self, board: &Board, caps: Caps) {
        let shared = board.ledger.parts.shared();
        for (at, speed) in self.speeds.iter_mut().enumerate() {
            let count = board.ledger.parts.part(at).count();
            let slots = if shared {
                board.terms.spool_slots()
            } else {
                board.terms.devices[at].spool_slots
            };
            let device_ns = if board.usable(at) { board.part_ns(at) } else { 0 };
            let cap = match caps {
                Caps::Spool => slots,
                Caps::Drained if device_ns > 0 => while_drained(slots, device_ns, board.ready_ns()),
                Caps::Drained | Caps::Held => count,
            };
            *speed = PartSpeed { device_ns, cap: cap.min(count) };
        }
    }

    /// Limits shares to the capacity of their parts' spools. The consumption of a part larger than
    /// its spool could never start.
    pub(crate) fn fit_spools(&mut self, progress: &mut OrderProgress, board: &Board) {
        self.measure(board, Caps::Spool);
        for (share, part) in progress.layout.shares.iter_mut().zip(&self.speeds) {
            self.limited_by_spool |= *share > part.cap;
            *share = (*share).min(part.cap);
        }
    }

    /// t_s of all parts together, at least 1.
    pub(crate) fn together_ns(&self) -> u64 {
        let known = self.speeds.iter().filter(|part| part.device_ns > 0);
        let rate: f64 = known.map(|part| 1.0 / part.device_ns as f64).sum();
        if rate > 0.0 { ((1.0 / rate + 0.5) as u64).max(1) } else { 1 }
    }
}

/// Batches that a part delivers through `slots` slots (S) if consumption starts only when all but
/// its last S batches are done: n = S + n·t_g/t_s.
fn while_drained(slots: u32, device_ns: u64, ready_ns: u64) -> u32 {
    if device_ns <= ready_ns {
        return u32::MAX;
    }
    let exact = u128::from(slots) * u128::from(device_ns) / u128::from(device_ns - ready_ns);
    u32::try_from(exact).unwrap_or(u32::MAX)
}
