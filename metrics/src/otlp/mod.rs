//! Exports the counters to an OpenTelemetry collector (OTLP over gRPC), on a separate thread.
//!
//! Counting never waits for the collector. If the collector does not respond, exports fail, and the
//! first failure is reported. In reading order: this file (the exporter), `settings` (endpoint and
//! interval), `instruments` (the counters), `sender` (the thread).

mod instruments;
mod sender;
mod settings;

pub use sender::CLOSE_LIMIT;
pub use settings::Settings;

use crate::{CompletedEpoch, ConsumedBatch, Error};
use instruments::Instruments;
use sender::{ExportState, Sender};
use settings::of_environment;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc::UnboundedSender, oneshot};

/// The exports of an exporter so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// Number of successful exports.
    pub exports: u64,
    /// Number of failed exports.
    pub failures: u64,
    /// Why the last failed export failed.
    pub failure: Option<String>,
}

/// Counts batches and epochs, and exports the counters.
#[derive(Debug)]
pub struct Exporter {
    /// The process that started it; in a forked child, the thread does not exist.
    process: u32,
    instruments: Instruments,
    state: Arc<Mutex<ExportState>>,
    /// `None` once it is closed, or if the environment disables OpenTelemetry.
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    flushes: UnboundedSender<Flush>,
    /// Dropped to stop the thread.
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// A requested export, and the channel for its result.
type Flush = std::sync::mpsc::Sender<Result<(), String>>;

/// The result of [`Exporter::flush`].
#[derive(Debug)]
pub struct Flushed(Receiver<Result<(), String>>);

impl Flushed {
    /// Waits at most `limit` for the export; `None` if it has not completed.
    pub fn wait(&self, limit: Duration) -> Option<Result<(), String>> {
        match self.0.recv_timeout(limit) {
            Ok(result) => Some(result),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                Some(Err("the exporter was closed, or is turned off".to_owned()))
            }
        }
    }
}

impl Exporter {
    /// Starts the thread. It counts from 0 and exports after every interval. Nothing is sent yet,
    /// so a missing collector is not an error here.
    pub fn start(settings: &Settings) -> Result<Self, Error> {
        Settings::check(of_environment)?;
        let interval = settings.interval(of_environment)?;
        let timeout = Settings::timeout(of_environment);
        let resource = settings.resource(of_environment);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let place = settings.endpoint(of_environment)?;
        let client = sender::client(&place, timeout, &runtime)?;
        let (instruments, readout) = Instruments::new(resource, sender::temporality(&client));
        let state = Arc::new(Mutex::new(ExportState::default()));
        let mut running = None;
        if !Settings::is_disabled(of_environment) {
            let sender = Sender::new(client, readout, place, Arc::clone(&state), interval, timeout);
            let (flushes, asked) = tokio::sync::mpsc::unbounded_channel();
            let (stop, stopped) = oneshot::channel();
            let body = move || sender.serve(runtime, asked, stopped);
            let thread = std::thread::Builder::new().name("meetpoint-otlp".to_owned());
            running = Some(Running { flushes, stop, thread: thread.spawn(body)? });
        }
        let process = std::process::id();
        Ok(Self { process, instruments, state, running: Mutex::new(running) })
    }

    /// Counts a batch that was passed to the consumer.
    pub fn batch(&self, consumed: &ConsumedBatch) {
        self.instruments.batch(consumed);
    }

    /// Counts a completed epoch.
    pub fn epoch(&self, ended: &CompletedEpoch) {
        self.instruments.epoch(ended);
    }

    /// Requests an export now.
    pub fn flush(&self) -> Flushed {
        let (answer, answers) = channel();
        if let Some(running) = self.running().as_ref() {
            // If the thread has ended, `answer` is dropped, which the receiver reports.
            let _ = running.flushes.send(answer);
        }
        Flushed(answers)
    }

    /// The exports so far.
    pub fn status(&self) -> Status {
        sender::lock(&self.state).status.clone()
    }

    /// Why the first failed export failed; returned once, then `None`.
    pub fn take_failure(&self) -> Option<String> {
        sender::lock(&self.state).unreported.take()
    }

    /// Whether it was closed, or is disabled by the environment.
    pub fn is_closed(&self) -> bool {
        self.running().is_none()
    }

    /// Exports what was counted since the last export, which takes at most [`CLOSE_LIMIT`], and
    /// ends the thread.
    pub fn close(&self) {
        if self.process != std::process::id() {
            return;
        }
        let running = self.running().take();
        if let Some(Running { flushes, stop, thread }) = running {
            drop((flushes, stop));
            // A panic of the thread was already reported.
            let _ = thread.join();
        }
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if self.process != std::process::id() {
            // In a forked child, the thread does not exist, and may have held a lock that is never
            // released.
            std::mem::forget(running);
        }
        // Otherwise the thread exports the rest and ends without a join.
    }
}
