//! The state of a loader for Python: its engine, what its epochs measured, and warnings to issue.

use crate::energy::Totals;
use crate::engine::{Answer, Engine, Next};
use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_host::explain::GpuMeter;
use meetpoint_host::stats::{EpochStats, Event, EventKind, Phase};
use meetpoint_metrics::{CompletedEpoch, ConsumedBatch, Exporter, Prometheus};
use meetpoint_scheduler::Record;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Number of epochs whose details are kept for a trace.
const HISTORY_MAX: usize = 4;

/// An epoch that ended.
#[derive(Clone)]
pub(crate) struct FinishedEpoch {
    pub(crate) stats: Arc<EpochStats>,
    /// Time that the user's batch transform took in it.
    pub(crate) transform: Duration,
}

/// The state of a loader.
pub(crate) struct State {
    pub(crate) engine: Engine,
    /// Number of the epoch's start; a later start invalidates it.
    pub(crate) serial: u64,
    /// The measurements of finished epochs.
    pub(crate) finished: Vec<Arc<EpochStats>>,
    /// The latest finished epochs, over all iterators.
    pub(crate) history: VecDeque<FinishedEpoch>,
    /// Time that the user's batch transform took in the current epoch.
    pub(crate) transform: Duration,
    /// Sums over all epochs.
    pub(crate) totals: Totals,
    /// Measurements of graphics boards in the latest interval of `energy()`.
    pub(crate) gpu_meters: Vec<GpuMeter>,
    pub(crate) metrics: Prometheus,
    /// Additional destination of metrics.
    pub(crate) exporter: Option<Arc<Exporter>>,
    /// Losses for which Python has not issued a warning yet: the class of the warning, and a
    /// sentence.
    pub(crate) losses: Vec<(&'static str, String)>,
    /// The record that fixes the order of the rest of the epoch.
    pub(crate) record: Option<Record>,
    pub(crate) is_closed: bool,
    /// Whether every batch of the epoch was returned.
    pub(crate) is_over: bool,
    /// Whether the end of an epoch was requested and not answered yet.
    pub(crate) is_ending: bool,
    /// Whether an epoch is running.
    pub(crate) is_begun: bool,
}

impl State {
    pub(crate) fn new(engine: Engine) -> Self {
        Self {
            engine,
            serial: 0,
            finished: Vec::new(),
            history: VecDeque::new(),
            transform: Duration::ZERO,
            totals: Totals::default(),
            gpu_meters: Vec::new(),
            metrics: Prometheus::new(),
            exporter: None,
            losses: Vec::new(),
            record: None,
            is_closed: false,
            is_over: false,
            is_ending: false,
            is_begun: false,
        }
    }

    /// Records a device that is lost or silent, and a GPU that failed.
    pub(crate) fn note_losses(&mut self, events: &[Event]) {
        let is_of_start = |event: &&Event| {
            matches!(event.kind, EventKind::DeviceLost { phase: Phase::Start, .. })
        };
        // Python warns of the first of these only.
        let others = events.iter().filter(is_of_start).count().saturating_sub(1);
        let losses = events.iter().filter_map(|event| {
            let class = match &event.kind {
                EventKind::GpuFailed { .. } => "GpuWarning",
                kind if kind.is_device_loss() => "DeviceWarning",
                _ => return None,
            };
            let mut sentence = event.kind.in_full(Surface::Python);
            if is_of_start(&event) && others > 0 {
                let (noun, were) =
                    if others == 1 { ("device", "was") } else { ("devices", "were") };
                let more = format!("; {others} more {noun} {were} lost, which report() names");
                sentence.push_str(&more);
            }
            Some((class, sentence))
        });
        self.losses.extend(losses);
    }

    /// An epoch ended.
    pub(crate) fn finish(&mut self, stats: EpochStats) {
        self.is_begun = false;
        let ended = CompletedEpoch::from(&stats);
        self.metrics.epoch(&ended);
        self.exporter.iter().for_each(|exporter| exporter.epoch(&ended));
        self.totals.add(&stats);
        let stats = Arc::new(stats);
        if self.history.len() == HISTORY_MAX {
            self.history.pop_front();
        }
        let transform = std::mem::take(&mut self.transform);
        self.history.push_back(FinishedEpoch { stats: Arc::clone(&stats), transform });
        self.finished.push(stats);
    }

    /// A batch was returned.
    pub(crate) fn count(&self, handed: &ConsumedBatch) {
        self.metrics.batch(handed);
        self.exporter.iter().for_each(|exporter| exporter.batch(handed));
    }

    /// Keeps the information in an answer about an ended epoch.
    pub(crate) fn absorb(&mut self, answer: Answer) {
        match answer {
            Answer::Ended(stats) => {
                self.is_ending = false;
                stats.into_iter().for_each(|stats| self.finish(*stats));
            }
            Answer::Next(Ok(Next::End { stats, .. })) => self.finish(*stats),
            // A batch that is not needed any more, or an error that ended a finished epoch.
            _ => {}
        }
    }
}
