//! The tables of a report, as rows of text; drawn for a terminal here and for a page in `html`.

use super::{
    Device, EmulatedCore, Epoch, INVALID, Level, Report, Run, SpeedLimit, Uneven, VERIFICATION,
    Verdict, because,
};
use crate::grid::{Grid, Style, unknown};
use crate::units::{self, bytes, rate, seconds, signed_percent, significant};
use meetpoint_diagnose::{Setting, Surface};
use meetpoint_host::explain::Explanation;
use meetpoint_host::stats::{GpuUse, TuningUse};

/// Text in place of a time or a verdict of a failed run.
const FAILED: &str = "FAILED";

/// Strategies side by side: times, and batches by source.
pub fn comparison(report: &Report) -> Grid {
    let head = [
        "strategy",
        "time",
        "× host-only",
        "samples/s",
        "host batches",
        "device batches",
        "predicted",
        "error",
    ];
    let mut grid = Grid::new(&head, 1..head.len());
    for run in &report.runs {
        let totals = &run.totals;
        grid.rows.push(vec![
            run.strategy.clone(),
            seconds(totals.seconds),
            run.speed_up(report).map_or_else(unknown, |ratio| format!("{ratio:.2}")),
            significant(totals.samples_per_second),
            totals.host_batches.to_string(),
            totals.device_batches.to_string(),
            run.prediction.seconds.map_or_else(unknown, seconds),
            run.prediction.error_ratio.map_or_else(unknown, signed_percent),
        ]);
    }
    for failure in report.failures.iter().filter(|failure| failure.what != VERIFICATION) {
        let rest = std::iter::repeat_with(unknown).take(grid.head.len() - 2);
        let row = [failure.what.clone(), FAILED.to_owned()].into_iter().chain(rest);
        grid.rows.push(row.collect());
    }
    grid
}

/// Strategies side by side: resources that they used.
pub fn usage(report: &Report) -> Grid {
    let head = [
        "strategy",
        "host core-s",
        "peak memory",
        "host read",
        "host wrote",
        "device core-s",
        "device read",
        "device wrote",
    ];
    let mut grid = Grid::new(&head, 1..head.len());
    for run in &report.runs {
        let totals = &run.totals;
        let core_seconds: f64 = run.devices.iter().map(|device| device.core_seconds).sum();
        grid.rows.push(vec![
            run.strategy.clone(),
            significant(totals.host_core_seconds),
            bytes(totals.host_peak_memory_bytes),
            bytes(totals.host_bytes_read),
            bytes(totals.host_bytes_written),
            if run.devices.is_empty() { unknown() } else { significant(core_seconds) },
            bytes(totals.device_bytes_read),
            bytes(totals.device_bytes_written),
        ]);
    }
    grid
}

/// The figures of each device, a row for each strategy and device; no rows with a single device.
pub fn devices(report: &Report) -> Grid {
    let head = [
        "strategy",
        "device",
        "batches",
        "t_s",
        "busy",
        "read",
        "wrote",
        "back to host",
        "stalls",
        "state",
    ];
    let mut grid = Grid::new(&head, 2..9);
    for run in report.runs.iter().filter(|run| run.devices.len() > 1) {
        for device in &run.devices {
            grid.rows.push(vec![
                run.strategy.clone(),
                device.device.to_string(),
                device.batches.to_string(),
                device.t_s_seconds.map_or_else(unknown, seconds),
                seconds(device.busy_seconds),
                bytes(device.bytes_read),
                bytes(device.bytes_written),
                device.revoked.to_string(),
                device.stalls.to_string(),
                if device.is_lost { "lost" } else { "available" }.to_owned(),
            ]);
        }
    }
    grid
}

/// The figures of each rank, a row for each strategy and rank; no rows with a single rank.
pub fn ranks(report: &Report) -> Grid {
    let head = [
        "strategy",
        "rank",
        "steps",
        "host batches",
        "device batches",
        "mean wait",
        "padded samples",
    ];
    let mut grid = Grid::new(&head, 2..head.len());
    for run in &report.runs {
        for rank in &run.ranks {
            grid.rows.push(vec![
                run.strategy.clone(),
                rank.rank.to_string(),
                rank.steps.to_string(),
                rank.host_batches.to_string(),
                rank.device_batches.to_string(),
                seconds(rank.wait_mean_seconds),
                rank.padded_samples.to_string(),
            ]);
        }
    }
    grid
}

/// Batches of a row that a table names.
const NAMED_MAX: usize = 12;

/// Batches that were repeated or omitted, a row for each strategy, kind and reason.
pub fn uneven(report: &Report) -> Grid {
    let head = ["strategy", "batches", "reason", "epochs", "numbers"];
    let mut grid = Grid::new(&head, 3..4);
    for run in &report.runs {
        let mut rows: Vec<(&Uneven, u64)> = Vec::new();
        for row in &run.uneven {
            let same = |(other, _): &&mut (&Uneven, u64)| {
                (other.kind, other.reason, &other.batches) == (row.kind, row.reason, &row.batches)
            };
            match rows.iter_mut().find(same) {
                Some((_, epochs)) => *epochs += 1,
                None => rows.push((row, 1)),
            }
        }
        for (row, epochs) in rows {
            let mut numbers: Vec<String> =
                row.batches.iter().take(NAMED_MAX).map(u64::to_string).collect();
            if row.batches.len() > NAMED_MAX {
                numbers.push("…".to_owned());
            }
            grid.rows.push(vec![
                run.strategy.clone(),
                row.kind.to_string(),
                row.reason.to_string(),
                epochs.to_string(),
                if numbers.is_empty() { unknown() } else { numbers.join(", ") },
            ]);
        }
    }
    grid
}

/// Learned times and decisions of the scheduler, a row for each strategy and epoch.
pub fn decisions(report: &Report) -> Grid {
    let head = ["strategy", "epoch", "t_c", "t_g", "t_s", "record", "decided"];
    let mut grid = Grid::new(&head, 2..5);
    for run in &report.runs {
        for epoch in &run.epochs {
            let time = |value: Option<f64>| value.map_or_else(unknown, seconds);
            let learned = &epoch.learned;
            let t_s: Vec<String> = learned.t_s_seconds.iter().map(|&value| time(value)).collect();
            grid.rows.push(vec![
                run.strategy.clone(),
                epoch.epoch.to_string(),
                time(learned.t_c_seconds),
                time(learned.t_g_seconds),
                if t_s.is_empty() { unknown() } else { t_s.join(", ") },
                epoch.record.clone().unwrap_or_else(unknown),
                decided(epoch),
            ]);
        }
    }
    grid
}

/// Decisions for an epoch besides its order: the choice of `auto`, batches prepared ahead and
/// reused.
fn decided(epoch: &Epoch) -> String {
    let count = |batches: u32, what: &str| {
        (batches > 0).then(|| format!("{} {what}", units::count(batches.into(), "batch")))
    };
    let displacement = epoch.displacement.map(|moved| {
        let (mean, most) = (moved.mean_batches, moved.max_batches);
        format!("batches moved by {mean:.1} on average and {most} at most")
    });
    let parts = [
        epoch.picked.as_ref().map(ToString::to_string),
        count(epoch.ahead_batches, "prepared before it began"),
        count(epoch.reused_batches, "kept from before"),
        displacement,
        epoch.tuning.as_ref().map(tuned),
        epoch.gpu.as_ref().map(on_gpu),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// The numbers that a tuner ended an epoch with.
fn tuned(tuning: &TuningUse) -> String {
    let workers = units::count(tuning.end.workers.into(), "worker");
    format!(
        "tuned to {workers} and {} batches ahead ({} of {} changes kept)",
        tuning.end.ahead, tuning.kept, tuning.tried
    )
}

/// What a GPU prepared in an epoch.
fn on_gpu(gpu: &GpuUse) -> String {
    match &gpu.unused_because {
        Some(reason) => format!("GPU not used: {reason}"),
        None => format!(
            "GPU prepared {} of {}, share {:.2}",
            gpu.prepared,
            units::count(gpu.samples(), "sample"),
            gpu.share
        ),
    }
}

/// Verdicts, a row per strategy and a column per level.
pub fn levels(report: &Report) -> Grid {
    let mut names: Vec<&str> = report.runs.iter().flat_map(|run| &run.levels).map(name).collect();
    names.sort_unstable();
    names.dedup();
    let head: Vec<&str> = ["strategy"].into_iter().chain(names.iter().copied()).collect();
    let mut grid = Grid::new(&head, 0..0);
    for run in &report.runs {
        let verdict_of = |wanted: &&str| {
            let level = run.levels.iter().find(|level| level.level == **wanted);
            level.map_or_else(unknown, |level| verdict(level.verdict).to_owned())
        };
        let verdicts = names.iter().map(verdict_of);
        grid.rows.push([run.strategy.clone()].into_iter().chain(verdicts).collect());
    }
    grid
}

fn name(level: &Level) -> &str {
    &level.level
}

/// The findings of each verdict, a row for each strategy and level.
pub fn level_details(report: &Report) -> Grid {
    let mut grid = Grid::new(&["strategy", "level", "verdict", "how"], 4..4);
    for run in &report.runs {
        for level in &run.levels {
            grid.rows.push(vec![
                run.strategy.clone(),
                level.level.clone(),
                verdict(level.verdict).to_owned(),
                level.how(),
            ]);
        }
    }
    grid
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Verified => "verified",
        Verdict::Failed => FAILED,
        Verdict::NotChecked => "not checked",
        Verdict::NotClaimed => "not claimed",
    }
}

/// Levels of one run in a line: `C0 C1 C2 C6 verified; C4 not claimed`.
fn levels_in_a_line(run: &Run) -> String {
    let order = [Verdict::Failed, Verdict::Verified, Verdict::NotChecked, Verdict::NotClaimed];
    let parts: Vec<String> = order
        .into_iter()
        .filter_map(|wanted| {
            let names: Vec<&str> = run
                .levels
                .iter()
                .filter(|level| level.verdict == wanted)
                .map(|level| level.level.as_str())
                .collect();
            (!names.is_empty()).then(|| format!("{} {}", names.join(" "), verdict(wanted)))
        })
        .collect();
    parts.join("; ")
}

/// Measured profile and prediction, a row per strategy, from the last epoch.
pub fn profiles(report: &Report) -> Grid {
    let head = ["strategy", "t_c", "t_g", "t_s", "wait p50", "wait p99", "step p50", "form"];
    let mut grid = Grid::new(&head, 1..7);
    for run in &report.runs {
        let Some(epoch) = run.epochs.last() else { continue };
        let profile = epoch.profile;
        let time = |value: Option<f64>| value.map_or_else(unknown, seconds);
        grid.rows.push(vec![
            run.strategy.clone(),
            time(profile.t_c_seconds),
            time(profile.t_g_seconds),
            time(profile.t_s_seconds),
            seconds(epoch.wait.p50_seconds),
            seconds(epoch.wait.p99_seconds),
            seconds(epoch.step.p50_seconds),
            run.prediction.form.to_string(),
        ]);
    }
    grid
}

/// Target and achieved for every speed limit that was set.
pub fn speed_limits<'r>(report: &'r Report) -> Grid {
    let mut grid = Grid::new(&["strategy", "knob", "target", "achieved", "off", "verdict"], 2..5);
    for run in &report.runs {
        let of_device =
            |device: &'r Device| device.knobs.iter().map(move |limit| (device.device, limit));
        for (device, limit) in run.devices.iter().flat_map(of_device) {
            let off = signed_percent(limit.off_ratio());
            grid.rows.push(vec![
                run.strategy.clone(),
                match run.devices.len() {
                    1 => limit.name.clone(),
                    _ => format!("{} of device {device}", limit.name),
                },
                limit_value(limit, limit.target),
                limit_value(limit, limit.achieved),
                off.clone(),
                if limit.is_valid {
                    "within 5 %".to_owned()
                } else {
                    format!("INVALID: {off} off target{}", because(limit))
                },
            ]);
        }
    }
    grid
}

/// What disturbed the emulated cores, a row for each strategy and device.
pub fn emulated_cores(report: &Report) -> Grid {
    let names = ["strategy", "emulated core", "share"].into_iter().chain(EmulatedCore::COLUMNS);
    let head: Vec<&str> = names.collect();
    let mut grid = Grid::new(&head, 2..head.len());
    for run in &report.runs {
        for (device, core) in run.devices.iter().filter_map(|it| Some((it.device, it.core_use?))) {
            let share = core.cpu_seconds / core.available_seconds;
            let share = if share.is_finite() { format!("{share:.3}") } else { unknown() };
            let first = [run.strategy.clone(), format!("device {device}"), share];
            grid.rows.push(first.into_iter().chain(core.columns()).collect());
        }
    }
    grid
}

fn limit_value(limit: &SpeedLimit, value: f64) -> String {
    match limit.unit.as_str() {
        "bytes per second" => rate(value),
        "seconds" => seconds(value),
        _ => format!("{value:.3}"),
    }
}

/// The report for a terminal.
pub fn text(report: &Report, style: Style) -> String {
    let mut text = comparison(report).text(style);
    text.push_str(&usage(report).text(style));
    for grid in [devices(report), emulated_cores(report), ranks(report), uneven(report)] {
        if !grid.rows.is_empty() {
            text.push_str(&grid.text(style));
        }
    }
    for run in &report.runs {
        text.push_str(&format!("{}: {}\n", run.strategy, levels_in_a_line(run)));
        for level in run.failed_levels() {
            text.push_str(&format!("  {} FAILED: {}\n", level.level, level.how()));
        }
        for epoch in &run.epochs {
            for line in epoch_lines(run, epoch) {
                text.push_str(&format!("  {line}\n"));
            }
        }
        for line in explained(run) {
            text.push_str(&format!("  {line}\n"));
        }
        if let Some(plan) = &run.plan {
            text.push_str(&plan.grid().text(style));
            plan.sentences().iter().for_each(|line| text.push_str(&format!("  {line}\n")));
        }
        for line in run.invalid().into_iter().chain(run.event_lines()) {
            text.push_str(&format!("  {line}\n"));
        }
    }
    if report.runs.iter().any(|run| !run.invalid().is_empty()) {
        text.push_str(&format!("INVALID: {INVALID}\n"));
    }
    for failure in &report.failures {
        text.push_str(&format!("{} FAILED: {}\n", failure.what, failure.error));
        if let Some(remedy) = &failure.remedy {
            text.push_str(&format!("  remedy: {}\n", remedy.spelled(Surface::CommandLine)));
        }
    }
    text.push_str(&super::energy::tables::lines(report));
    text
}

/// What limited the run, except the ceilings of the stages, which report.json has.
fn explained(run: &Run) -> impl Iterator<Item = String> {
    run.explanation.iter().flat_map(Explanation::sentences)
}

/// What a terminal shows of one epoch: what was decided, and what replays it.
fn epoch_lines(run: &Run, epoch: &Epoch) -> Vec<String> {
    let which = match run.epochs.len() {
        1 => String::new(),
        _ => format!("epoch {}: ", epoch.epoch),
    };
    let decided = Some(decided(epoch)).filter(|decided| !decided.is_empty());
    // A job that moves batches cannot be replayed, so records are not useful.
    let moved = run.epochs.iter().any(|epoch| epoch.displacement.is_some());
    let record = epoch.record.as_ref().filter(|_| !moved);
    let record = record.map(|record| {
        format!("replay with {}", Setting::Replay.set_to(record, Surface::CommandLine))
    });
    [decided, record].into_iter().flatten().map(|line| format!("{which}{line}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{GpuUse, comparison, levels_in_a_line, speed_limits, text};
    use crate::grid::Style;
    use crate::made_up;
    use meetpoint_host::stats::{NotOffloaded, NotTaken};

    #[test]
    fn strategies_are_compared_with_host_only() {
        let grid = comparison(&made_up::report(100));
        let ratios: Vec<&str> = grid.rows.iter().map(|row| row[2].as_str()).collect();
        assert_eq!(ratios[0], "1.00");
        assert!(ratios[1].parse::<f64>().unwrap() > 1.2, "{ratios:?}");
        assert!(grid.rows.iter().all(|row| row.len() == grid.head.len()));
    }

    #[test]
    fn a_terminal_shows_levels_faults_and_what_is_invalid() {
        let text = text(&made_up::report(100), Style::Plain);
        assert!(text.contains("wrr: C0 C2 verified; C4 not claimed"));
        assert!(text.contains("INVALID: read-bandwidth is 8.0 % off target"));
        assert!(text.contains("its times do not count") && text.contains("host_cores"));
        let event = "at 1.20 s: the device was lost: its link broke; its process ended with \
                     signal: 9 (SIGKILL); the host continues alone";
        assert!(text.contains(event), "{text}");
        assert!(text.contains("modelled energy (not measured)"));
    }

    #[test]
    fn what_a_gpu_prepared_or_why_it_did_not_is_shown_for_each_epoch() {
        let mut report = made_up::report(4);
        let gpu = GpuUse {
            gpu: "GPU".into(),
            threads: 1,
            share: 0.5,
            prepared: 60,
            beyond_share: 64,
            not_taken: 4,
            not_taken_because: [(NotTaken::Progressive, 4)].into(),
            ..GpuUse::default()
        };
        report.runs[0].epochs[0].gpu = Some(gpu.clone());
        let shown = text(&report, Style::Plain);
        assert!(shown.contains("GPU prepared 60 of 128 samples, share 0.50"), "{shown}");
        assert!(gpu.to_string().contains("4 were left to the CPU (most: progressive JPEGs)"));
        let unused_because = Some(NotOffloaded::Cached);
        report.runs[0].epochs[0].gpu = Some(GpuUse { unused_because, ..gpu });
        let shown = text(&report, Style::Plain);
        assert!(shown.contains("GPU not used: samples come from the cache"), "{shown}");
    }

    #[test]
    fn a_strategy_that_failed_has_a_row_and_its_reason() {
        let mut report = made_up::report(4);
        report.failures.push(made_up::failure("device-only", "the device is in use"));
        let grid = comparison(&report);
        assert_eq!(grid.rows[3][..3], ["device-only", "FAILED", "–"]);
        assert_eq!(grid.rows[3].len(), grid.head.len());
        assert!(text(&report, Style::Plain).contains("device-only FAILED: the device is in use"));
    }

    #[test]
    fn a_failed_level_comes_first_in_its_line() {
        let mut report = made_up::report(4);
        report.runs[0].levels[1].verdict = super::Verdict::Failed;
        assert!(levels_in_a_line(&report.runs[0]).starts_with("C2 FAILED; "));
    }

    #[test]
    fn a_speed_limit_is_judged_by_its_distance_from_the_target() {
        let grid = speed_limits(&made_up::report(4));
        let verdicts: Vec<&str> = grid.rows.iter().map(|row| row[5].as_str()).collect();
        let invalid = "INVALID: +8.0 % off target";
        assert_eq!(verdicts, ["within 5 %", "within 5 %", "within 5 %", invalid]);
    }
}
