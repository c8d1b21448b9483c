//! Runs fio, the reference for block I/O, if it is installed.

use anyhow::{Context, ensure};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How a file is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pattern {
    /// At random offsets in the file; otherwise sequentially.
    pub(crate) random: bool,
    /// Of one read.
    pub(crate) block_bytes: usize,
    /// Reads in flight.
    pub(crate) depth: usize,
    /// For so long.
    pub(crate) time: Duration,
}

/// Its version, or why it does not run.
pub(crate) fn version() -> anyhow::Result<String> {
    let output = Command::new("fio").arg("--version").output().context("it does not run")?;
    ensure!(output.status.success(), "fio --version fails");
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Reads a file as the pattern says; MB a second.
pub(crate) fn read(path: &Path, pattern: Pattern, registered: bool) -> anyhow::Result<f64> {
    let rw = if pattern.random { "randread" } else { "read" };
    let output = Command::new("fio")
        .args(["--name=peer", "--output-format=json", "--readonly", "--direct=1", "--thread"])
        .args(["--ioengine=io_uring", "--time_based", "--norandommap", "--group_reporting"])
        // Leaves the page cache unchanged for the next readers.
        .arg("--invalidate=0")
        .arg(format!("--filename={}", path.display()))
        .arg(format!("--rw={rw}"))
        .arg(format!("--bs={}", pattern.block_bytes))
        .arg(format!("--iodepth={}", pattern.depth))
        .arg(format!("--runtime={}ms", pattern.time.as_millis()))
        .arg(format!("--fixedbufs={}", u8::from(registered)))
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "fio fails: {said}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let bytes = result["jobs"][0]["read"]["bw_bytes"].as_f64();
    Ok(bytes.context("fio's result has no jobs[0].read.bw_bytes")? / 1e6)
}
