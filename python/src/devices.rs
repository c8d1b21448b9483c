//! The command lines of emulated devices, and the addresses of running ones.

use crate::errors;
use crate::exceptions::ProblemText;
use meetpoint_diagnose::Surface;
use meetpoint_link::{
    CPU_RATIO_MIN, Emulation, Fault, FaultSyntax, LATENCY_NS_MAX, ServeCommand, Targets,
    resolve_devices,
};
use meetpoint_python_macros::guarded;
use pyo3::prelude::*;
use std::ffi::OsString;

/// Settings of an emulated device, of the right types. Latency is in nanoseconds.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
struct Settings {
    cpu_ratio: Option<f64>,
    read_bandwidth: Option<u64>,
    write_bandwidth: Option<u64>,
    latency_ns: Option<u64>,
    core: Option<u32>,
    allow_shared: bool,
    faults: Vec<String>,
}

/// The devices that a text names. See `_native.pyi`.
#[guarded]
#[pyfunction]
pub(crate) fn device_addresses(
    py: Python<'_>,
    argument: &str,
    text: &str,
) -> PyResult<Vec<String>> {
    let found = py.detach(|| resolve_devices(text)).map_err(|error| {
        let message = format!("{argument} is {text:?}: {error}");
        errors::plain(py, "SettingError", (message, error.remedy().spelled(Surface::Python)))
    })?;
    Ok(found.iter().map(ToString::to_string).collect())
}

/// The arguments that start an emulated device. See `_native.pyi`.
#[guarded]
#[pyfunction]
pub(crate) fn serve_arguments(
    py: Python<'_>,
    settings: Bound<'_, PyAny>,
) -> PyResult<Vec<OsString>> {
    let settings: Settings = settings.extract()?;
    let refused = |said: ProblemText| errors::plain(py, "SettingError", said);
    let targets = Targets {
        cpu_ratio: settings.cpu_ratio,
        read_bytes_per_second: settings.read_bandwidth,
        write_bytes_per_second: settings.write_bandwidth,
        latency_ns: settings.latency_ns,
        core: settings.core,
    };
    let allow_shared = settings.allow_shared;
    let emulation = Emulation { targets, allow_shared, memory_bytes_max: None };
    emulation.check().map_err(|error| refused(ProblemText::of(&error)))?;
    let fault = |text: &String| {
        text.parse::<Fault>().map_err(|error| {
            let message = format!("faults holds {text:?}: {}", error.problem);
            refused((message, FaultSyntax::KNOWN).into())
        })
    };
    let faults = settings.faults.iter().map(fault).collect::<PyResult<_>>()?;
    Ok(ServeCommand { emulation, faults, engine: None }.arguments())
}

/// The smallest share of a core, and the longest latency in seconds, that can be emulated.
#[guarded]
#[pyfunction]
pub(crate) fn emulation_limits() -> (f64, f64) {
    (CPU_RATIO_MIN, LATENCY_NS_MAX as f64 / 1e9)
}
