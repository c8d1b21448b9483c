//! `host-only`: the baseline. The host prepares everything, in ascending order. Gives C4.

use crate::epoch::board::Board;
use crate::strategies::{Next, Strategy};
use crate::types::{BatchIndex, DeviceId};

#[derive(Debug, Clone)]
pub(crate) struct HostOnly;

impl Strategy for HostOnly {
    fn next(&self, board: &Board) -> Next {
        Next::Only(BatchIndex(board.ledger.consumed()))
    }

    fn pick_for_host(&self, board: &Board) -> Option<BatchIndex> {
        (board.ledger.untouched() > 0).then_some(BatchIndex(board.ledger.lo()))
    }

    fn device_may_precede(&self, _board: &Board, _batch: BatchIndex) -> bool {
        false
    }

    fn grant(&self, _board: &Board, _device: DeviceId) -> u32 {
        0
    }

    fn grants_ended(&self, _board: &Board) -> bool {
        true
    }

    fn next_fetch(&mut self, _board: &mut Board) -> Option<BatchIndex> {
        None
    }
}
