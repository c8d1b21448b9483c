//! The counters as OpenTelemetry's instruments, and how they are read.
//!
//! Names and units are chosen so that a collector that exports them to Prometheus gives them the
//! names that [`crate::Prometheus`] uses.

use crate::{CompletedEpoch, ConsumedBatch, wait_buckets};
use opentelemetry::metrics::{Counter, Histogram, MeterProvider};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::reader::MetricReader;
use opentelemetry_sdk::metrics::{
    InstrumentKind, ManualReader, Pipeline, SdkMeterProvider, Temporality,
};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The counters of one exporter.
#[derive(Debug)]
pub(super) struct Instruments {
    batches: Counter<u64>,
    samples: Counter<u64>,
    bytes: Counter<u64>,
    damaged: Counter<u64>,
    epochs: Counter<u64>,
    revoked: Counter<u64>,
    stalls: Counter<u64>,
    wait: Histogram<f64>,
    host_cpu: Counter<f64>,
    device_busy: Counter<f64>,
}

impl Instruments {
    /// Instruments at 0, and their reader.
    pub(super) fn new(resource: Resource, temporality: Temporality) -> (Self, Readout) {
        let reader = Arc::new(ManualReader::builder().with_temporality(temporality).build());
        let provider = SdkMeterProvider::builder()
            .with_resource(resource)
            .with_reader(Shared(Arc::clone(&reader)))
            .build();
        let scope = InstrumentationScope::builder("meetpoint")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build();
        let meter = provider.meter_with_scope(scope);
        let count = |name, unit, what| {
            meter.u64_counter(name).with_unit(unit).with_description(what).build()
        };
        let time =
            |name, what| meter.f64_counter(name).with_unit("s").with_description(what).build();
        let batches = "Batches delivered, by who prepared them";
        let damaged = "Damaged samples, by action";
        let revoked = "Batches taken back from devices, in epochs that ended";
        let stalls = "Times that a device was silent too long, in epochs that ended";
        let cpu = "CPU time of this process, all threads, in epochs that ended";
        let instruments = Self {
            batches: count("meetpoint.batches", "{batch}", batches),
            samples: count("meetpoint.samples", "{sample}", "Samples handed out"),
            bytes: count("meetpoint.handed_out", "By", "Bytes of the tensors delivered"),
            damaged: count("meetpoint.damaged_samples", "{sample}", damaged),
            epochs: count("meetpoint.epochs", "{epoch}", "Epochs that ended"),
            revoked: count("meetpoint.revoked_batches", "{batch}", revoked),
            stalls: count("meetpoint.device_stalls", "{stall}", stalls),
            wait: meter
                .f64_histogram("meetpoint.wait")
                .with_unit("s")
                .with_description("Time that the consumer waited for a batch")
                .with_boundaries(wait_buckets().collect())
                .build(),
            host_cpu: time("meetpoint.host_cpu", cpu),
            device_busy: time(
                "meetpoint.device_busy",
                "Time that devices had work, in epochs that ended",
            ),
        };
        (instruments, Readout { reader, _provider: provider })
    }

    pub(super) fn batch(&self, consumed: &ConsumedBatch) {
        self.batches.add(1, &[KeyValue::new("source", consumed.source)]);
        self.samples.add(consumed.samples, &[]);
        self.bytes.add(consumed.bytes, &[]);
        for (action, samples) in consumed.damaged() {
            self.damaged.add(samples, &[KeyValue::new("action", action)]);
        }
        self.wait.record(consumed.waited.as_secs_f64(), &[]);
    }

    pub(super) fn epoch(&self, ended: &CompletedEpoch) {
        self.epochs.add(1, &[]);
        self.revoked.add(ended.revoked, &[]);
        self.stalls.add(ended.stalls, &[]);
        self.host_cpu.add(ended.host_cpu_seconds, &[]);
        self.device_busy.add(ended.device_busy_seconds, &[]);
    }
}

/// Reads the instruments on request.
#[derive(Debug)]
pub(super) struct Readout {
    reader: Arc<ManualReader>,
    /// The instruments live as long as their provider.
    _provider: SdkMeterProvider,
}

impl Readout {
    /// Reads the current values.
    pub(super) fn read(&self, metrics: &mut ResourceMetrics) -> OTelSdkResult {
        self.reader.collect(metrics)
    }
}

/// A reader that the provider owns and that [`Readout`] calls as well.
#[derive(Debug)]
struct Shared(Arc<ManualReader>);

impl MetricReader for Shared {
    fn register_pipeline(&self, pipeline: Weak<Pipeline>) {
        self.0.register_pipeline(pipeline);
    }

    fn collect(&self, metrics: &mut ResourceMetrics) -> OTelSdkResult {
        self.0.collect(metrics)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn temporality(&self, kind: InstrumentKind) -> Temporality {
        self.0.temporality(kind)
    }
}
