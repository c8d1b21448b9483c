//! The thread that exports: after every interval, on request, and once more at the end.

use super::instruments::Readout;
use super::{Flush, Status};
use crate::Error;
use opentelemetry_otlp::{MetricExporter, WithExportConfig};
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout_at};

/// Longest time that closing waits for the collector.
pub const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// The state that the thread shares with the exporter.
#[derive(Debug, Default)]
pub(super) struct ExportState {
    pub(super) status: Status,
    /// The first failure, until [`Exporter::take_failure`](super::Exporter::take_failure) returns
    /// it.
    pub(super) unreported: Option<String>,
}

pub(super) fn lock(state: &Mutex<ExportState>) -> MutexGuard<'_, ExportState> {
    // A panic while it is held leaves the state consistent.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A client of this endpoint. It connects at the first export.
pub(super) fn client(
    endpoint: &str,
    timeout: Duration,
    runtime: &Runtime,
) -> Result<MetricExporter, Error> {
    // The connection belongs to this event loop.
    let _entered = runtime.enter();
    let builder = MetricExporter::builder().with_tonic().with_timeout(timeout);
    let built = builder.with_endpoint(endpoint).build();
    built.map_err(|error| Error::Endpoint { reason: error.to_string() })
}

/// Whether exported sums begin at the start or at the last export.
pub(super) fn temporality(client: &MetricExporter) -> Temporality {
    client.temporality()
}

/// The state of the thread.
#[derive(Debug)]
pub(super) struct Sender {
    client: MetricExporter,
    readout: Readout,
    /// Endpoint of the collector.
    place: String,
    state: Arc<Mutex<ExportState>>,
    interval: Duration,
    timeout: Duration,
    metrics: ResourceMetrics,
}

impl Sender {
    pub(super) fn new(
        client: MetricExporter,
        readout: Readout,
        place: String,
        state: Arc<Mutex<ExportState>>,
        interval: Duration,
        timeout: Duration,
    ) -> Self {
        let metrics = ResourceMetrics::default();
        Self { client, readout, place, state, interval, timeout, metrics }
    }

    /// Main loop of the thread, until `stop` is dropped.
    pub(super) fn serve(
        mut self,
        runtime: Runtime,
        mut flushes: UnboundedReceiver<Flush>,
        mut stop: oneshot::Receiver<()>,
    ) {
        runtime.block_on(async {
            let limit = self.until_stopped(&mut flushes, &mut stop).await;
            let begun = Instant::now();
            let sent = timeout_at(limit, self.send()).await;
            let sent = sent.unwrap_or_else(|_| Err(silent(&self.place, begun)));
            self.record(&sent);
        });
        // Otherwise dropping the runtime would wait for a host name that does not resolve.
        runtime.shutdown_background();
    }

    /// Exports at intervals and on request; returns the deadline of the last export.
    async fn until_stopped(
        &mut self,
        flushes: &mut UnboundedReceiver<Flush>,
        stop: &mut oneshot::Receiver<()>,
    ) -> Instant {
        let mut due = Instant::now() + self.interval;
        loop {
            let flush = tokio::select! {
                _ = &mut *stop => return Instant::now() + CLOSE_LIMIT,
                flush = flushes.recv() => flush,
                () = sleep_until(due) => None,
            };
            let begun = Instant::now();
            let mut limit = begun + self.timeout;
            let mut stopped = None;
            let place = self.place.clone();
            let sent = {
                let sending = self.send();
                tokio::pin!(sending);
                tokio::select! {
                    sent = &mut sending => sent,
                    () = sleep_until(limit) => Err(silent(&place, begun)),
                    _ = &mut *stop => {
                        limit = limit.min(Instant::now() + CLOSE_LIMIT);
                        stopped = Some(limit);
                        let sent = timeout_at(limit, sending).await;
                        sent.unwrap_or_else(|_| Err(silent(&place, begun)))
                    }
                }
            };
            self.record(&sent);
            if let Some(flush) = flush {
                // The caller may have stopped waiting.
                let _ = flush.send(sent.map(|_| ()));
            }
            if let Some(limit) = stopped {
                return limit;
            }
            due = Instant::now() + self.interval;
        }
    }

    /// Exports once; returns whether there was anything to export.
    async fn send(&mut self) -> Result<bool, String> {
        let failed = |error| format!("failed to send metrics to {}: {error}", self.place);
        self.readout.read(&mut self.metrics).map_err(failed)?;
        if self.metrics.scope_metrics().next().is_none() {
            return Ok(false);
        }
        self.client.export(&self.metrics).await.map_err(failed)?;
        Ok(true)
    }

    fn record(&self, sent: &Result<bool, String>) {
        let mut state = lock(&self.state);
        match sent {
            Ok(is_sent) => state.status.exports += u64::from(*is_sent),
            Err(failure) => {
                state.status.failures += 1;
                if state.status.failures == 1 {
                    state.unreported = Some(failure.clone());
                }
                state.status.failure = Some(failure.clone());
            }
        }
    }
}

/// The message for an export without an answer since `begun`.
fn silent(place: &str, begun: Instant) -> String {
    format!(
        "failed to send metrics to {place}: no answer in {:.1} s",
        begun.elapsed().as_secs_f64()
    )
}
