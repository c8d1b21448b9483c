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
//! half as much as the one before. If devices are withdrawn at the end of an epoch, they remain
//! withdrawn in the next one until the next attempt. All times are those that the driver reports,
//! so the same events lead to the same decisions.
//!
//! All ranks have the same window. The proposal of a rank contains its totals, and once all ranks
//! have agreed, each applies the sum of the totals. So all change the window in the same step.
//!
//! In reading order: this file (the calls of an epoch), `measured` (what is measured), `control`
//! (the window), `rank` (what one of several ranks measures), `sums` (means and their errors).

mod control;
mod measured;
mod rank;
mod sums;

use crate::board::Board;
use crate::device::Device;
use crate::effects::Effects;
use crate::epoch::Epoch;
use crate::ledger::Began;
use crate::ranks::Proposal;
use crate::strategies::plan::Consumption;
use crate::types::{DeviceId, Time};
use control::{Control, SAMPLES_LEAST, SAMPLES_MOST};
use measured::{Beside, Class, Known, Measured};
use rank::OwnRank;

/// Minimum number of batches for each device in the window that follows a first batch.
const AHEAD_FIRST: u32 = 2;

/// Divisor of the number of open batches of the host, which is the other minimum of that window.
const AHEAD_DIVISOR: u32 = 4;

/// A host batch measures the host alone if devices worked for at most this part of its time: the
/// first few, without which nothing can be judged, and later ones.
const ALONE_PARTS_FIRST: f64 = 4.0;
const ALONE_PARTS: f64 = 16.0;

/// The window of devices and the measurements that control it.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    control: Control,
    /// The measurements of this rank, if there are others.
    own: Option<OwnRank>,
    /// When withdrawn devices are expected to have stopped.
    settles_at: Time,
    /// Number of host batches that finished before they had stopped.
    skipped: f64,
    /// Largest number of batches that the host prepared at a time.
    workers: u32,
}

impl Pace {
    /// The start of an epoch.
    pub(crate) fn of(board: &Board) -> Self {
        let (terms, learned) = (&board.terms, &board.terms.learned);
        let devices = u32::try_from(board.devices.len()).unwrap_or(u32::MAX);
        let prior_ns = if learned.alone_ns > 0 { learned.alone_ns } else { learned.preparation_ns };
        let is_shared = terms.ranks > 1;
        let open = terms.host_ahead / AHEAD_DIVISOR;
        let known = Known {
            prior_ns,
            window: learned.window,
            opened: open.max(devices.saturating_mul(AHEAD_FIRST)),
            turn: learned.turn,
            rest: learned.rest,
            patience: learned.patience,
        };
        // Ranks may have different devices, but have one window.
        let ahead_most = if is_shared { u32::MAX } else { board.ahead_of_devices };
        Self {
            control: Control::new(terms.batches, terms.ranks, ahead_most, &known),
            own: is_shared.then(|| OwnRank::new(terms.ranks, known)),
            settles_at: 0,
            skipped: 0.0,
            workers: 1,
        }
    }

    /// Maximum number of unpublished batches of devices.
    pub(crate) fn window(&self) -> u32 {
        self.control.window()
    }

    /// Time to prepare a host batch without devices, for the next epoch.
    pub(crate) fn alone_ns(&self) -> u64 {
        self.control.alone().0 as u64
    }

    /// The window with which the next epoch begins.
    pub(crate) fn learned_window(&self) -> u32 {
        self.control.learned_window()
    }

    /// Number of host batches from granting the first batch of a device to publishing it.
    pub(crate) fn learned_turn(&self) -> u32 {
        self.control.learned_turn()
    }

    /// Number of host batches until the next attempt with devices (0 if they are used), and that of
    /// the wait after it.
    pub(crate) fn learned_rest(&self) -> (u32, u32) {
        self.control.learned_rest()
    }

    /// Time that the host has lost because of devices.
    fn slowed_ns(&self) -> u64 {
        (self.control.longer_ns() / f64::from(self.workers)).max(0.0) as u64
    }

    /// What a finished host batch measures; devices worked during `beside_ns` of its time.
    fn class(&mut self, began_at: Time, took_ns: f64, beside_ns: f64) -> Class {
        if self.control.is_withdrawn() {
            // A device may finish its current batch although it was reclaimed.
            let has_settled = began_at >= self.settles_at || self.skipped >= SAMPLES_MOST;
            if beside_ns == 0.0 && has_settled {
                return Class::Alone;
            }
            self.skipped += 1.0;
            return Class::Nothing;
        }
        let measured = self.own.as_ref().map_or(self.control.alone_count(), OwnRank::alone_count);
        let parts = if measured < SAMPLES_LEAST { ALONE_PARTS_FIRST } else { ALONE_PARTS };
        if beside_ns * parts <= took_ns {
            return Class::Alone;
        }
        let is_most = beside_ns * 2.0 > took_ns;
        let since = self.control.level_since();
        Class::Beside { level: is_most && since.is_some_and(|since| began_at >= since) }
    }
}

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
        Beside {
            now: board.now,
            claimed: board.ledger.device_claimed(),
            working: board.ledger.host_working(),
            shorter_ns,
            refused: false,
        }
    }

    /// A device is about to publish a batch.
    pub(crate) fn pace_published(&mut self) {
        if self.pace.as_ref().is_none_or(|pace| pace.own.is_some()) {
            return;
        }
        let beside = self.beside();
        if let Some(pace) = &mut self.pace {
            pace.control.published(1, &beside);
        }
    }

    /// The host finished a batch.
    pub(crate) fn pace_host_finished(&mut self, began: Began) {
        if self.pace.is_none() || self.board.devices.is_empty() {
            return;
        }
        let beside = self.beside();
        let took_ns = self.board.now - began.at;
        let beside_ns = (self.board.beside_ns - began.beside_ns) as f64;
        let Some(pace) = &mut self.pace else { return };
        pace.workers = pace.workers.max(beside.working + 1);
        let class = pace.class(began.at, took_ns as f64, beside_ns);
        if let Some(own) = &mut pace.own {
            own.add(class, took_ns);
            return;
        }
        let withdraws = pace.control.apply(&Measured::one(class, took_ns as f64), false, &beside);
        self.pace_applied(withdraws);
    }

    fn pace_applied(&mut self, withdraws: bool) {
        self.board.slowed_ns = self.pace.as_ref().map_or(0, Pace::slowed_ns);
        if withdraws {
            self.withdraw_devices();
        }
    }

    /// This rank's measurements, for an agreement.
    pub(crate) fn pace_effects(&mut self) -> Effects {
        let beside = self.beside();
        let Some(Pace { control, own: Some(own), .. }) = &mut self.pace else {
            return Effects::NONE;
        };
        own.effects(control, &beside)
    }

    /// All ranks have agreed.
    pub(crate) fn pace_agreed(&mut self, combined: &Proposal) {
        let (now, of_all) = (self.board.now, combined.effects);
        let own_beside = self.beside();
        let Some(pace) = &mut self.pace else { return };
        let Some(own) = &mut pace.own else { return };
        if let Some(known) = own.known_of_all(&of_all) {
            pace.control.begin(&known);
        }
        let beside = Beside {
            now,
            claimed: of_all.claimed,
            working: of_all.working,
            shorter_ns: of_all.shorter_ns as f64,
            refused: of_all.refuses,
        };
        let (measured, published) =
            own.agreed(&of_all, combined.device_total, pace.control.is_withdrawn());
        if published > 0 {
            pace.control.published(published, &beside);
        }
        let level = pace.control.level_number();
        let withdraws = pace.control.apply(&measured, of_all.loses, &beside);
        if withdraws {
            own.withdrawn();
        } else if pace.control.level_number() != level {
            own.begin_level();
        } else if !pace.control.is_withdrawn() {
            own.limit_savings(&pace.control, &own_beside);
        }
        self.pace_applied(withdraws);
    }

    /// Reclaims the unpublished batches of all devices, which may get work again later.
    fn withdraw_devices(&mut self) {
        let times = self.board.devices.iter().map(Device::batch_ns);
        let settles_at = self.board.now.saturating_add(times.max().unwrap_or(0));
        if let Some(pace) = &mut self.pace {
            (pace.settles_at, pace.skipped) = (settles_at, 0.0);
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
