//! `mte-feedback`: the two phases of `mte`, with the moment of the switch by what is measured.
//!
//! The host's part is left when every part's unfinished batches are expected to be done by the time
//! that all the others are consumed: R·t_s − progress ≤ (F+R−1)·t_g, with R batches unfinished and
//! F finished at the devices. From then on every batch that the host has not claimed is the
//! devices'. The shares at the switch replay the epoch.

use crate::epoch::board::Board;
use crate::strategies::ordered::{Mode, Ordered};

/// With many parts, the switch is looked at once in so many host claims for each of these.
const PARTS_PER_CLAIM: usize = 16;

impl Ordered {
    /// Looks at the switch; before the host claims a batch.
    pub(super) fn feedback(&mut self, board: &mut Board) {
        if self.mode != Mode::Feedback || self.fixed {
            return;
        }
        if self.look_in > 0 {
            self.look_in -= 1;
            return;
        }
        let parts = board.ledger.parts.len();
        self.look_in = u32::try_from(parts / PARTS_PER_CLAIM).expect("counted by a u16");
        self.would_switch = would_switch(board);
        if self.would_switch && board.config.ranks == 1 {
            self.switch(board);
        }
    }

    /// Leaves the host's part.
    pub(crate) fn switch(&mut self, board: &mut Board) {
        for (at, share) in self.layout.shares.iter_mut().enumerate() {
            *share = board.ledger.parts.part(at).count();
        }
        self.fix(board, 0);
    }
}

fn would_switch(board: &Board) -> bool {
    let ledger = &board.ledger;
    let ready_ns = board.ready_ns();
    let unfinished = u64::from(ledger.untouched() + ledger.device_claimed());
    let finished = u64::from(ledger.device_finished());
    if unfinished == 0 || ready_ns == 0 {
        return false;
    }
    // What the host has prepared is consumed before, and takes a step each at the least.
    let steps = finished + unfinished - 1 + u64::from(ledger.host_open());
    let drained_ns = steps.saturating_mul(ready_ns);
    let shared = ledger.parts.shared();
    (0..ledger.parts.len()).all(|at| {
        let part_ns = board.part_ns(at);
        let (claimed, progress_ns) = if shared {
            let spent = board.devices.iter().map(|d| d.progress_ns(board.now, d.batch_ns()));
            // Devices that share a part finish their current batches side by side.
            let count = board.devices.len() as u64;
            (ledger.device_claimed(), spent.sum::<u64>() / (count * count))
        } else {
            let device = &board.devices[at];
            (device.claimed.len(), device.progress_ns(board.now, part_ns))
        };
        let left = u64::from(ledger.parts.part(at).untouched() + claimed);
        if left == 0 {
            return true;
        }
        let work_ns = left.saturating_mul(part_ns).saturating_sub(progress_ns);
        part_ns > 0 && board.usable(at) && work_ns <= drained_ns
    })
}
