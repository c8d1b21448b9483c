//! The conclusion of the demo in one sentence, and what to try next.

use meetpoint_report::{Report, Run};

/// The closing lines of a demo; `own_pictures` if it ran on the user's pictures.
pub(super) fn text(report: &Report, own_pictures: bool) -> String {
    let next = match own_pictures {
        false => "Next, on your own pictures: meetpoint demo --images FOLDER",
        true => {
            "Next, for training: meetpoint pack FOLDER photos.set, then meetpoint.Loader in Python"
        }
    };
    format!("\n{}\n{next}", shown(report))
}

fn shown(report: &Report) -> String {
    if report.runs.iter().any(|run| !run.invalid().is_empty()) {
        return "Every strategy delivered the same batches, but the emulated device did not hold \
                its speed, so the times above do not count: repeat on an idle machine."
            .to_owned();
    }
    let speed = |run: &Run| run.speed_up(report);
    let faster = report
        .runs
        .iter()
        .filter_map(|run| Some((run, speed(run)?)))
        .filter(|(_, speed)| *speed > 1.0)
        .max_by(|(_, one), (_, other)| one.total_cmp(other));
    match faster {
        Some((run, speed)) => format!(
            "Preparing batches from both ends, with an emulated device, was {speed:.2} times as \
             fast as the host alone ({}), and every strategy delivered the same batches.",
            run.strategy
        ),
        None => "Every strategy delivered the same batches, but none was faster than the host \
                 alone in this run."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::shown;
    use meetpoint_report::{SpeedLimit, made_up};

    /// The limit of a device that was this much faster than its target.
    fn achieving(limit: &SpeedLimit, times: f64) -> SpeedLimit {
        SpeedLimit::new(&limit.name, &limit.unit, limit.target, limit.target * times)
    }

    #[test]
    fn the_fastest_strategy_is_named_only_when_the_times_count() {
        let mut report = made_up::report(3);
        for run in &mut report.runs {
            run.totals.seconds = 2.0;
            for limit in run.devices.iter_mut().flat_map(|device| &mut device.knobs) {
                *limit = achieving(limit, 1.0);
            }
        }
        report.runs[0].strategy = "host-only".to_owned();
        assert!(!shown(&report).contains("times as fast"));
        report.runs[2].totals.seconds = 1.0;
        let said = shown(&report);
        let fastest = &report.runs[2].strategy;
        assert!(said.contains("2.00 times") && said.contains(fastest), "{said}");
        let device = report.runs.iter_mut().flat_map(|run| &mut run.devices).next();
        let limit = &mut device.expect("a device").knobs[0];
        *limit = achieving(limit, 2.0);
        assert!(!shown(&report).contains("times as fast"));
    }
}
