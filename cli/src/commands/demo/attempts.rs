//! Repeats the demo with longer runs until the emulated device holds its speed.

use crate::surface::{Output, units};
use meetpoint_report::Report;
use std::time::Duration;

/// Minimum time for the host alone, so that the start and the end of a run matter little.
const HOST_TIME_WANTED: Duration = Duration::from_secs(2);
/// Most epochs of the first attempt.
const EPOCHS_AT_FIRST_MAX: u32 = 4;
/// Attempts before the times are reported as invalid; each has twice the epochs of the last.
const ATTEMPTS_MAX: u32 = 3;

/// Epochs of the first attempt, for batches that take the host `batch_time` each.
pub(super) fn epochs_for(batches: u32, batch_time: Duration) -> u32 {
    let epoch = batch_time.saturating_mul(batches.max(1)).max(Duration::from_nanos(1));
    let wanted = HOST_TIME_WANTED.as_nanos().div_ceil(epoch.as_nanos());
    u32::try_from(wanted).unwrap_or(u32::MAX).clamp(1, EPOCHS_AT_FIRST_MAX)
}

/// The report of the first run whose device met its speed limits, or of the last attempt. `run`
/// takes the number of epochs.
pub(super) fn until_valid(
    first_epochs: u32,
    output: Output,
    mut run: impl FnMut(u32) -> anyhow::Result<Report>,
) -> anyhow::Result<Report> {
    let mut epochs = first_epochs;
    let mut report = run(epochs)?;
    for _ in 1..ATTEMPTS_MAX {
        let Some(why) = report.runs.iter().flat_map(|run| run.invalid()).next() else { break };
        if !report.failed().is_empty() {
            break;
        }
        epochs *= 2;
        output.line(&format!("{why}; running again with {}", units::count(epochs.into(), "epoch")));
        report = run(epochs)?;
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::{epochs_for, until_valid};
    use crate::surface::Output;
    use meetpoint_report::{Report, SpeedLimit, made_up};
    use std::time::Duration;

    /// A report whose device was off its speed by this share.
    fn report(off: f64) -> Report {
        let mut report = made_up::report(1);
        for run in &mut report.runs {
            for limit in run.devices.iter_mut().flat_map(|device| &mut device.knobs) {
                let achieved = limit.target * (1.0 + off);
                *limit = SpeedLimit::new(&limit.name, &limit.unit, limit.target, achieved);
            }
        }
        report
    }

    #[test]
    fn short_epochs_are_repeated_and_long_ones_are_not() {
        let millis = Duration::from_millis;
        assert_eq!(epochs_for(100, millis(10)), 2);
        assert_eq!(epochs_for(100, millis(20)), 1);
        assert_eq!(epochs_for(100, millis(60)), 1);
        assert_eq!(epochs_for(2, millis(1)), 4);
        assert_eq!(epochs_for(0, Duration::ZERO), 4);
    }

    #[test]
    fn a_valid_run_is_the_only_one() {
        let mut asked = Vec::new();
        let run = |epochs| {
            asked.push(epochs);
            Ok(report(0.01))
        };
        until_valid(2, Output::new(true), run).unwrap();
        assert_eq!(asked, [2]);
    }

    #[test]
    fn an_invalid_run_is_repeated_with_twice_the_epochs_until_one_is_valid() {
        let mut asked = Vec::new();
        let run = |epochs| {
            asked.push(epochs);
            Ok(report(if asked.len() < 2 { 0.2 } else { 0.0 }))
        };
        assert!(until_valid(1, Output::new(true), run).unwrap().runs[0].invalid().is_empty());
        assert_eq!(asked, [1, 2]);
    }

    #[test]
    fn attempts_end_and_the_last_report_is_still_invalid() {
        let mut asked = Vec::new();
        let run = |epochs| {
            asked.push(epochs);
            Ok(report(0.2))
        };
        let report = until_valid(3, Output::new(true), run).unwrap();
        assert_eq!(asked, [3, 6, 12]);
        assert!(report.runs.iter().any(|run| !run.invalid().is_empty()));
    }
}
