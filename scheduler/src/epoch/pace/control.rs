//! The window of devices: computes the limit of devices from measurements of host batches.

use super::sums::Sums;
use crate::board::Board;
use crate::types::Time;

/// Loss after which devices are withdrawn the first time, as a share of the epoch.
const LOSS_SHARE: f64 = 0.005;

/// Minimum of the permitted loss, in host batches, for short epochs. An attempt that may lose less
/// is not made.
const LOSS_LEAST: f64 = 1.0;

/// Host batches needed for a first judgement, and for a comparison of windows.
const SAMPLES_LEAST: f64 = 8.0;
const SAMPLES_COMPARED: f64 = 16.0;

/// Host batches after which older measurements are dropped.
const SAMPLES_MOST: f64 = 32.0;

/// A host is slower if its batches take longer by this share, and if the difference is more than
/// [`ERRORS_MIN`] times its standard error.
const SLOWER_SHARE: f64 = 0.15;
const ERRORS_MIN: f64 = 4.0;

/// A smaller window is kept if it has at least this share of the value of the larger one.
const KEPT_SHARE: f64 = 0.97;

/// Withdrawn devices resume with the same window if host and devices did this multiple of the work
/// of the host alone.
const WORTH_LEAST: f64 = 1.02;

/// The same while the time of the host alone is known only from its first batches.
const WORTH_UNKNOWN: f64 = 1.5;

/// Batches of each device in the first window. The window is never smaller than the number of open
/// batches of the host.
const AHEAD_FIRST: u32 = 2;

/// Divisor of a window whose devices caused a loss.
const LOSS_DIVISOR: u32 = 4;

/// Relative error of a time from earlier epochs.
const PRIOR_ERROR: f64 = 0.05;

/// Expected gain of an unpublished batch of a device, as a share of the gain of a published one.
const HELD_SHARE: f64 = 0.15;

/// Assumed relative error of a single host batch while there are few.
const FEW_ERROR: f64 = 0.25;

/// Host batches until a limit is raised, or until devices are tried again; doubles each time.
const PATIENCE_FIRST: u64 = 64;

/// Measurements under one window.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    window: u32,
    /// When devices first held no more than the window; `None` if they still hold more.
    since: Option<Time>,
    /// Times of host batches claimed since then.
    hosts: Sums,
    /// Number of batches that devices published since then.
    published: f64,
}

impl Level {
    /// The work that host and devices do, relative to the host alone in the same time.
    fn value(&self, alone_ns: f64, gain_ns: f64) -> f64 {
        if self.hosts.sum > 0.0 {
            (self.hosts.count * alone_ns + self.published * gain_ns) / self.hosts.sum
        } else {
            0.0
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Devices work.
    Open,
    /// The window was halved; has the measurements from before.
    Halved(Level),
    /// Devices have no work. `before`: measurements with devices. `alone`: times of the host alone.
    /// `skipped`: host batches until devices had stopped. `judged`: the host alone was measured.
    Withdrawn { before: Level, alone: Sums, skipped: f64, judged: bool },
}

#[derive(Debug, Clone)]
pub(crate) struct Pace {
    batches: f64,
    ahead_most: u32,
    /// Maximum number of unpublished batches of devices, and the largest value to which published
    /// batches raise it.
    window: u32,
    ceiling: u32,
    /// The window after the first batch of a device, if that batch caused no loss.
    opened: Option<u32>,
    phase: Phase,
    level: Level,
    /// Time to prepare a host batch without devices: from earlier epochs (0 if not known), and as
    /// measured in this epoch.
    prior_ns: f64,
    alone: Sums,
    /// Normal time of a host batch under this window, if it is longer than that of the host alone.
    normal_ns: f64,
    /// Time that devices have cost under this window; negative if they have saved time.
    loss_ns: f64,
    /// Host batches under this window.
    judged: f64,
    /// Host batches since the loss was last 0 or negative.
    losing: f64,
    /// Whether there are other ranks, which also stop using devices if this one does; withdrawal
    /// then needs a loss that exceeds the noise.
    is_shared: bool,
    /// Maximum of the loss, as a share of the epoch.
    loss_share: f64,
    /// Total additional time of host batches while devices worked, over the epoch.
    longer_ns: f64,
    /// Host batches so far, and the number after which devices may get more.
    finished: u64,
    patience: u64,
    patient_until: u64,
    /// When devices are expected to have stopped.
    pub(super) settles_at: Time,
    /// Largest number of batches that the host prepared at a time.
    pub(super) workers: u32,
}

/// The state of the epoch at an event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beside {
    pub(super) now: Time,
    /// Unpublished batches of devices.
    pub(super) claimed: u32,
    /// How much shorter a step on a device batch is, for a host that does not prepare during it.
    pub(super) shorter_ns: f64,
}

impl Pace {
    /// The start of an epoch.
    pub(crate) fn of(board: &Board) -> Self {
        let (terms, learned) = (&board.terms, &board.terms.learned);
        let devices = u32::try_from(board.devices.len()).unwrap_or(u32::MAX);
        let start = terms.host_ahead.max(devices.saturating_mul(AHEAD_FIRST));
        let known_ns = if learned.alone_ns > 0 { learned.alone_ns } else { learned.preparation_ns };
        let is_known = terms.times_known() && learned.ready_ns > 0;
        let first = match learned.window {
            0 => is_known.then_some(start),
            known => Some(known),
        };
        let ahead_most = board.ahead_of_devices;
        let made = Self::new(terms.batches, first, start, ahead_most, known_ns);
        Self { is_shared: terms.ranks > 1, ..made }
    }

    /// `first`: the window of the previous epoch, if known; `opened`: the window after a first
    /// batch without loss; `ahead_most`: maximum number of batches that all devices may hold.
    fn new(batches: u32, first: Option<u32>, opened: u32, ahead_most: u32, prior_ns: u64) -> Self {
        let window = first.unwrap_or(1).min(ahead_most).max(1);
        Self {
            batches: f64::from(batches),
            ahead_most,
            window,
            ceiling: ahead_most,
            opened: first.is_none().then_some(opened.min(ahead_most)),
            phase: Phase::Open,
            level: Level { window, since: Some(0), ..Level::default() },
            prior_ns: prior_ns as f64,
            alone: Sums::default(),
            normal_ns: 0.0,
            loss_ns: 0.0,
            judged: 0.0,
            losing: 0.0,
            is_shared: false,
            longer_ns: 0.0,
            loss_share: LOSS_SHARE,
            finished: 0,
            patience: PATIENCE_FIRST,
            patient_until: PATIENCE_FIRST,
            settles_at: 0,
            workers: 1,
        }
    }

    /// Maximum number of unpublished batches of devices.
    pub(crate) fn window(&self) -> u32 {
        self.window
    }

    /// Time to prepare a host batch without devices, and its squared error; 0 if not known.
    fn alone(&self) -> (f64, f64) {
        let sure = self.alone.count >= SAMPLES_LEAST;
        if sure || (self.prior_ns == 0.0 && self.alone.count > 0.0) {
            let mean = self.alone.mean();
            let assumed = (mean * FEW_ERROR).powi(2) / self.alone.count;
            (mean, if sure { self.alone.error_squared() } else { assumed })
        } else {
            (self.prior_ns, (self.prior_ns * PRIOR_ERROR).powi(2))
        }
    }

    /// Time to prepare a host batch without devices, for the next epoch.
    pub(crate) fn alone_ns(&self) -> u64 {
        self.alone().0 as u64
    }

    /// Time that the host has lost because of devices.
    pub(super) fn slowed_ns(&self) -> u64 {
        (self.longer_ns / f64::from(self.workers)).max(0.0) as u64
    }

    /// The window with which the next epoch begins.
    pub(crate) fn learned_window(&self) -> u32 {
        if self.opened.is_some() { 0 } else { self.window.max(1) }
    }

    /// A device published a batch.
    pub(super) fn published(&mut self, beside: &Beside) {
        let (alone_ns, _) = self.alone();
        self.lose(-gain_ns(alone_ns, beside), alone_ns);
        if self.level.since.is_some() {
            self.level.published += 1.0;
        }
        if !matches!(self.phase, Phase::Open) || self.loss_ns > LOSS_LEAST * alone_ns {
            return;
        }
        if let Some(opened) = self.opened.take() {
            self.window = opened.max(self.window);
        } else if beside.claimed + 1 >= self.window {
            self.window = self.window.saturating_add(1).min(self.ceiling.max(self.window));
        }
    }

    /// Adds to the loss. Savings offset no more than the loss that is allowed.
    fn lose(&mut self, more_ns: f64, alone_ns: f64) {
        self.loss_ns = (self.loss_ns + more_ns).max(-self.allowed_ns(alone_ns));
    }

    fn allowed_ns(&self, alone_ns: f64) -> f64 {
        (self.batches * self.loss_share).max(LOSS_LEAST) * alone_ns
    }

    /// The host finished a batch, which took `took_ns`; devices worked during `beside_ns` of it.
    /// Returns whether all work of devices must be reclaimed.
    pub(super) fn host_finished(
        &mut self,
        began_at: Time,
        took_ns: f64,
        beside_ns: f64,
        beside: &Beside,
    ) -> bool {
        self.finished += 1;
        if let Phase::Withdrawn { alone, skipped, .. } = &mut self.phase {
            // A device may finish its current batch although it was reclaimed.
            let has_settled = began_at >= self.settles_at || *skipped >= SAMPLES_MOST;
            if beside_ns == 0.0 && has_settled {
                alone.add(took_ns);
            } else {
                *skipped += 1.0;
            }
            self.judge_alone(beside);
            return false;
        }
        if beside_ns * 2.0 <= took_ns {
            self.alone.add(took_ns);
            if self.alone.count >= SAMPLES_MOST * 2.0 {
                self.alone.fade();
            }
            return false;
        }
        let (alone_ns, alone_error) = self.alone();
        if alone_ns == 0.0 {
            return false;
        }
        self.lose(took_ns - alone_ns, alone_ns);
        self.longer_ns += took_ns - alone_ns;
        self.judged += 1.0;
        self.losing = if self.loss_ns > 0.0 { self.losing + 1.0 } else { 0.0 };
        match self.level.since {
            None if beside.claimed <= self.window => self.level.since = Some(beside.now),
            Some(since) if began_at >= since => self.level.hosts.add(took_ns),
            None | Some(_) => {}
        }
        self.judge(beside, alone_ns, alone_error)
    }

    fn withdraw(&mut self) {
        self.level.window = self.window;
        let (before, alone) = (self.level, Sums::default());
        self.phase = Phase::Withdrawn { before, alone, skipped: 0.0, judged: false };
        self.window = 0;
    }

    /// Judges the current window. Returns whether devices are withdrawn.
    fn judge(&mut self, beside: &Beside, alone_ns: f64, alone_error: f64) -> bool {
        let allowed_ns = self.allowed_ns(alone_ns);
        if self.loss_ns > allowed_ns && self.judged >= SAMPLES_LEAST {
            let held_ns = f64::from(beside.claimed) * HELD_SHARE * gain_ns(alone_ns, beside);
            let is_sure = !self.is_shared || self.loss_ns > self.noise_ns(alone_ns);
            if is_sure && self.loss_ns > allowed_ns + held_ns.min(allowed_ns) {
                self.withdraw();
                return true;
            }
        }
        let hosts = self.level.hosts;
        if hosts.count < SAMPLES_COMPARED {
            return false;
        }
        let error =
            hosts.error_squared().max(self.alone.error_squared_of(hosts.count)) + alone_error;
        let is_sure = |difference: f64| difference.powi(2) > ERRORS_MIN.powi(2) * error;
        if let Phase::Halved(before) = self.phase {
            self.compare(&before, alone_ns, gain_ns(alone_ns, beside));
            return false;
        }
        let slower = hosts.mean() - self.normal_ns.max(alone_ns);
        let is_slower = slower > SLOWER_SHARE * alone_ns && is_sure(slower);
        if is_slower && self.window > 1 {
            let before = Level { window: self.window, ..self.level };
            self.limit((self.window.min(beside.claimed) / 2).max(1), beside);
            self.phase = Phase::Halved(before);
        } else if hosts.count >= SAMPLES_MOST {
            let faster = alone_ns - hosts.mean();
            let is_known = self.prior_ns > 0.0 || self.alone.count >= SAMPLES_LEAST;
            let value = self.level.value(alone_ns, gain_ns(alone_ns, beside));
            if faster > 0.0 && is_sure(faster) {
                // Devices do not make the host faster, so the first batches were unusually slow.
                self.alone = hosts;
            } else if !is_known && value < WORTH_UNKNOWN {
                self.withdraw();
                return true;
            }
            (self.level.hosts, self.level.published) = (Sums::default(), 0.0);
        }
        if self.finished >= self.patient_until && self.ceiling < self.ahead_most {
            self.ceiling = self.ceiling.saturating_mul(2).min(self.ahead_most);
            self.wait_longer();
        }
        false
    }

    /// The loss that can result from random variation of host batches alone.
    fn noise_ns(&self, alone_ns: f64) -> f64 {
        let known = self.level.hosts.variance().max(self.alone.variance());
        let variance = if known > 0.0 { known } else { (alone_ns * FEW_ERROR).powi(2) };
        ERRORS_MIN * (variance * self.losing).sqrt()
    }

    fn wait_longer(&mut self) {
        self.patient_until = self.finished.saturating_add(self.patience);
        self.patience = self.patience.saturating_mul(2);
    }

    /// Begins another window.
    fn limit(&mut self, window: u32, beside: &Beside) {
        (self.window, self.ceiling) = (window, window);
        let since = (beside.claimed <= window).then_some(beside.now);
        self.level = Level { window, since, ..Level::default() };
        (self.loss_ns, self.judged, self.losing) = (0.0, 0.0, 0.0);
        self.normal_ns = 0.0;
        self.wait_longer();
    }

    /// The halved window was measured: retains it, or returns to the previous window.
    fn compare(&mut self, before: &Level, alone_ns: f64, gain_ns: f64) {
        let (now, then) = (self.level.value(alone_ns, gain_ns), before.value(alone_ns, gain_ns));
        self.phase = Phase::Open;
        if now < then * KEPT_SHARE {
            (self.window, self.ceiling) = (before.window, before.window);
            self.normal_ns = before.hosts.mean();
            self.level =
                Level { window: before.window, since: self.level.since, ..Level::default() };
        }
    }

    /// Decides, once the host alone is measured, whether withdrawn devices resume.
    fn judge_alone(&mut self, beside: &Beside) {
        let Phase::Withdrawn { before, alone, skipped, judged } = self.phase else { return };
        if judged {
            let allows = self.batches * self.loss_share >= LOSS_LEAST;
            if allows && self.finished >= self.patient_until {
                self.resume(1, beside);
            }
            return;
        }
        if alone.count < SAMPLES_COMPARED {
            return;
        }
        let alone_ns = alone.mean();
        self.alone = alone;
        let worth = before.value(alone_ns, gain_ns(alone_ns, beside));
        if worth > WORTH_LEAST {
            let normal_ns = before.hosts.mean();
            self.resume(before.window, beside);
            self.normal_ns = normal_ns;
            return;
        }
        self.loss_share /= 2.0;
        if before.window > 1 {
            let smaller = (before.window / LOSS_DIVISOR).max(1);
            self.resume(if before.published > 0.0 { smaller } else { 1 }, beside);
            self.ceiling = (before.window / 2).max(1);
        } else {
            self.wait_longer();
            self.phase = Phase::Withdrawn { before, alone, skipped, judged: true };
        }
    }

    fn resume(&mut self, window: u32, beside: &Beside) {
        self.limit(window, beside);
        self.phase = Phase::Open;
    }
}

/// Host time that a device batch saves.
fn gain_ns(alone_ns: f64, beside: &Beside) -> f64 {
    (alone_ns + beside.shorter_ns).max(0.0)
}
