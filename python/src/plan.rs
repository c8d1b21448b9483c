//! Plans: a job file that `meetpoint plan` wrote, as the arguments of a loader.

use crate::{errors, guarded, recipe, work};
use meetpoint_host::{DeviceKind, Error, JobFile, ShareChoice};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// The values of a plan as JSON, by the names of a loader's arguments. `dataset` and `recipe` (in
/// TOML) replace those of the plan; either is refused if the plan was made for another.
#[guarded]
#[pyfunction]
pub(crate) fn read_plan(
    py: Python<'_>,
    path: PathBuf,
    dataset: Option<Vec<PathBuf>>,
    recipe: Option<String>,
) -> PyResult<String> {
    let mut job = JobFile::load(&path).map_err(|error| errors::of_host(py, &error))?;
    if job.plan.is_none() {
        let message = format!("{} has no table [plan]", path.display());
        let remedy = "make a plan with meetpoint.plan()";
        return Err(errors::plain(py, "SettingError", (message, remedy)));
    }
    if let Some(recipe) = recipe {
        job.recipe = Arc::new(recipe::read(py, &recipe)?);
    }
    if let Some(dataset) = dataset {
        job.replace_dataset(dataset.into());
    }
    py.detach(|| job.check_plan()).map_err(|error: Error| errors::of_host(py, &error))?;
    let devices: Vec<_> = job
        .devices
        .iter()
        .map(|device| match &device.kind {
            DeviceKind::Connect { socket } => {
                serde_json::json!({ "socket": socket.display().to_string() })
            }
            DeviceKind::Remote(device) => {
                serde_json::json!({
                    "address": device.address.to_string(),
                    "ca": device.tls.as_ref().map(|files| &files.ca),
                    "cert": device.tls.as_ref().map(|files| &files.cert),
                    "key": device.tls.as_ref().map(|files| &files.key),
                    "crl": device.tls.as_ref().and_then(|files| files.crl.as_ref()),
                    "server_name": device.server_name,
                    "token_file": device.token_file,
                    "root": device.root,
                })
            }
            DeviceKind::Emulated(command) => {
                let targets = &command.emulation.targets;
                serde_json::json!({
                    "cpu_ratio": targets.cpu_ratio,
                    "read_bandwidth": targets.read_bytes_per_second,
                    "write_bandwidth": targets.write_bytes_per_second,
                    "latency": targets.latency_ns.map(|time| time as f64 / 1e9),
                    "core": targets.core,
                    "allow_shared": command.emulation.allow_shared,
                })
            }
        })
        .collect();
    let folders = job.dataset.as_slice().iter().map(|path| path.display().to_string());
    Ok(work::json(&serde_json::json!({
        "dataset": folders.collect::<Vec<_>>(),
        "recipe": job.recipe.to_toml(),
        "batch_size": job.batch_size,
        "sampler": job.sampler.name(),
        "seed": job.seed,
        "drop_last": job.drop_last,
        "strategy": job.strategy.as_str(),
        "workers": job.workers,
        "prefetch": job.prefetch,
        "tune": job.tune.as_str(),
        "small_samples": job.small_samples_bytes,
        "cache": job.cache.as_ref().map(|cache| cache.bytes),
        "cache_after": job.cache.as_ref().and_then(|cache| cache.operations),
        "gpu_decode": job.gpu_decode.map(|decode| decode.gpu.to_string()),
        "gpu_share": match job.gpu_decode.map(|decode| decode.share) {
            None => serde_json::Value::Null,
            Some(ShareChoice::Measured) => serde_json::json!("auto"),
            Some(ShareChoice::Fixed(share)) => serde_json::json!(share),
        },
        "gpu_memory": job.gpu_decode.and_then(|decode| decode.memory_bytes),
        "devices": devices,
    })))
}
