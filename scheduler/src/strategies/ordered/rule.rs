//! The differences between strategies with a fixed order, and the plan that they share.

use std::fmt::Debug;

use crate::board::Board;
use crate::ranks::Proposal;
use crate::strategies::plan::{Consumption, Grant, Next, Plan, StallAction};
use crate::terms::Terms;
use crate::types::{BatchIndex, DeviceId};

use super::order::Pattern;
use super::order_progress::OrderProgress;

/// What one strategy adds to [`Ordered`]. The defaults are for a strategy that gives devices shares
/// from the back of each part.
pub(crate) trait Rule: Debug + Clone {
    /// How device batches are consumed.
    const CONSUMPTION: Consumption = Consumption::InOrder;

    /// Whether devices prepare anything.
    const USES_DEVICES: bool = true;

    /// Called before the first event: fixes the order if it is known.
    fn start(&mut self, progress: &mut OrderProgress, board: &mut Board);

    /// Called when something was measured, claimed or lost.
    #[inline]
    fn learn(&mut self, _progress: &mut OrderProgress, _board: &mut Board) {}

    /// Called when the host asks for a batch.
    #[inline]
    fn host_asks(&mut self, _progress: &mut OrderProgress, _board: &mut Board) {}

    /// Whether devices cannot finish an untouched batch that was left to them in time.
    #[inline]
    fn is_too_late(&self, _progress: &OrderProgress, _board: &Board, _batch: BatchIndex) -> bool {
        false
    }

    /// As [`Plan::is_late_with`].
    #[inline]
    fn is_late_with(
        &mut self,
        _progress: &mut OrderProgress,
        _board: &Board,
        _batch: BatchIndex,
    ) -> bool {
        false
    }

    /// What a device may be granted.
    #[inline]
    fn grant(&self, progress: &OrderProgress, board: &Board, device: DeviceId) -> Grant {
        Grant::from_back(progress.share_run(board, device))
    }

    /// Called when work was granted.
    #[inline]
    fn granted(&mut self, _board: &Board, _device: DeviceId, _grant: Grant) {}

    /// As [`Plan::grants_ended`].
    #[inline]
    fn grants_ended(&self, progress: &OrderProgress, board: &Board, device: DeviceId) -> bool {
        progress.grants_ended(board, device)
    }

    /// As [`Plan::takes_preloaded`].
    fn takes_preloaded(&self, progress: &OrderProgress, board: &Board, batch: BatchIndex) -> bool {
        progress.is_next_from_back(board, batch)
    }

    /// Called when the accelerator found nothing to consume.
    #[inline]
    fn rescue(&mut self, _progress: &mut OrderProgress, _board: &Board) -> StallAction {
        StallAction::Wait
    }

    /// As [`Plan::split`].
    fn split(&self, _progress: &OrderProgress) -> (Option<u32>, bool) {
        (None, false)
    }

    /// As [`Plan::record`].
    fn record(&self, _progress: &OrderProgress) -> Option<Vec<u64>> {
        None
    }

    /// What this rank contributes to an agreement.
    fn propose(&mut self, progress: &mut OrderProgress, _board: &Board, proposal: &mut Proposal) {
        if progress.fixed {
            progress.propose_fixed(proposal);
        }
    }

    /// Called when all ranks have agreed.
    fn agreed(&mut self, _progress: &mut OrderProgress, _board: &mut Board, _combined: &Proposal) {}
}

/// The plan of a strategy whose order follows from a few integers.
#[derive(Debug, Clone)]
pub(crate) struct Ordered<R> {
    progress: OrderProgress,
    rule: R,
}

impl<R: Rule> Ordered<R> {
    /// A plan whose order is not fixed yet.
    pub(crate) fn new(terms: &Terms, pattern: Pattern, rule: R) -> Self {
        Self::on(OrderProgress::new(terms, pattern), rule)
    }

    pub(crate) fn on(progress: OrderProgress, rule: R) -> Self {
        Self { progress, rule }
    }
}

impl<R: Rule> Plan for Ordered<R> {
    const CONSUMPTION: Consumption = R::CONSUMPTION;

    fn start(&mut self, board: &mut Board) {
        self.rule.start(&mut self.progress, board);
    }

    #[inline]
    fn next(&mut self, board: &Board) -> Next {
        self.progress.next(board)
    }

    #[inline]
    fn consumed(&mut self, board: &Board) {
        self.progress.consumed(board);
    }

    #[inline]
    fn next_fetch(&mut self, board: &mut Board) -> Option<BatchIndex> {
        self.progress.next_fetch(board)
    }

    #[inline]
    fn pick_for_host(&mut self, board: &mut Board) -> Option<BatchIndex> {
        self.rule.host_asks(&mut self.progress, board);
        let rule = &self.rule;
        self.progress
            .pick_for_host(board, |progress, board, batch| rule.is_too_late(progress, board, batch))
    }

    #[inline]
    fn device_may_precede(&self, board: &Board, batch: BatchIndex) -> bool {
        R::USES_DEVICES && self.progress.device_may_precede(board, batch)
    }

    fn give_to_host(&mut self, batch: BatchIndex) -> bool {
        self.progress.give_to_host(batch)
    }

    #[inline]
    fn is_late_with(&mut self, board: &Board, batch: BatchIndex) -> bool {
        self.rule.is_late_with(&mut self.progress, board, batch)
    }

    #[inline]
    fn grant(&mut self, board: &Board, device: DeviceId) -> Grant {
        let grant = self.rule.grant(&self.progress, board, device);
        self.progress.without_given(board, device, grant)
    }

    #[inline]
    fn granted(&mut self, board: &Board, device: DeviceId, grant: Grant) {
        self.rule.granted(board, device, grant);
    }

    #[inline]
    fn grants_ended(&self, board: &Board, device: DeviceId) -> bool {
        !R::USES_DEVICES || self.rule.grants_ended(&self.progress, board, device)
    }

    fn takes_preloaded(&self, board: &Board, batch: BatchIndex) -> bool {
        R::USES_DEVICES && self.rule.takes_preloaded(&self.progress, board, batch)
    }

    #[inline]
    fn rescue(&mut self, board: &Board) -> StallAction {
        self.rule.rescue(&mut self.progress, board)
    }

    #[inline]
    fn learn(&mut self, board: &mut Board) {
        self.rule.learn(&mut self.progress, board);
    }

    fn split(&self) -> (Option<u32>, bool) {
        self.rule.split(&self.progress)
    }

    fn record(&self) -> Option<Vec<u64>> {
        self.rule.record(&self.progress)
    }

    fn propose(&mut self, board: &Board, proposal: &mut Proposal) {
        self.rule.propose(&mut self.progress, board, proposal);
    }

    fn agreed(&mut self, board: &mut Board, combined: &Proposal) {
        self.rule.agreed(&mut self.progress, board, combined);
    }
}
