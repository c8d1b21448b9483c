//! Sends what is counted to an OpenTelemetry collector (OTLP over gRPC), on a thread of its own.
//!
//! Counting never waits for the collector: one that is not there, or is silent, costs exports and a
//! sentence. In reading order: this file (the exporter), `settings` (where to, how often),
//! `instruments` (what is counted), `sender` (the thread).

mod instruments;
mod sender;
mod settings;

pub use sender::CLOSE_LIMIT;
pub use settings::Settings;

use crate::{Ended, Error, Handed};
use instruments::Instruments;
use sender::{ExportState, Sender};
use settings::of_environment;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc::UnboundedSender, oneshot};

/// How an exporter fared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// Times that the collector took what was counted.
    pub exports: u64,
    /// Times that it did not.
    pub failures: u64,
    /// Why it did not the last time.
    pub failure: Option<String>,
}

/// Counts, and sends what it counted.
#[derive(Debug)]
pub struct Exporter {
    /// The process that started it: a forked child has no thread.
    process: u32,
    instruments: Instruments,
    state: Arc<Mutex<ExportState>>,
    /// `None` once it is closed, or where the environment turns OpenTelemetry off.
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

/// The answer to [`Exporter::flush`].
#[derive(Debug)]
pub struct Flushed(Receiver<Result<(), String>>);

impl Flushed {
    /// Waits a while for the export. `None`: it is not over yet.
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
    /// Starts the thread. It counts from 0 and sends after every interval; nothing is sent yet, so
    /// a collector that is not there is not noticed.
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

    /// A batch was handed out.
    pub fn batch(&self, handed: &Handed) {
        self.instruments.batch(handed);
    }

    /// An epoch ended.
    pub fn epoch(&self, ended: &Ended) {
        self.instruments.epoch(ended);
    }

    /// Asks for an export now.
    pub fn flush(&self) -> Flushed {
        let (answer, answers) = channel();
        if let Some(running) = self.running().as_ref() {
            // A thread that is gone drops the question, which the answer then says.
            let _ = running.flushes.send(answer);
        }
        Flushed(answers)
    }

    /// How it fared so far.
    pub fn status(&self) -> Status {
        sender::lock(&self.state).status.clone()
    }

    /// Why an export failed, for the first that did; `None` ever after.
    pub fn take_failure(&self) -> Option<String> {
        sender::lock(&self.state).unreported.take()
    }

    /// Whether it sends nothing any more, or never did.
    pub fn is_closed(&self) -> bool {
        self.running().is_none()
    }

    /// Sends what was counted since the last export, for which it takes no longer than
    /// [`CLOSE_LIMIT`], and ends the thread.
    pub fn close(&self) {
        if self.process != std::process::id() {
            return;
        }
        let running = self.running().take();
        if let Some(Running { flushes, stop, thread }) = running {
            drop((flushes, stop));
            // Its own panic was reported where it happened.
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
            // In a forked child a lock may be held for ever by the thread, which is not there.
            std::mem::forget(running);
        }
        // Else the thread sends what is left and goes by itself.
    }
}
