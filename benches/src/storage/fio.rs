//! Runs fio, the yardstick of block I/O, where it is installed.

use super::Load;
use anyhow::{Context, ensure};
use std::path::Path;
use std::process::Command;

/// Its version, or why it does not run.
pub(super) fn version() -> anyhow::Result<String> {
    let output = Command::new("fio").arg("--version").output().context("it does not run")?;
    ensure!(output.status.success(), "fio --version fails");
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Reads a file as the load says; MB a second.
pub(super) fn read(path: &Path, load: Load, registered: bool) -> anyhow::Result<f64> {
    let rw = if load.random { "randread" } else { "read" };
    let output = Command::new("fio")
        .args(["--name=peer", "--output-format=json", "--readonly", "--direct=1", "--thread"])
        .args(["--ioengine=io_uring", "--time_based", "--norandommap", "--group_reporting"])
        .arg(format!("--filename={}", path.display()))
        .arg(format!("--rw={rw}"))
        .arg(format!("--bs={}", load.block_bytes))
        .arg(format!("--iodepth={}", load.depth))
        .arg(format!("--runtime={}ms", load.time.as_millis()))
        .arg(format!("--fixedbufs={}", u8::from(registered)))
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "fio fails: {said}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let bytes = result["jobs"][0]["read"]["bw_bytes"].as_f64();
    Ok(bytes.context("fio's result has no jobs[0].read.bw_bytes")? / 1e6)
}
