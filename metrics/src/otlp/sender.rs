//! The thread that sends: after every interval, when it is asked to, and once more at the end.

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

/// What others are told of the thread.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) status: Status,
    /// The first failure, until somebody took it.
    pub(super) untold: Option<String>,
}

pub(super) fn lock(told: &Mutex<Told>) -> MutexGuard<'_, Told> {
    // Nothing is left half done by a panic while it is held.
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What sends, by this endpoint or that of the environment. It connects when it first sends.
pub(super) fn client(
    endpoint: Option<&str>,
    timeout: Duration,
    runtime: &Runtime,
) -> Result<MetricExporter, Error> {
    // The connection belongs to this event loop.
    let _entered = runtime.enter();
    let mut builder = MetricExporter::builder().with_tonic().with_timeout(timeout);
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    builder.build().map_err(|error| Error::Endpoint { reason: error.to_string() })
}

/// Whether exports are sums since the beginning or since the last one.
pub(super) fn temporality(client: &MetricExporter) -> Temporality {
    client.temporality()
}

/// The endpoint in words.
pub(super) fn place(
    endpoint: Option<&str>,
    environment: impl Fn(&str) -> Option<String>,
) -> String {
    let variables = ["OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
    let said = endpoint.map(str::to_owned).filter(|endpoint| !endpoint.is_empty());
    said.or_else(|| variables.into_iter().find_map(environment))
        .unwrap_or_else(|| "http://localhost:4317".to_owned())
}

/// What the thread has.
#[derive(Debug)]
pub(super) struct Sender {
    client: MetricExporter,
    readout: Readout,
    /// The collector, in words.
    place: String,
    told: Arc<Mutex<Told>>,
    interval: Duration,
    timeout: Duration,
    metrics: ResourceMetrics,
}

impl Sender {
    pub(super) fn new(
        client: MetricExporter,
        readout: Readout,
        place: String,
        told: Arc<Mutex<Told>>,
        interval: Duration,
        timeout: Duration,
    ) -> Self {
        let metrics = ResourceMetrics::default();
        Self { client, readout, place, told, interval, timeout, metrics }
    }

    /// What the thread does, until `stop` is gone.
    pub(super) fn serve(
        mut self,
        runtime: Runtime,
        mut flushes: UnboundedReceiver<Flush>,
        mut stop: oneshot::Receiver<()>,
    ) {
        runtime.block_on(async {
            let limit = self.until_stopped(&mut flushes, &mut stop).await;
            let sent = timeout_at(limit, self.send()).await;
            let sent = sent.unwrap_or_else(|_| Err(self.silent(CLOSE_LIMIT)));
            self.tell(&sent);
        });
        // A name that does not resolve would be waited for.
        runtime.shutdown_background();
    }

    /// Sends now and then; when the last export has to be over.
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
            let mut limit = Instant::now() + self.timeout;
            let mut stopped = None;
            let silent = self.silent(self.timeout);
            let sent = {
                let sending = self.send();
                tokio::pin!(sending);
                tokio::select! {
                    sent = &mut sending => sent,
                    () = sleep_until(limit) => Err(silent),
                    _ = &mut *stop => {
                        limit = limit.min(Instant::now() + CLOSE_LIMIT);
                        stopped = Some(limit);
                        timeout_at(limit, sending).await.unwrap_or(Err(silent))
                    }
                }
            };
            self.tell(&sent);
            if let Some(flush) = flush {
                // Whoever asked may have left.
                let _ = flush.send(sent.map(|_| ()));
            }
            if let Some(limit) = stopped {
                return limit;
            }
            due = Instant::now() + self.interval;
        }
    }

    /// One export; whether there was anything to send.
    async fn send(&mut self) -> Result<bool, String> {
        let failed = |error| format!("failed to send metrics to {}: {error}", self.place);
        self.readout.read(&mut self.metrics).map_err(failed)?;
        if self.metrics.scope_metrics().next().is_none() {
            return Ok(false);
        }
        self.client.export(&self.metrics).await.map_err(failed)?;
        Ok(true)
    }

    fn silent(&self, limit: Duration) -> String {
        let seconds = limit.as_secs_f64();
        format!("failed to send metrics to {}: no answer in {seconds} s", self.place)
    }

    fn tell(&self, sent: &Result<bool, String>) {
        let mut told = lock(&self.told);
        match sent {
            Ok(is_sent) => told.status.exports += u64::from(*is_sent),
            Err(failure) => {
                told.status.failures += 1;
                if told.status.failures == 1 {
                    told.untold = Some(failure.clone());
                }
                told.status.failure = Some(failure.clone());
            }
        }
    }
}
