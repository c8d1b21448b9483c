//! Reads `gpu_decode` and `gpu_share`.

use super::JobError;
use super::table::Table;
use crate::gpu_decode::GpuDecode;
use meetpoint_prepare::gpu::{GpuIndex, OpenError, ShareChoice};
use toml::de::DeValue;

const SHARE: &str = "\"auto\" or a number from 0 to 1";

/// Reads the GPU of a job. A build without GPUs refuses it.
pub(super) fn read(table: &Table<'_>) -> Result<Option<GpuDecode>, JobError> {
    let share = share(table)?;
    let Some(gpu) = table.text("gpu_decode", GpuIndex::EXPECTED)? else {
        return match share {
            None => Ok(None),
            Some(_) => Err(table.missing("gpu_decode", GpuIndex::EXPECTED)),
        };
    };
    let gpu = gpu.parse().map_err(|_| table.wrong_at("gpu_decode", GpuIndex::EXPECTED))?;
    if cfg!(not(feature = "cuda")) {
        let problem = format!("`gpu_decode` is {gpu}, but {}", OpenError::NotBuilt);
        return Err(table.fault_at("gpu_decode", problem, OpenError::NOT_BUILT_REMEDY));
    }
    Ok(Some(GpuDecode { gpu, share: share.unwrap_or_default() }))
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
