//! The pace of the host while devices work: limits the work of devices that slow down the host.
//!
//! A device can delay the host's own work: its batches use the link over which the host reads
//! samples, or it uses the host's cores, drive or memory. The additional time of each host batch,
//! compared with the time without devices, is a loss; each device batch is a gain of one host
//! batch. Loss minus gain controls a window, the number of unpublished batches that devices may
//! hold:
//!
//! ```text
//!            published: +1         the host is slower: ÷2, kept if the sum improves
//! start ──► [ window ] ──────────────────────────────────────────────► smaller window
//!               │  the sum is a loss
//!               ▼
//!           withdrawn: the host alone is measured ──► the window before (the host had changed)
//!                                                 ──► a quarter of it, or later a window of 1
//! ```
//!
//! The sum of all losses is limited to a share of the epoch, because each further attempt may lose
//! half as much as the one before. All times are those that the driver reports, so the same events
//! lead to the same decisions.
//!
//! In reading order: this file (the calls of an epoch), `control` (the window), `sums` (means and
//! their errors).

mod control;
mod sums;

pub(crate) use control::Pace;

use crate::device::Device;
use crate::epoch::Epoch;
use crate::ledger::Began;
use crate::strategies::plan::Consumption;
use crate::types::DeviceId;
use control::Beside;

impl Epoch {
    /// Maximum number of further batches for a device. All devices together hold no more than the
    /// window, in equal parts.
    pub(crate) fn pace_grants_most(&self, id: DeviceId) -> u32 {
        let Some(pace) = &self.pace else { return u32::MAX };
        let (board, window) = (&self.board, pace.window());
        let fair = window.div_ceil(board.usable_devices().max(1));
        let own = fair.saturating_sub(board.device(id).claimed.len());
        own.min(window.saturating_sub(board.ledger.device_claimed()))
    }

    fn beside(&self) -> Beside {
        let board = &self.board;
        let workers = self.pace.as_ref().map_or(1, |pace| pace.workers);
        let device_ns = board.ready_ns() as f64;
        let shorter_ns = match (board.terms.background(), self.plan.consumption()) {
            (false, _) => board.steps.train().mean_ns() as f64 - device_ns,
            (true, Consumption::AsReady) => 0.0,
            // One open batch of the host is reserved, so a worker may wait for the step.
            (true, Consumption::InWindows) => -device_ns,
            // All workers may be idle while the devices' part is consumed.
            (true, Consumption::InOrder) => -device_ns * f64::from(workers),
        };
        Beside { now: board.now, claimed: board.ledger.device_claimed(), shorter_ns }
    }

    /// A device is about to publish a batch.
    pub(crate) fn pace_published(&mut self) {
        if self.pace.is_none() {
            return;
        }
        let beside = self.beside();
        if let Some(pace) = &mut self.pace {
            pace.published(&beside);
        }
    }

    /// The host finished a batch.
    pub(crate) fn pace_host_finished(&mut self, began: Began) {
        if self.pace.is_none() || self.board.devices.is_empty() {
            return;
        }
        let beside = self.beside();
        let took_ns = (self.board.now - began.at) as f64;
        let beside_ns = (self.board.beside_ns - began.beside_ns) as f64;
        let workers = self.board.ledger.host_working() + 1;
        let Some(pace) = &mut self.pace else { return };
        pace.workers = pace.workers.max(workers);
        let withdraws = pace.host_finished(began.at, took_ns, beside_ns, &beside);
        self.board.slowed_ns = pace.slowed_ns();
        if withdraws {
            self.withdraw_devices();
        }
    }

    /// Reclaims the unpublished batches of all devices, which may get work again later.
    fn withdraw_devices(&mut self) {
        let times = self.board.devices.iter().map(Device::batch_ns);
        let settles_at = self.board.now.saturating_add(times.max().unwrap_or(0));
        if let Some(pace) = &mut self.pace {
            pace.settles_at = settles_at;
        }
        for at in 0..self.board.devices.len() {
            let id = DeviceId(u16::try_from(at).expect("counted by a u16"));
            if !self.board.device(id).claimed.is_empty() {
                self.board.fence(id);
            }
        }
        self.plan.learn(&mut self.board);
    }
}
