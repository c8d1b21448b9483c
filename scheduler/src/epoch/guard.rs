//! The guard of `auto`: limits the time spent waiting for devices by a budget.
//!
//! The budget is a small part of the host-only time plus the time that device batches have saved so
//! far. Devices receive work only once the time of a host batch is known, and while the budget
//! lasts. A device that causes a longer wait gets no more work in the epoch; the host redoes its
//! unpublished batches in place. If device batches themselves cost time, because a step on one
//! takes longer, all work of devices is reclaimed. So waiting for devices lengthens the epoch by at
//! most the allowance and a constant number of batches. The [pace](super::pace) limits the cost of
//! devices that slow down the host's own preparation.
//!
//! With several ranks, each knows the waits of all, and the smallest budget decides: once one rank
//! has no budget, or no device left, all ranks continue with the host alone.

use crate::board::Board;
use crate::device::DeviceLoss;
use crate::epoch::Epoch;
use crate::ledger::State;
use crate::ranks::Proposal;
use crate::strategies::plan::{Consumption, Next};
use crate::types::{BatchIndex, DeviceId, Source, Time};

/// The allowance is the host's time divided by this, less the cost of restarting the host.
const ALLOWANCE_PARTS: u64 = 400;

/// Maximum total loss in thousandths of the host's time: a little less than 1 %.
const LOSS_PER_MILLE: u64 = 9;

/// Devices are credited with a saving only if their batches take less than this percentage of the
/// host's time for the same batches, which is the precision of the two means.
const SAVED_BELOW_PERCENT: i128 = 90;

/// After this many host steps, measurements replace learned times.
const HOST_STEPS_SURE: u32 = 16;

/// Maximum number of open device batches while the time of a step on one is not known.
const PROBES: u32 = 1;

/// Number of polls per host step while waiting for the next batch.
const LOOKS_IN_A_STEP: u64 = 8;

/// Claims of a device in windows: the host redoes each one while all ranks wait.
const AHEAD_IN_WINDOWS: u32 = 2;

#[derive(Debug, Clone, Default)]
pub(crate) struct Guard {
    on: bool,
    /// Time spent waiting for devices and redoing their work.
    spent_ns: i128,
    /// Since when the accelerator has been waiting for a device.
    waiting_since: Option<Time>,
    /// The waiting time that other ranks do not know yet: since the last agreement.
    waited_ns: [u64; 2],
    /// Whether all work was taken back from all devices.
    gave_up: bool,
}

/// t_c, the mean over the epoch so far; 0 if not known.
fn host_ns(board: &Board) -> u64 {
    let (measured, learned) = (board.steps.host(), board.terms.learned.host_ns);
    if learned == 0 || measured.count() >= HOST_STEPS_SURE { measured.mean_ns() } else { learned }
}

/// Total time saved by device batches compared with host batches; negative if they cost time.
fn saved_ns(board: &Board) -> i128 {
    let device = board.steps.device();
    let (count, host_ns) = (i128::from(device.count()), i128::from(host_ns(board)));
    let (alone, taken) = (count * host_ns, count * i128::from(device.mean_ns()));
    if host_ns == 0 {
        0
    } else if taken > alone {
        alone - taken
    } else {
        (alone * SAVED_BELOW_PERCENT / 100 - taken).max(0)
    }
}

/// Whether devices are known to save nothing, even if ranks that know their times select an
/// adaptive strategy.
fn known_useless(board: &Board) -> bool {
    let (learned, measured) = (&board.terms.learned, board.steps.device().count());
    let known = learned.host_ns > 0 && learned.ready_ns >= learned.host_ns;
    board.terms.ranks > 1 && measured == 0 && known
}

impl Guard {
    pub(crate) fn new(on: bool) -> Self {
        Self { on, ..Self::default() }
    }

    /// The remaining budget.
    fn left_ns(&self, board: &Board) -> i128 {
        let alone = u128::from(board.ledger.batches()) * u128::from(host_ns(board));
        // Time until workers with nothing prepared deliver their first batch.
        let restart = if board.terms.background() { board.preparation_ns() } else { 0 };
        let most = (alone * u128::from(LOSS_PER_MILLE) / 1_000).saturating_sub(restart.into());
        let allowance = most.min(alone / u128::from(ALLOWANCE_PARTS));
        // Devices that slow down the host have saved less.
        let saved = saved_ns(board);
        let saved = (saved - i128::from(board.slowed_ns)).max(saved.min(0));
        i128::try_from(allowance).unwrap_or(i128::MAX) + saved - self.spent_ns
    }

    /// Whether the budget is exhausted.
    fn is_exhausted(&self, board: &Board) -> bool {
        let left = self.left_ns(board);
        left < 0 || (left == 0 && self.spent_ns > 0)
    }

    /// Whether devices may be given work.
    pub(crate) fn allows_grants(&self, board: &Board) -> bool {
        if !self.on {
            return true;
        }
        if known_useless(board) {
            return false;
        }
        // How much longer the open device batches take than the host alone would.
        let (t_c, t_g) = (host_ns(board), board.steps.device().mean_ns());
        let due = i128::from(board.ledger.device_open()) * i128::from(t_g.saturating_sub(t_c));
        !self.gave_up && t_c > 0 && !self.is_exhausted(board) && self.left_ns(board) >= due
    }

    /// The accelerator no longer waits for a device. `agreed`: whether ranks have agreed on the
    /// source of the step.
    pub(crate) fn waits_no_more(&mut self, now: Time, agreed: bool) {
        if let Some(since) = self.waiting_since.take() {
            let waited = now.saturating_sub(since);
            self.spent_ns += i128::from(waited);
            let of_ranks = &mut self.waited_ns[usize::from(!agreed)];
            *of_ranks = of_ranks.saturating_add(waited);
        }
    }

    /// The accelerator waits for a device: returns how long it may.
    fn waits(&mut self, board: &Board) -> Time {
        let since = *self.waiting_since.get_or_insert(board.now);
        let left = u64::try_from(self.left_ns(board).max(0)).unwrap_or(u64::MAX);
        since.saturating_add(left)
    }

    /// Adds the waiting time that other ranks need to know.
    pub(crate) fn propose(&self, board: &Board, proposal: &mut Proposal) {
        proposal.waited_ns = self.waited_ns;
        proposal.without_devices =
            self.on && (self.gave_up || board.all_lost() || self.is_exhausted(board));
    }
}

impl Epoch {
    /// Whether devices may be given work.
    pub(crate) fn allows_grants(&self) -> bool {
        let paced = self.pace.as_ref().is_none_or(|pace| pace.window() > 0);
        paced && self.guard.allows_grants(&self.board)
    }

    /// A step has ended. Abandons the devices if the budget is exhausted; with several ranks, all
    /// must agree on that.
    pub(crate) fn guard_step(&mut self) {
        if self.guard.on && known_useless(&self.board) {
            self.abandon_devices();
        }
        let alone = self.board.terms.ranks == 1;
        if !alone || !self.guard.on || !self.guard.is_exhausted(&self.board) {
            return;
        }
        if saved_ns(&self.board) < 0 && !self.in_windows() {
            self.abandon_devices();
        } else {
            self.retire_devices();
        }
    }

    /// A step on a device batch is in progress. If it already exceeds the budget, workers begin to
    /// redo the devices' batches before it ends.
    pub(crate) fn guard_long_step(&mut self) {
        if !self.guard.on || self.guard.gave_up || self.in_windows() {
            return;
        }
        let Some(since) = self.board.steps.on_device_since() else { return };
        let more = self.board.now.saturating_sub(since).saturating_sub(host_ns(&self.board));
        let known = host_ns(&self.board) > 0 && saved_ns(&self.board) <= 0;
        if known && more > 0 && self.guard.left_ns(&self.board) < i128::from(more) {
            self.abandon_devices();
        }
    }

    /// Whether the host prepares batches that devices have not, in the order of consumption: later
    /// batches then occupy the host's limit, so that redoing takes longer than a device batch
    /// costs.
    fn in_windows(&self) -> bool {
        self.plan.consumption() == Consumption::InWindows
    }

    /// Stops granting work to devices; their published batches are still used.
    fn retire_devices(&mut self) {
        for at in 0..self.board.devices.len() {
            let id = DeviceId(u16::try_from(at).expect("counted by a u16"));
            if self.board.device(id).lost.is_none() {
                self.board.fence(id);
                self.board.give_up(id, DeviceLoss::Slow);
            }
        }
        self.plan.learn(&mut self.board);
    }

    /// Maximum number of batches that devices may be granted together, in addition to each device's
    /// limit.
    pub(crate) fn guard_grants_most(&self) -> u32 {
        let board = &self.board;
        let unknown = board.steps.device().count() == 0 && board.terms.learned.ready_ns == 0;
        if !self.guard.on || !unknown || self.plan.consumption() == Consumption::InOrder {
            return u32::MAX;
        }
        PROBES.saturating_sub(board.ledger.device_open())
    }

    /// Maximum number of batches that a device may have to work on.
    pub(crate) fn guard_ahead_most(&self) -> u32 {
        let background = self.board.terms.background();
        if self.guard.on && background && self.in_windows() { AHEAD_IN_WINDOWS } else { u32::MAX }
    }

    /// Applies the agreement of all ranks: their waiting times, and whether they abandon the
    /// devices.
    pub(crate) fn guard_agreed(&mut self, combined: &Proposal) {
        let own = std::mem::take(&mut self.guard.waited_ns);
        for (of_all, own) in combined.waited_ns.into_iter().zip(own) {
            let more = of_all.saturating_sub(own);
            self.guard.spent_ns += i128::from(more);
            if more > 0 {
                self.board.steps.waits_for_device();
            }
        }
        if combined.without_devices {
            self.abandon_devices();
        }
    }

    /// The host has nothing left to begin, and the step is a host step: workers redo the device
    /// batches beyond those of the slowest rank in parallel, instead of one by one at the end.
    pub(crate) fn guard_surplus(&mut self, combined: &Proposal) {
        let ledger = &self.board.ledger;
        let idle = ledger.untouched() + ledger.parts.freed() == 0;
        if !self.guard.on || !idle || !self.board.terms.background() {
            return;
        }
        if self.plan.consumption() != Consumption::AsReady {
            return;
        }
        let published = ledger.device_finished() + ledger.consumed_by_device();
        for _ in combined.device_total..published {
            let Some(batch) = self.board.ready_device.pop_back() else { return };
            if let Some(entry) = self.board.ledger.entry(batch)
                && let Source::Device(device) = entry.source
            {
                self.discard_batch(batch, device, entry.state);
            }
        }
    }

    /// Takes everything back from devices; the host redoes it, as if there were no devices.
    fn abandon_devices(&mut self) {
        if std::mem::replace(&mut self.guard.gave_up, true) {
            return;
        }
        self.retire_devices();
        let is_held = |state| matches!(state, State::Published | State::Fetching | State::Ready);
        let entries = self.board.ledger.entries().filter(|(_, entry)| is_held(entry.state));
        let mut held: Vec<(BatchIndex, DeviceId, State)> = entries
            .filter_map(|(batch, entry)| match entry.source {
                Source::Device(device) => Some((batch, device, entry.state)),
                Source::Host => None,
            })
            .collect();
        held.sort_unstable_by_key(|(batch, ..)| *batch);
        for (batch, device, state) in held {
            self.discard_batch(batch, device, state);
        }
        self.board.ready_device.clear();
        self.plan.learn(&mut self.board);
    }

    /// Ends a wait of the accelerator for a device, if there is one.
    pub(crate) fn guard_ends_wait(&mut self) {
        self.guard.waits_no_more(self.board.now, self.ranks.kind.is_some());
    }

    /// Nothing can be consumed: determines whether a device is the reason, and how long the
    /// accelerator may wait for it. Returns the time of the next poll.
    pub(crate) fn guard_waiting(&mut self, next: Next) -> Option<Time> {
        let device = self.waited_for(next);
        if device.is_none() && !self.waits_for_redoing(next) {
            self.guard_ends_wait();
            return None;
        }
        self.board.steps.waits_for_device();
        if !self.guard.on {
            return None;
        }
        let until = self.guard.waits(&self.board);
        let device = device?;
        if self.board.now < until {
            return Some(until);
        }
        self.guard_ends_wait();
        self.board.fence(device);
        self.board.give_up(device, DeviceLoss::Slow);
        self.plan.learn(&mut self.board);
        None
    }

    /// The device that delays the accelerator, if any.
    pub fn device_waited_for(&mut self) -> Option<DeviceId> {
        let next = self.plan.next(&self.board);
        self.waited_for(next)
    }

    /// The next batch is not assigned yet: asking for a host batch may leave it to a device (the
    /// switch of `mte-feedback`), for which the accelerator then waits no longer than allowed.
    pub(crate) fn guard_looks_again(&self, next: Next) -> Option<Time> {
        let Next::Only(position) = next else { return None };
        let unheld = self.board.ledger.state(position.batch) == State::Free;
        let soon = host_ns(&self.board) / LOOKS_IN_A_STEP;
        (self.guard.on && unheld && soon > 0).then(|| self.board.now.saturating_add(soon))
    }

    /// The accelerator waits for a batch that a device delayed: it is being fetched from the spool,
    /// or workers redo it while later batches are ready. (Without workers, redoing takes no longer
    /// than the host alone would have taken.)
    fn waits_for_redoing(&self, next: Next) -> bool {
        let (ledger, background) = (&self.board.ledger, self.board.terms.background());
        let Next::Only(position) = next else {
            let left = ledger.untouched() + ledger.parts.freed();
            let at_devices = left == 0 && ledger.device_finished() > 0;
            return at_devices && (background || ledger.host_open() == 0);
        };
        let Some(entry) = ledger.entry(position.batch) else { return false };
        match (entry.source, entry.state) {
            (Source::Device(_), State::Published | State::Fetching) => true,
            (Source::Device(_), State::Free) => background,
            (Source::Device(_), _) => false,
            (Source::Host, _) => (entry.redone || position.from_device) && background,
        }
    }

    /// The device that delays the accelerator, if any.
    fn waited_for(&self, next: Next) -> Option<DeviceId> {
        let ledger = &self.board.ledger;
        match next {
            Next::Only(position) => match ledger.entry(position.batch) {
                Some(entry) => match entry.source {
                    Source::Device(device) => {
                        let claimed = self.board.device(device).claimed.contains(position.batch);
                        claimed.then_some(device)
                    }
                    Source::Host => None,
                },
                // It is reserved for a device that may still be granted it.
                None if position.from_device && ledger.parts.is_untouched(position.batch) => {
                    let (part, _) = ledger.parts.locate(position.batch);
                    let usable = |at: &usize| self.board.devices[*at].usable();
                    let found = if ledger.parts.shared() {
                        (0..self.board.devices.len()).find(usable)
                    } else {
                        Some(part).filter(usable)
                    };
                    found.map(|at| DeviceId(u16::try_from(at).expect("counted by a u16")))
                }
                None => None,
            },
            Next::Any { .. } => {
                let claimed = ledger.device_claimed();
                if claimed == 0 || ledger.consumed() + claimed < ledger.batches() {
                    return None;
                }
                let devices = self.board.devices.iter().enumerate();
                let holding = devices.filter(|(_, device)| !device.claimed.is_empty());
                let (at, _) = holding.max_by_key(|(_, device)| device.expected_end())?;
                Some(DeviceId(u16::try_from(at).expect("counted by a u16")))
            }
            Next::Unknown => None,
        }
    }
}
