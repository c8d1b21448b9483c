//! Joules of an interval: measurements of this machine's meters, and separately the result of a
//! power model for the loader's work. The two are never added up.

use crate::errors;
use crate::exceptions::ProblemText;
use meetpoint_format::slot::slot_bytes;
use meetpoint_host::clock::{monotonic_ns, process_cpu_ns};
use meetpoint_host::energy::{Machine, Meters, Recorder};
use meetpoint_host::explain::GpuMeter;
use meetpoint_host::stats::EpochStats;
use meetpoint_sim::power::{Activity, DramTraffic, PowerModel, presets};
use meetpoint_storage::files::read_text;
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Sums over the epochs that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Totals {
    device_busy_ns: u64,
    steps_ns: u64,
    host_batches: u64,
    device_batches: u64,
    host_bytes_read: u64,
    samples: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, stats: &EpochStats) {
        self.device_busy_ns += stats.devices.iter().map(|device| device.busy_ns).sum::<u64>();
        let steps = stats.records.iter();
        self.steps_ns +=
            steps.map(|record| record.step_end_ns.saturating_sub(record.consume_ns)).sum::<u64>();
        self.host_batches += u64::from(stats.schedule.host_batches);
        self.device_batches += u64::from(stats.schedule.device_batches);
        self.host_bytes_read += stats.host_bytes_read;
        self.samples += stats.samples;
    }

    fn since(self, before: Self) -> Self {
        Self {
            device_busy_ns: self.device_busy_ns - before.device_busy_ns,
            steps_ns: self.steps_ns - before.steps_ns,
            host_batches: self.host_batches - before.host_batches,
            device_batches: self.device_batches - before.device_batches,
            host_bytes_read: self.host_bytes_read - before.host_bytes_read,
            samples: self.samples - before.samples,
        }
    }
}

/// The properties of a loader that the model needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene {
    pub(crate) devices: u32,
    /// Bytes of the tensors of a whole batch.
    pub(crate) batch_bytes: u64,
    pub(crate) spool_on_flash: bool,
    /// Whether an epoch is running, which is not in the totals.
    pub(crate) is_under_way: bool,
    pub(crate) totals: Totals,
}

/// An interval whose energy is measured. See `_native.pyi`.
#[pyclass(frozen, module = "meetpoint._native")]
pub(crate) struct Energy {
    begun: Mutex<Option<EnergyStart>>,
    model: PowerModel,
}

struct EnergyStart {
    recorder: Recorder,
    at_ns: u64,
    cpu_ns: u64,
    totals: Totals,
}

impl Energy {
    /// Begins; every meter has been read once when it returns.
    pub(crate) fn begin(py: Python<'_>, power: Option<&str>, totals: Totals) -> PyResult<Self> {
        let model = model(py, power)?;
        let begun = py.detach(|| {
            let recorder = Recorder::start(Meters::find(Machine::this()));
            EnergyStart { recorder, at_ns: monotonic_ns(), cpu_ns: process_cpu_ns(), totals }
        });
        Ok(Self { begun: Mutex::new(Some(begun)), model })
    }

    /// Ends; returns the measurements and the model's result as JSON, and the measurements of
    /// graphics boards.
    pub(crate) fn end(&self, py: Python<'_>, scene: &Scene) -> PyResult<(String, Vec<GpuMeter>)> {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(begun) = begun else {
            return Err(errors::plain(py, "ClosedError", "the interval has ended before"));
        };
        let said = py.detach(|| {
            let cpu_ns = process_cpu_ns().saturating_sub(begun.cpu_ns);
            let ns = monotonic_ns().saturating_sub(begun.at_ns);
            let (measurement, _) = begun.recorder.stop();
            let done = scene.totals.since(begun.totals);
            let measured = json!({
                "joules": measurement.sum_joules(),
                "seconds": measurement.seconds,
                "meters": measurement.meters.iter().map(|meter| json!({
                    "name": meter.meter,
                    "covers": meter.covers.to_string(),
                    "adds_up": meter.scope.adds_up(),
                    "joules": meter.joules,
                    "utilisation": meter.utilisation,
                    "failure": meter.failure.as_ref().map(ToString::to_string),
                })).collect::<Vec<Value>>(),
                "nothing_because": measurement.nothing_because.as_ref().map(ToString::to_string),
            });
            let said = json!({
                "seconds": ns as f64 / 1e9,
                "measured": measured,
                "modelled": self.modelled(scene, done, (ns, cpu_ns)),
            });
            (said.to_string(), GpuMeter::of(&measurement, done.samples))
        });
        Ok(said)
    }

    fn modelled(&self, scene: &Scene, done: Totals, (ns, cpu_ns): (u64, u64)) -> Value {
        let slots = done.device_batches.saturating_mul(slot_bytes(scene.batch_bytes));
        let slots_read = if scene.spool_on_flash { slots } else { 0 };
        let encoded = done.host_bytes_read.saturating_sub(slots_read);
        let tensors = |batches: u64| batches.saturating_mul(scene.batch_bytes);
        let traffic = DramTraffic::host(encoded, tensors(done.host_batches))
            .and(DramTraffic::device(tensors(done.device_batches)));
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let activity = Activity {
            duration_s: ns as f64 / 1e9,
            host_cores: u32::try_from(cores).unwrap_or(u32::MAX),
            host_busy_core_s: cpu_ns as f64 / 1e9,
            dram_bytes: traffic.total_bytes(),
            devices: scene.devices,
            device_busy_s: done.device_busy_ns as f64 / 1e9,
            accelerators: 1,
            accelerator_busy_s: done.steps_ns as f64 / 1e9,
        };
        let energy = self.model.energy(&activity);
        let parts = energy
            .parts
            .iter()
            .map(|part| json!({"name": part.component.name(), "joules": part.joules()}));
        json!({
            "joules": energy.total_j,
            "source": energy.source,
            "unverified": energy.unverified,
            "components": parts.collect::<Vec<Value>>(),
            "leaves_out": scene.is_under_way.then_some(
                "the current epoch: for memory, devices and accelerator, only epochs that ended \
                 within the interval are included"
            ),
        })
    }
}

/// The model that a user selects: a preset or a file; without a name, the default preset.
fn model(py: Python<'_>, power: Option<&str>) -> PyResult<PowerModel> {
    let refused = |said: ProblemText| errors::plain(py, "SettingError", said);
    let Some(power) = power else { return Ok(PowerModel::bundled()) };
    let is_preset = presets().iter().any(|preset| preset.name == power);
    if is_preset || !power.contains(['/', '.']) {
        return PowerModel::preset(power).map_err(|error| refused(ProblemText::of(&error)));
    }
    let text = read_text(Path::new(power)).map_err(|error| {
        refused(format!("failed to read the power file {power}: {error}").into())
    })?;
    PowerModel::parse(&text, power).map_err(|error| refused(ProblemText::of(&error)))
}
