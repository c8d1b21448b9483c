//! The counters as text that Prometheus scrapes (OpenMetrics 1.0).

use crate::{CompletedEpoch, ConsumedBatch, wait_buckets};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::sync::atomic::AtomicU64;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Prepared {
    source: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DamageAction {
    action: &'static str,
}

/// The counters of one loader.
#[derive(Debug)]
pub struct Prometheus {
    registry: Registry,
    batches: Family<Prepared, Counter>,
    samples: Counter,
    bytes: Counter,
    damaged: Family<DamageAction, Counter>,
    epochs: Counter,
    revoked: Counter,
    stalls: Counter,
    wait: Histogram,
    host_cpu: Counter<f64, AtomicU64>,
    device_busy: Counter<f64, AtomicU64>,
}

impl Default for Prometheus {
    fn default() -> Self {
        Self::new()
    }
}

impl Prometheus {
    /// All counters at 0.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("meetpoint");
        let metrics = Self {
            registry: Registry::default(),
            batches: Family::default(),
            samples: Counter::default(),
            bytes: Counter::default(),
            damaged: Family::default(),
            epochs: Counter::default(),
            revoked: Counter::default(),
            stalls: Counter::default(),
            wait: Histogram::new(wait_buckets()),
            host_cpu: Counter::default(),
            device_busy: Counter::default(),
        };
        let batches = "Batches delivered, by who prepared them";
        registry.register("batches", batches, metrics.batches.clone());
        registry.register("samples", "Samples handed out", metrics.samples.clone());
        let bytes = "Bytes of the tensors delivered";
        registry.register_with_unit("handed_out", bytes, Unit::Bytes, metrics.bytes.clone());
        let damaged = "Damaged samples, by action";
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

    /// Counts a batch that was passed to the consumer.
    pub fn batch(&self, consumed: &ConsumedBatch) {
        self.batches.get_or_create(&Prepared { source: consumed.source }).inc();
        self.samples.inc_by(consumed.samples);
        self.bytes.inc_by(consumed.bytes);
        for (action, samples) in consumed.damaged() {
            self.damaged.get_or_create(&DamageAction { action }).inc_by(samples);
        }
        self.wait.observe(consumed.waited.as_secs_f64());
    }

    /// Counts a completed epoch.
    pub fn epoch(&self, ended: &CompletedEpoch) {
        self.epochs.inc();
        self.revoked.inc_by(ended.revoked);
        self.stalls.inc_by(ended.stalls);
        self.host_cpu.inc_by(ended.host_cpu_seconds);
        self.device_busy.inc_by(ended.device_busy_seconds);
    }

    /// The counters in the OpenMetrics format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a string takes any text");
        text
    }
}
