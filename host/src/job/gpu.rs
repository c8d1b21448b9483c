//! Reads `gpu_decode`, `gpu_share` and `gpu_memory`.

use super::JobError;
use super::table::Table;
use super::values::BYTES;
use crate::gpu_decode::GpuDecode;
use meetpoint_diagnose::Remedy;
use meetpoint_format::units::{parse_bytes, show_bytes};
use meetpoint_prepare::gpu::{GpuIndex, GpuMemory, OpenError, ShareChoice};
use toml::de::DeValue;

/// The text that leaves everything to the CPU.
const NONE: &str = "none";
const SHARE: &str = "\"auto\" or a number from 0 to 1";

/// Reads the GPU of a job. A build without GPUs refuses it.
pub(super) fn read(table: &Table<'_>) -> Result<Option<GpuDecode>, JobError> {
    let expected = format!("\"{NONE}\", {}", GpuIndex::EXPECTED);
    let gpu = table.text("gpu_decode", &expected)?;
    let Some(gpu) = gpu.filter(|gpu| *gpu != NONE) else {
        return match ["gpu_share", "gpu_memory"].into_iter().find(|key| table.value(key).is_some())
        {
            None => Ok(None),
            Some(key) => {
                let problem = format!("`{key}` is set, but `gpu_decode` names no GPU");
                let remedy = format!("set gpu_decode = \"cuda:0\", or leave `{key}` out");
                Err(table.fault_at(key, problem, remedy))
            }
        };
    };
    let gpu = gpu.parse().map_err(|_| table.wrong_at("gpu_decode", expected))?;
    if cfg!(not(feature = "cuda")) {
        let problem = format!("`gpu_decode` is {gpu}, but {}", OpenError::NotBuilt);
        let remedy = Remedy::from(OpenError::NOT_BUILT_REMEDY).or("leave `gpu_decode` out");
        return Err(table.fault_at("gpu_decode", problem, remedy));
    }
    let share = share(table)?.unwrap_or_default();
    let memory_bytes = table.quantity("gpu_memory", parse_bytes, BYTES)?;
    if memory_bytes.is_some_and(|bytes| bytes < GpuMemory::BYTES_MIN) {
        let least = show_bytes(GpuMemory::BYTES_MIN);
        let problem = format!("`gpu_memory` is less than {least}");
        return Err(table.fault_at("gpu_memory", problem, format!("set it to {least} or more")));
    }
    Ok(Some(GpuDecode { gpu, share, memory_bytes }))
}

fn share(table: &Table<'_>) -> Result<Option<ShareChoice>, JobError> {
    let Some(value) = table.value("gpu_share") else { return Ok(None) };
    match value.get_ref() {
        DeValue::String(text) if text == "auto" => Ok(Some(ShareChoice::Measured)),
        DeValue::Integer(_) | DeValue::Float(_) => {
            let share = table.number("gpu_share", 0.0..=1.0);
            Ok(share.map_err(|_| table.wrong_at("gpu_share", SHARE))?.map(ShareChoice::Fixed))
        }
        DeValue::String(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => Err(table.wrong_at("gpu_share", SHARE)),
    }
}
