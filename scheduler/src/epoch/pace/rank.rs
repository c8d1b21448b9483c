//! What one of several ranks measures: its totals for the other ranks, and its own loss.
//!
//! The window depends on the mean of all ranks, so that the random variation of one rank does not
//! change it. But each step waits for the slowest rank. So a rank whose own loss exceeds what can
//! result from random variation demands that all ranks withdraw their devices.

use std::f64::consts::LN_2;

use super::control::{
    Control, FEW_ERROR, PRIOR_ERROR, SAMPLES_LEAST, SAMPLES_MOST, WORTH_LEAST, gain_ns,
};
use super::measured::{Beside, Class, Known, Measured};
use super::sums::Sums;
use crate::effects::{Effects, Total};

/// A rank demands that devices are withdrawn if its loss exceeds this number of standard errors.
/// With many ranks, it must exceed more.
const ERRORS_OWN: f64 = 3.0;

/// With few ranks, the error of the time without devices is ignored: it rarely causes a withdrawal,
/// and measuring the host alone then reduces the error.
const LARGEST_IGNORED: f64 = 4.0 * LN_2;

#[derive(Debug, Clone)]
pub(super) struct OwnRank {
    ranks: u32,
    known: Known,
    /// Totals of this rank.
    alone: Total,
    beside: Total,
    level: Total,
    /// The totals of all ranks, and the smallest number of published batches, at the previous
    /// agreement.
    agreed: (Effects, u32),
    has_agreed: bool,
    /// Recent host batches of this rank alone.
    recent_alone: Sums,
    /// Host batches while devices worked under this window, and the number of batches that the
    /// devices of every rank published meanwhile.
    recent: Sums,
    published: f64,
    /// Whether the latest proposal of this rank demands a withdrawal. The agreement cannot be used
    /// to decide this again, because batches that are published meanwhile reduce the loss.
    demands: bool,
    /// Whether this rank demanded the last withdrawal.
    demanded: bool,
}

impl OwnRank {
    pub(super) fn new(ranks: u32, known: Known) -> Self {
        Self {
            ranks,
            known,
            alone: Total::default(),
            beside: Total::default(),
            level: Total::default(),
            agreed: (Effects::NONE, 0),
            has_agreed: false,
            recent_alone: Sums::default(),
            recent: Sums::default(),
            published: 0.0,
            demands: false,
            demanded: false,
        }
    }

    /// A host batch of this rank is finished.
    pub(super) fn add(&mut self, class: Class, took_ns: u64) {
        match class {
            Class::Alone => {
                self.alone.add(took_ns);
                self.recent_alone.add(took_ns as f64);
                if self.recent_alone.count >= SAMPLES_MOST * 2.0 {
                    self.recent_alone.fade();
                }
            }
            Class::Beside { level } => {
                self.beside.add(took_ns);
                if level {
                    self.level.add(took_ns);
                }
                self.recent.add(took_ns as f64);
            }
            Class::Nothing => {}
        }
    }

    /// Number of recent host batches of this rank alone.
    pub(super) fn alone_count(&self) -> f64 {
        self.recent_alone.count
    }

    /// Its contribution to an agreement.
    pub(super) fn effects(&mut self, control: &Control, beside: &Beside) -> Effects {
        self.demands = !control.is_withdrawn() && self.loses(control, beside);
        Effects {
            alone: self.alone,
            beside: self.beside,
            level: self.level,
            claimed: beside.claimed,
            working: beside.working,
            shorter_ns: beside.shorter_ns as i64,
            prior_ns: self.known.prior_ns,
            window: self.known.window,
            turn: self.known.turn,
            rest: self.known.rest,
            patience: self.known.patience,
            opened: self.known.opened,
            loses: self.demands,
            refuses: control.is_withdrawn() && self.demanded && !self.gains(beside),
        }
    }

    /// All ranks have agreed for the first time: what is known from earlier epochs.
    pub(super) fn known_of_all(&mut self, of_all: &Effects) -> Option<Known> {
        let is_first = !std::mem::replace(&mut self.has_agreed, true);
        let Effects { prior_ns, window, turn, opened, rest, patience, .. } = *of_all;
        is_first.then_some(Known { prior_ns, window, turn, opened, rest, patience })
    }

    /// All ranks have agreed: the measurements of all since the previous agreement, and the number
    /// of batches that the devices of every rank published.
    pub(super) fn agreed(
        &mut self,
        of_all: &Effects,
        published: u32,
        is_withdrawn: bool,
    ) -> (Measured, u32) {
        let (before, published_before) = std::mem::replace(&mut self.agreed, (*of_all, published));
        let ranks = f64::from(self.ranks);
        let mean = |now: Total, before: Total| Sums::of(now.since(before), ranks);
        let measured = Measured {
            alone: mean(of_all.alone, before.alone),
            beside: mean(of_all.beside, before.beside),
            level: mean(of_all.level, before.level),
            skipped: 0.0,
        };
        let more = published.saturating_sub(published_before);
        if !is_withdrawn {
            self.published += f64::from(more);
        }
        (measured, more)
    }

    /// Another window begins.
    pub(super) fn begin_level(&mut self) {
        (self.recent, self.published) = (Sums::default(), 0.0);
    }

    /// Devices are withdrawn.
    pub(super) fn withdrawn(&mut self) {
        self.demanded = self.demands;
    }

    /// Time of a host batch of this rank without devices, and its squared error.
    fn alone_ns(&self) -> (f64, f64) {
        let alone = self.recent_alone;
        let prior_ns = self.known.prior_ns as f64;
        if alone.count >= SAMPLES_LEAST || (prior_ns == 0.0 && alone.count > 0.0) {
            let error = alone.error_squared_of(alone.count);
            let assumed = (alone.mean() * FEW_ERROR).powi(2) / alone.count;
            (alone.mean(), if alone.count >= SAMPLES_LEAST { error } else { assumed })
        } else {
            (prior_ns, (prior_ns * PRIOR_ERROR).powi(2))
        }
    }

    /// Time that devices have cost this rank; negative if they have saved time.
    fn loss_ns(&self, alone_ns: f64, beside: &Beside) -> f64 {
        let Sums { count, sum, .. } = self.recent;
        sum - count * alone_ns - self.published * gain_ns(alone_ns, beside)
    }

    /// Starts another measurement of the loss once savings exceed the permitted loss, so that they
    /// offset no later loss.
    pub(super) fn limit_savings(&mut self, control: &Control, beside: &Beside) {
        let (alone_ns, _) = self.alone_ns();
        if self.loss_ns(alone_ns, beside) < -control.allowed_ns(alone_ns) {
            self.begin_level();
        }
    }

    /// Whether devices cost this rank more than random variation of the slowest of all ranks can.
    fn loses(&self, control: &Control, beside: &Beside) -> bool {
        let (alone_ns, alone_error) = self.alone_ns();
        let count = self.recent.count;
        if count < SAMPLES_LEAST || alone_ns == 0.0 {
            return false;
        }
        let loss_ns = self.loss_ns(alone_ns, beside);
        let least_ns = control.allowed_ns(alone_ns) + control.held_ns(alone_ns, beside);
        if loss_ns <= least_ns {
            return false;
        }
        // What varies beside devices is their effect, which is a loss, whatever its distribution.
        let known = self.recent_alone.variance();
        let is_known = count + self.recent_alone.count >= SAMPLES_MOST;
        let variance = if is_known { known } else { (alone_ns * FEW_ERROR).powi(2).max(known) };
        // The square of how many standard deviations the largest of n normally distributed values
        // is above their mean.
        let of_largest = 2.0 * LN_2 * f64::from(self.ranks.ilog2());
        let of_batches = (ERRORS_OWN.powi(2) + of_largest) * variance * count;
        let of_alone = (of_largest - LARGEST_IGNORED).max(0.0) * alone_error * count.powi(2);
        loss_ns.powi(2) > of_batches + of_alone
    }

    /// Whether host and devices did more than the host of this rank alone.
    fn gains(&self, beside: &Beside) -> bool {
        let (alone_ns, _) = self.alone_ns();
        let work_ns = self.recent.count * alone_ns + self.published * gain_ns(alone_ns, beside);
        work_ns > self.recent.sum * WORTH_LEAST
    }
}
