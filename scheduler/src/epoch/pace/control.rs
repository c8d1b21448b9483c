//! The window of devices: computes the limit of devices from measurements of host batches.
//!
//! With several ranks, all counts and times are means per rank.

use super::measured::{Beside, Known, Level, Measured};
use super::sums::Sums;
use crate::types::Time;

/// Loss after which devices are withdrawn the first time, as a share of the epoch.
const LOSS_SHARE: f64 = 0.005;

/// Minimum of the permitted loss, in host batches, for short epochs. An attempt that may lose less
/// is not made.
pub(super) const LOSS_LEAST: f64 = 1.0;

/// Host batches needed for a first judgement, and for a comparison of windows.
pub(super) const SAMPLES_LEAST: f64 = 8.0;
const SAMPLES_COMPARED: f64 = 16.0;

/// Host batches after which older measurements are dropped.
pub(super) const SAMPLES_MOST: f64 = 32.0;

/// A host is slower if its batches take longer by this share, and if the difference is more than
/// [`ERRORS_MIN`] times its standard error.
const SLOWER_SHARE: f64 = 0.15;
const ERRORS_MIN: f64 = 4.0;

/// A smaller window is kept if it has at least this share of the value of the larger one.
const KEPT_SHARE: f64 = 0.97;

/// Withdrawn devices resume with the same window if host and devices did this multiple of the work
/// of the host alone.
pub(super) const WORTH_LEAST: f64 = 1.02;

/// The same while the time of the host alone is known only from its first batches.
const WORTH_UNKNOWN: f64 = 1.5;

/// Divisor of a window whose devices caused a loss.
const LOSS_DIVISOR: u32 = 4;

/// Relative error of a time from earlier epochs.
pub(super) const PRIOR_ERROR: f64 = 0.05;

/// Expected gain of an unpublished batch of a device, as a share of the gain of a published one.
const HELD_SHARE: f64 = 0.15;

/// With several ranks, which may share devices: the window grows up to this multiple of the number
/// of batches that devices publish in the time of the first batch. More batches would only wait at
/// the devices while these work for other ranks.
const TURNS_MOST: f64 = 2.0;

/// Number of batches by which a window that was never limited grows for each published batch.
const GROWTH_FIRST: u32 = 2;

/// Assumed relative error of the time of a host batch while few were measured.
pub(super) const FEW_ERROR: f64 = 0.25;

/// Host batches until a limit is raised, or until devices are tried again; doubles each time.
const PATIENCE_FIRST: u32 = 64;

/// Maximum of that number.
const PATIENCE_MOST: u32 = 4096;

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Devices work.
    Open,
    /// The window was halved; has the measurements from before.
    Halved(Level),
    /// Devices have no work. `before`: measurements with devices. `alone`: times of the host alone.
    /// `judged`: the host alone was measured.
    Withdrawn { before: Level, alone: Sums, judged: bool },
}

/// The state of the window. With several ranks it is the same on each, because it changes only by
/// what all ranks have agreed on.
#[derive(Debug, Clone)]
pub(super) struct Control {
    batches: f64,
    ranks: f64,
    ahead_most: u32,
    /// Maximum number of unpublished batches of devices, and the largest value to which published
    /// batches raise it.
    window: u32,
    ceiling: u32,
    /// The window after the first batch of a device, if that batch caused no loss.
    opened: Option<u32>,
    /// Once that first batch is published: the value of `finished` from which on its effect on host
    /// batches is known.
    opens_at: Option<f64>,
    phase: Phase,
    level: Level,
    /// Number of times that the window was limited.
    levels: u32,
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
    /// Maximum of the loss, as a share of the epoch.
    loss_share: f64,
    /// Total additional time of host batches while devices worked, over the epoch.
    longer_ns: f64,
    /// Host batches so far, and the number after which devices may get more.
    finished: f64,
    patience: u32,
    patient_until: f64,
    /// With several ranks: the time from granting the first batch of a device to publishing it, in
    /// host batches; 0 if not known.
    first_turn: f64,
    /// Number of host batches before devices had work under this window, and number of batches that
    /// devices have published since.
    began: Option<f64>,
    published: f64,
    /// Whether an earlier epoch scheduled the next attempt after a wait that is long enough for the
    /// permitted loss. This epoch may then be too short for the attempt by itself.
    is_carried: bool,
}

impl Control {
    /// `ahead_most`: maximum number of batches that all devices of a rank may hold.
    pub(super) fn new(batches: u32, ranks: u32, ahead_most: u32, known: &Known) -> Self {
        let mut made = Self {
            batches: f64::from(batches),
            ranks: f64::from(ranks.max(1)),
            ahead_most,
            window: 1,
            ceiling: ahead_most,
            opened: None,
            opens_at: None,
            phase: Phase::Open,
            level: Level::default(),
            levels: 0,
            prior_ns: 0.0,
            alone: Sums::default(),
            normal_ns: 0.0,
            loss_ns: 0.0,
            judged: 0.0,
            longer_ns: 0.0,
            loss_share: LOSS_SHARE,
            finished: 0.0,
            patience: PATIENCE_FIRST,
            patient_until: f64::from(PATIENCE_FIRST),
            first_turn: 0.0,
            began: None,
            published: 0.0,
            is_carried: false,
        };
        made.begin(known);
        made
    }

    /// Begins with what is known from earlier epochs.
    pub(super) fn begin(&mut self, known: &Known) {
        self.prior_ns = known.prior_ns as f64;
        self.first_turn = f64::from(known.turn);
        self.window = known.window.clamp(1, self.ahead_most.max(1));
        self.opened = (known.window == 0).then_some(known.opened.min(self.ahead_most));
        (self.phase, self.ceiling) = (Phase::Open, self.ahead_most);
        if known.rest > 0 {
            let before = Level::default();
            self.phase = Phase::Withdrawn { before, alone: Sums::default(), judged: true };
            self.patience = known.patience.clamp(PATIENCE_FIRST, PATIENCE_MOST);
            self.patient_until = f64::from(known.rest);
            self.is_carried = f64::from(self.patience) * self.loss_share >= LOSS_LEAST;
            (self.window, self.ceiling) = (0, 1);
        }
        self.level = Level { window: self.window, since: Some(0), ..Level::default() };
    }

    /// Maximum number of unpublished batches of devices.
    pub(super) fn window(&self) -> u32 {
        self.window
    }

    /// Whether devices are withdrawn.
    pub(super) fn is_withdrawn(&self) -> bool {
        matches!(self.phase, Phase::Withdrawn { .. })
    }

    /// Number of times that the window was limited, by which ranks notice another window.
    pub(super) fn level_number(&self) -> u32 {
        self.levels
    }

    /// When devices first held no more than the window.
    pub(super) fn level_since(&self) -> Option<Time> {
        self.level.since
    }

    /// Number of measured host batches without devices.
    pub(super) fn alone_count(&self) -> f64 {
        self.alone.count
    }

    /// Time to prepare a host batch without devices, and its squared error; 0 if not known.
    pub(super) fn alone(&self) -> (f64, f64) {
        let sure = self.alone.count >= SAMPLES_LEAST;
        if sure || (self.prior_ns == 0.0 && self.alone.count > 0.0) {
            let mean = self.alone.mean();
            let assumed = (mean * FEW_ERROR).powi(2) / self.alone.count;
            (mean, if sure { self.error_squared(&self.alone, self.alone.count) } else { assumed })
        } else {
            (self.prior_ns, (self.prior_ns * PRIOR_ERROR).powi(2))
        }
    }

    /// The squared standard error of a mean of `count` host batches of each rank.
    fn error_squared(&self, sums: &Sums, count: f64) -> f64 {
        sums.error_squared_of(count * self.ranks)
    }

    /// Total additional time of host batches while devices worked.
    pub(super) fn longer_ns(&self) -> f64 {
        self.longer_ns
    }

    /// The window with which the next epoch begins.
    pub(super) fn learned_window(&self) -> u32 {
        if self.opened.is_some() { 0 } else { self.window.max(1) }
    }

    /// Number of host batches until the next attempt with devices, and that of the wait after it; 0
    /// if they are used.
    pub(super) fn learned_rest(&self) -> (u32, u32) {
        match self.phase {
            Phase::Withdrawn { judged: true, .. } => {
                let left = (self.patient_until - self.finished).max(1.0);
                (left as u32, self.patience)
            }
            Phase::Withdrawn { .. } | Phase::Open | Phase::Halved(_) => (0, 0),
        }
    }

    /// Number of host batches from granting the first batch of a device to publishing it, for the
    /// next epoch.
    pub(super) fn learned_turn(&self) -> u32 {
        self.first_turn as u32
    }

    /// Devices published batches.
    pub(super) fn published(&mut self, count: u32, beside: &Beside) {
        let (alone_ns, _) = self.alone();
        self.lose(-f64::from(count) * gain_ns(alone_ns, beside), alone_ns);
        if self.level.since.is_some() {
            self.level.published += f64::from(count);
        }
        if !matches!(self.phase, Phase::Open) || self.loss_ns > LOSS_LEAST * alone_ns {
            return;
        }
        let may_grow = self.ranks == 1.0 || self.may_grow(count, beside.working);
        if self.opened.is_some() {
            let part = if self.ranks == 1.0 { 1 } else { 2 };
            let open = self.finished + f64::from(beside.working / part);
            self.opens_at.get_or_insert(open);
        } else if may_grow && beside.claimed.saturating_add(count) >= self.window {
            let is_first = self.ceiling == self.ahead_most;
            let more = count.saturating_mul(if is_first { GROWTH_FIRST } else { 1 });
            self.window = self.window.saturating_add(more).min(self.ceiling.max(self.window));
        }
    }

    /// Whether devices would prepare more batches of each rank without delaying them by batches of
    /// other ranks.
    fn may_grow(&mut self, count: u32, working: u32) -> bool {
        let Some(began) = self.began else { return true };
        let took = self.finished - began;
        if self.opened.is_some() && self.first_turn == 0.0 {
            self.first_turn = took.max(f64::from(working)).max(1.0);
        }
        self.published += f64::from(count);
        // The first batch under this window takes as long as the first batch of the epoch.
        let took = took - self.first_turn;
        let in_turn = self.published / took * self.first_turn;
        took < self.first_turn || f64::from(self.window) < TURNS_MOST * in_turn
    }

    /// Opens the window once the host batches beside the first batch of a device are finished.
    fn open(&mut self, alone_ns: f64) {
        let is_due = self.opens_at.is_some_and(|at| self.finished >= at);
        if !is_due || !matches!(self.phase, Phase::Open) || self.loss_ns > LOSS_LEAST * alone_ns {
            return;
        }
        if let Some(opened) = self.opened.take() {
            self.window = opened.max(self.window);
            (self.began, self.published) = (Some(self.finished), 0.0);
        }
    }

    /// Adds to the loss, which savings reduce to no less than the negative of the permitted loss.
    fn lose(&mut self, more_ns: f64, alone_ns: f64) {
        self.loss_ns = (self.loss_ns + more_ns).max(-self.allowed_ns(alone_ns));
    }

    pub(super) fn allowed_ns(&self, alone_ns: f64) -> f64 {
        (self.batches * self.loss_share).max(LOSS_LEAST) * alone_ns
    }

    /// The expected gain of the batches that devices hold, by which the permitted loss is larger.
    pub(super) fn held_ns(&self, alone_ns: f64, beside: &Beside) -> f64 {
        let held_ns = f64::from(beside.claimed) * HELD_SHARE * gain_ns(alone_ns, beside);
        held_ns.min(self.allowed_ns(alone_ns))
    }

    /// Applies measurements of host batches. `demanded`: whether a rank demands that devices are
    /// withdrawn. Returns whether all work of devices must be reclaimed.
    pub(super) fn apply(&mut self, measured: &Measured, demanded: bool, beside: &Beside) -> bool {
        self.finished += measured.count();
        if self.began.is_none() && beside.claimed > 0 {
            self.began = Some(self.finished);
        }
        if let Phase::Withdrawn { alone, .. } = &mut self.phase {
            alone.join(&measured.alone);
            self.judge_alone(beside);
            return false;
        }
        if measured.alone.count > 0.0 {
            self.alone.join(&measured.alone);
            while self.alone.count >= SAMPLES_MOST * 2.0 {
                self.alone.fade();
            }
        }
        if demanded {
            self.withdraw();
            return true;
        }
        let (alone_ns, alone_error) = self.alone();
        self.open(alone_ns);
        let beside_of = measured.beside;
        if beside_of.count == 0.0 || alone_ns == 0.0 {
            return false;
        }
        let longer_ns = beside_of.sum - beside_of.count * alone_ns;
        self.lose(longer_ns, alone_ns);
        self.longer_ns += longer_ns;
        self.judged += beside_of.count;
        self.level.hosts.join(&measured.level);
        if self.level.since.is_none() && beside.claimed <= self.window {
            self.level.since = Some(beside.now);
        }
        self.judge(beside, alone_ns, alone_error)
    }

    fn withdraw(&mut self) {
        self.level.window = self.window;
        let (before, alone) = (self.level, Sums::default());
        self.phase = Phase::Withdrawn { before, alone, judged: false };
        self.window = 0;
    }

    /// Judges the current window. Returns whether devices are withdrawn.
    fn judge(&mut self, beside: &Beside, alone_ns: f64, alone_error: f64) -> bool {
        let permitted_ns = self.allowed_ns(alone_ns) + self.held_ns(alone_ns, beside);
        if self.loss_ns > permitted_ns && self.judged >= SAMPLES_LEAST {
            self.withdraw();
            return true;
        }
        let hosts = self.level.hosts;
        if hosts.count < SAMPLES_COMPARED {
            return false;
        }
        let of_level = self.error_squared(&hosts, hosts.count);
        let error = of_level.max(self.error_squared(&self.alone, hosts.count)) + alone_error;
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

    fn wait_longer(&mut self) {
        self.patient_until = self.finished + f64::from(self.patience);
        self.patience = self.patience.saturating_mul(2).min(PATIENCE_MOST);
    }

    /// Begins another window.
    fn limit(&mut self, window: u32, beside: &Beside) {
        (self.window, self.ceiling) = (window, window);
        let since = (beside.claimed <= window).then_some(beside.now);
        self.level = Level { window, since, ..Level::default() };
        self.levels = self.levels.wrapping_add(1);
        (self.loss_ns, self.judged) = (0.0, 0.0);
        self.normal_ns = 0.0;
        (self.began, self.published) = (None, 0.0);
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
        let Phase::Withdrawn { before, alone, judged } = &mut self.phase else { return };
        if alone.count < SAMPLES_COMPARED && !*judged {
            return;
        }
        let (before, measured, judged) = (*before, *alone, *judged);
        if measured.count >= SAMPLES_COMPARED {
            self.alone = measured;
        }
        if judged {
            if alone.count >= SAMPLES_MOST * 2.0 {
                alone.fade();
            }
            let allows = self.batches * self.loss_share >= LOSS_LEAST;
            if (allows || self.is_carried) && self.finished >= self.patient_until {
                self.is_carried = false;
                self.resume(1, beside);
            }
            return;
        }
        let alone_ns = measured.mean();
        let worth = before.value(alone_ns, gain_ns(alone_ns, beside));
        if worth > WORTH_LEAST && !beside.refused {
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
            self.phase = Phase::Withdrawn { before, alone: measured, judged: true };
        }
    }

    fn resume(&mut self, window: u32, beside: &Beside) {
        self.limit(window, beside);
        self.phase = Phase::Open;
    }
}

/// Host time that a device batch saves.
pub(super) fn gain_ns(alone_ns: f64, beside: &Beside) -> f64 {
    (alone_ns + beside.shorter_ns).max(0.0)
}
