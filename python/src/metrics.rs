//! What a loader counts as it goes, in the text format that Prometheus scrapes (OpenMetrics 1.0).

use meetpoint_host::Batch;
use meetpoint_host::stats::EpochStats;
use meetpoint_scheduler::Source;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Prepared {
    source: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Mended {
    action: &'static str,
}

/// The counters of one loader.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    batches: Family<Prepared, Counter>,
    samples: Counter,
    bytes: Counter,
    damaged: Family<Mended, Counter>,
    epochs: Counter,
    revoked: Counter,
    stalls: Counter,
    wait: Histogram,
    host_cpu: Counter<f64, AtomicU64>,
    device_busy: Counter<f64, AtomicU64>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("meetpoint");
        // From 100 microseconds to some 100 seconds.
        let wait = Histogram::new(exponential_buckets(1e-4, 4.0, 11));
        let metrics = Self {
            registry: Registry::default(),
            batches: Family::default(),
            samples: Counter::default(),
            bytes: Counter::default(),
            damaged: Family::default(),
            epochs: Counter::default(),
            revoked: Counter::default(),
            stalls: Counter::default(),
            wait,
            host_cpu: Counter::default(),
            device_busy: Counter::default(),
        };
        let batches = "Batches handed out, by who prepared them";
        registry.register("batches", batches, metrics.batches.clone());
        registry.register("samples", "Samples handed out", metrics.samples.clone());
        let bytes = "Bytes of the tensors handed out";
        registry.register_with_unit("handed_out", bytes, Unit::Bytes, metrics.bytes.clone());
        let damaged = "Damaged samples, by what was done about them";
        registry.register("damaged_samples", damaged, metrics.damaged.clone());
        registry.register("epochs", "Epochs that ended", metrics.epochs.clone());
        let revoked = "Batches taken back from devices, in epochs that ended";
        registry.register("revoked_batches", revoked, metrics.revoked.clone());
        let stalls = "Times that a device was silent too long, in epochs that ended";
        registry.register("device_stalls", stalls, metrics.stalls.clone());
        let wait = "Time that the consumer waited for a batch";
        registry.register_with_unit("wait", wait, Unit::Seconds, metrics.wait.clone());
        let cpu = "CPU time of this process, all threads, in epochs that ended";
        registry.register_with_unit("host_cpu", cpu, Unit::Seconds, metrics.host_cpu.clone());
        let busy = "Time that devices had work, in epochs that ended";
        let device_busy = metrics.device_busy.clone();
        registry.register_with_unit("device_busy", busy, Unit::Seconds, device_busy);
        Self { registry, ..metrics }
    }

    /// A batch was handed out, after the consumer waited for it.
    pub(crate) fn batch(&self, batch: &Batch, waited: Duration) {
        let source = match batch.source() {
            Source::Host => "host",
            Source::Device(_) => "device",
        };
        self.batches.get_or_create(&Prepared { source }).inc();
        self.samples.inc_by(batch.samples().len() as u64);
        self.bytes.inc_by(batch.bytes().len() as u64);
        for mended in batch.mended() {
            let action = if mended.replaced_by.is_some() { "replace" } else { "skip" };
            self.damaged.get_or_create(&Mended { action }).inc();
        }
        self.wait.observe(waited.as_secs_f64());
    }

    /// An epoch ended.
    pub(crate) fn epoch(&self, stats: &EpochStats) {
        self.epochs.inc();
        self.revoked.inc_by(stats.schedule.revoked.into());
        self.stalls.inc_by(stats.schedule.stalls.into());
        self.host_cpu.inc_by(stats.host_cpu_ns as f64 / 1e9);
        let busy: u64 = stats.devices.iter().map(|device| device.busy_ns).sum();
        self.device_busy.inc_by(busy as f64 / 1e9);
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a string takes any text");
        text
    }
}
