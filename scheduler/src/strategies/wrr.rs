//! `wrr`, weighted round robin: each step takes a device batch if one is ready, else a host batch.
//! Gives C0-C2; the weights 1/t_c : 1/t_s come about by themselves.
//!
//! The device is kept a few batches ahead. Towards the end it is granted a batch only if the epoch
//! then ends no later than if the host did it. With q batches outstanding at the device, e already
//! spent on the first, u untouched, h claimed or given back for the host to do, and r ready or on
//! their way as slots:
//!
//! ```text
//! (q+1)·t_s - e + t_g  ≤  (u+h)·t_c + (r+q)·t_g
//! ```
//!
//! Left: the device has it done, and it is consumed. Right: the host prepares and the accelerator
//! consumes all that is left, this batch among the host's, while everything the device has is
//! consumed at t_g.

use crate::epoch::board::Board;
use crate::strategies::{Next, Rescue, Strategy};
use crate::types::{BatchIndex, DeviceId, Time};

/// Outstanding batches while too little was measured to tell where the end is.
const GRANT_UNMEASURED: u32 = 2;

#[derive(Debug, Clone, Default)]
pub(crate) struct Wrr {
    /// Batches consumed and time when the accelerator was first seen waiting for granted batches
    /// only.
    starved: Option<(u32, Time)>,
}

impl Strategy for Wrr {
    /// Without workers a host batch that is ready was prepared for this very step: no device batch
    /// was ready when the step began. Its time belongs to it, and it is not left lying.
    fn next(&self, board: &Board) -> Next {
        Next::Any { host_first: board.config.host_ahead == 1 }
    }

    /// What was given back first: the rest may still go to either end.
    fn pick_for_host(&self, board: &Board) -> Option<BatchIndex> {
        let ledger = &board.ledger;
        let lowest = (ledger.untouched() > 0).then_some(BatchIndex(ledger.lo()));
        ledger.freed().first().or(lowest)
    }

    fn device_may_precede(&self, _board: &Board, _batch: BatchIndex) -> bool {
        false
    }

    fn grant(&self, board: &Board, device: DeviceId) -> u32 {
        let device = &board.devices[usize::from(device.0)];
        let ledger = &board.ledger;
        let times = board.times(device);
        if times.host_ns == 0 || times.device_ns == 0 {
            // The host gets the last one, and no fewer than the device.
            let fair = GRANT_UNMEASURED.min(ledger.untouched() / 2);
            return fair.saturating_sub(device.claimed.len());
        }
        let [t_c, t_s, t_g] = [times.host_ns, times.device_ns, times.ready_ns].map(i128::from);
        let spent = i128::from(device.progress_ns(board.now, times.device_ns));
        let outstanding = i128::from(device.claimed.len());
        let host_left = ledger.untouched() + ledger.freed().len() + ledger.host_working();
        let slots: u32 = board.devices.iter().map(|d| d.published.len() + d.ready).sum();
        let ready = i128::from(slots) + i128::from(ledger.host_ready());
        // The n-th further batch costs the left side t_s and moves one from t_c to t_g on the
        // right, so the largest n is a quotient.
        let room = i128::from(host_left) * t_c + (ready + outstanding) * t_g
            - (outstanding * t_s - spent)
            - t_g;
        let each = t_s + t_c - t_g;
        let most = if room < t_s {
            0
        } else if each <= 0 {
            i128::from(u32::MAX)
        } else {
            1 + (room - t_s) / each
        };
        u32::try_from(most).unwrap_or(u32::MAX).min(ledger.untouched())
    }

    fn grants_ended(&self, board: &Board) -> bool {
        board.ledger.untouched() == 0
    }

    fn next_fetch(&mut self, board: &mut Board) -> Option<BatchIndex> {
        board.next_published()
    }

    /// Only granted batches are left. They are waited for while they are expected sooner than the
    /// host could redo them, with a quarter of that as the price of throwing work away; a device
    /// that is late is given as long again as redoing would take.
    fn rescue(&mut self, board: &Board) -> Rescue {
        let consumed = board.ledger.consumed();
        let claimed: u32 = board.devices.iter().map(|device| device.claimed.len()).sum();
        if claimed == 0 || consumed + claimed < board.ledger.batches() {
            self.starved = None;
            return Rescue::Wait;
        }
        let Some(id) = board.devices.iter().position(|device| !device.claimed.is_empty()) else {
            return Rescue::Wait;
        };
        let since = match self.starved {
            Some((seen, since)) if seen == consumed => since,
            _ => board.now,
        };
        self.starved = Some((consumed, since));
        let device = &board.devices[id];
        let times = board.times(device);
        let Some(preparation_ns) = board.steps.preparation().recent_ns() else {
            return Rescue::Wait;
        };
        let outstanding = u64::from(device.claimed.len());
        let redo_ns =
            preparation_ns.saturating_add((outstanding - 1).saturating_mul(times.host_ns));
        let work_ns = outstanding.saturating_mul(times.device_ns);
        let expected = device.busy_since.saturating_add(work_ns).max(since);
        let due = expected.saturating_add(redo_ns);
        if expected - board.now.min(expected) > redo_ns + redo_ns / 4 || board.now >= due {
            let id = u16::try_from(id).expect("devices are counted by a u16");
            return Rescue::TakeBack(DeviceId(id));
        }
        Rescue::WaitUntil(due)
    }
}
