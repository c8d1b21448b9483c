//! `device-only`: the device prepares everything, in ascending order. Gives C4.
//!
//! What it gives back, or cannot be given because it is silent or gone, the host prepares at the
//! same place in the order.

use crate::epoch::board::Board;
use crate::strategies::{Next, Strategy, next_fetch_in_order};
use crate::types::{BatchIndex, DeviceId};

#[derive(Debug, Clone, Default)]
pub(crate) struct DeviceOnly {
    fetch_cursor: u32,
}

impl Strategy for DeviceOnly {
    fn next(&self, board: &Board) -> Next {
        Next::Only(BatchIndex(board.ledger.consumed()))
    }

    fn pick_for_host(&self, board: &Board) -> Option<BatchIndex> {
        let untouched = board.ledger.untouched() > 0 && !board.any_usable();
        let lowest = untouched.then_some(BatchIndex(board.ledger.lo()));
        // Freed batches lie below all untouched ones.
        board.ledger.freed().first().or(lowest)
    }

    fn device_may_precede(&self, _board: &Board, _batch: BatchIndex) -> bool {
        true
    }

    fn grant(&self, board: &Board, _device: DeviceId) -> u32 {
        board.ledger.untouched()
    }

    fn grants_from_back(&self) -> bool {
        false
    }

    fn grants_ended(&self, board: &Board) -> bool {
        board.ledger.untouched() == 0
    }

    fn next_fetch(&mut self, board: &mut Board) -> Option<BatchIndex> {
        let batches = board.ledger.batches();
        next_fetch_in_order(&mut self.fetch_cursor, board, |at| {
            (at < batches).then_some(BatchIndex(at))
        })
    }
}
