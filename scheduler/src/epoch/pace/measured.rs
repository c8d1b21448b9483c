//! Measurements of host batches, and the state of the epoch at that time.

use super::sums::Sums;
use crate::types::Time;

/// What is known from earlier epochs; 0 if not known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// Time of a host batch without devices.
    pub(super) prior_ns: u64,
    /// The window.
    pub(super) window: u32,
    /// The window after a first batch without loss.
    pub(super) opened: u32,
    /// Number of host batches from granting the first batch of a device to publishing it.
    pub(super) turn: u32,
    /// Number of host batches until the next attempt with devices, and that of the wait after it.
    pub(super) rest: u32,
    pub(super) patience: u32,
}

/// What a host batch measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// The host alone, or nearly so.
    Alone,
    /// Devices worked during a part of it. `level`: during most of it, and it began under the
    /// current window.
    Beside { level: bool },
    /// Nothing, because withdrawn devices may still have worked.
    Nothing,
}

/// Measurements since the last judgement, as means per rank.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Measured {
    pub(super) alone: Sums,
    pub(super) beside: Sums,
    /// Those of `beside` that measure the current window.
    pub(super) level: Sums,
    /// Number of batches that measure nothing.
    pub(super) skipped: f64,
}

impl Measured {
    /// One host batch of the only rank.
    pub(super) fn one(class: Class, took_ns: f64) -> Self {
        let mut made = Self::default();
        match class {
            Class::Alone => made.alone.add(took_ns),
            Class::Beside { level } => {
                made.beside.add(took_ns);
                if level {
                    made.level.add(took_ns);
                }
            }
            Class::Nothing => made.skipped += 1.0,
        }
        made
    }

    pub(super) fn count(&self) -> f64 {
        self.alone.count + self.beside.count + self.skipped
    }
}

/// Measurements under one window.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Level {
    pub(super) window: u32,
    /// When devices first held no more than the window; `None` if they still hold more.
    pub(super) since: Option<Time>,
    /// Times of host batches claimed since then.
    pub(super) hosts: Sums,
    /// Number of batches that devices published since then.
    pub(super) published: f64,
}

impl Level {
    /// The work that host and devices do, relative to the host alone in the same time.
    pub(super) fn value(&self, alone_ns: f64, gain_ns: f64) -> f64 {
        if self.hosts.sum > 0.0 {
            (self.hosts.count * alone_ns + self.published * gain_ns) / self.hosts.sum
        } else {
            0.0
        }
    }
}

/// The state of the epoch at an event; with several ranks, what all ranks know.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beside {
    pub(super) now: Time,
    /// Unpublished batches of devices; the maximum of the ranks.
    pub(super) claimed: u32,
    /// Host batches in preparation; the maximum of the ranks.
    pub(super) working: u32,
    /// How much shorter a step on a device batch is, for a host that does not prepare during it.
    pub(super) shorter_ns: f64,
    /// Whether a rank refuses that withdrawn devices resume with the same window.
    pub(super) refused: bool,
}
