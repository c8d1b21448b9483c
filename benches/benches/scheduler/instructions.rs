//! Instructions of a call, counted by callgrind: they say what the clock of a busy machine cannot.
//!
//! The bench starts itself under valgrind with epochs of two lengths; the difference between both
//! counts, over the difference in calls, leaves out starting up.

use anyhow::{Context, ensure};
use std::process::Command;

/// Option by which the bench works through one epoch, prints its calls and ends.
pub(crate) const EPOCH: &str = "epoch";
/// Option that says how many batches the epoch has.
pub(crate) const BATCHES: &str = "batches";

/// Whether valgrind can be started.
pub(crate) fn has_valgrind() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Instructions per call in an epoch of the kind `name`.
pub(crate) fn per_call(name: &str) -> anyhow::Result<f64> {
    let (few_calls, few) = count(name, 2_000)?;
    let (many_calls, many) = count(name, 12_000)?;
    ensure!(many_calls > few_calls && many > few, "{name}: longer epochs did not cost more");
    Ok((many - few) as f64 / (many_calls - few_calls) as f64)
}

/// Calls and instructions of one epoch, starting up included.
fn count(name: &str, batches: u32) -> anyhow::Result<(u64, u64)> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().context("the bench does not know its own file")?)
        .args([format!("--{EPOCH}"), name.to_owned()])
        .args([format!("--{BATCHES}"), batches.to_string()])
        .output()
        .context("failed to start valgrind")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "valgrind failed: {said}");
    let counted = said.lines().find_map(|line| line.split_once("Collected :"));
    let (_, counted) = counted.with_context(|| format!("valgrind gave no count: {said}"))?;
    let calls = String::from_utf8_lossy(&output.stdout).trim().parse();
    Ok((calls.context("the epoch printed no number of calls")?, counted.trim().parse()?))
}
