//! Samples per second over the course of the epoch, a line per strategy.

use super::{Anchor, Epoch, Picture, Run, Scale, Svg, WIDTH, class_of_run, longest, plain, shown};

const LEFT: f64 = 60.0;
const RIGHT: f64 = WIDTH - 24.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 250.0;
/// Windows over the longest epoch; fewer where batches are few, so that each holds several.
const WINDOWS_MAX: usize = 40;
const BATCHES_PER_WINDOW: usize = 5;

/// Draws the shown epoch of every run.
pub fn throughput(runs: &[Run]) -> Picture {
    let mut svg = Svg::new(WIDTH, BOTTOM + 44.0);
    let lines: Vec<Vec<(f64, f64)>> =
        runs.iter().map(|run| shown(run).map(rates).unwrap_or_default()).collect();
    let highest = lines.iter().flatten().map(|point| point.1).fold(0.0, f64::max);
    let across = Scale::new(longest(runs), LEFT, RIGHT);
    let up = Scale::new(highest * 1.08, BOTTOM, TOP);
    super::time_axis(&mut svg, &across, TOP, BOTTOM, "seconds since the epoch began");
    for tick in up.ticks(5) {
        svg.line("grid", (LEFT, up.at(tick)), (RIGHT, up.at(tick)));
        svg.text("tick", Anchor::End, LEFT - 6.0, up.at(tick) + 4.0, &plain(tick));
    }
    let entries: Vec<(String, String)> = runs
        .iter()
        .enumerate()
        .map(|(place, run)| (class_of_run(place), run.strategy.clone()))
        .collect();
    super::legend(&mut svg, &entries, LEFT, 14.0);
    svg.text("axis", Anchor::End, RIGHT, 14.0, "samples per second");
    for (place, line) in lines.iter().enumerate() {
        let points: Vec<(f64, f64)> =
            line.iter().map(|(time, rate)| (across.at(*time), up.at(*rate))).collect();
        svg.path(&format!("curve {}", class_of_run(place)), &points);
    }
    svg.finish("Throughput over time, per strategy")
}

/// (middle of the window, samples per second) for every window of an epoch.
fn rates(epoch: &Epoch) -> Vec<(f64, f64)> {
    let batches = epoch.batches.len();
    if batches == 0 || epoch.seconds <= 0.0 {
        return Vec::new();
    }
    let windows = (batches / BATCHES_PER_WINDOW).clamp(1, WINDOWS_MAX);
    let width = epoch.seconds / windows as f64;
    let per_batch = epoch.samples as f64 / batches as f64;
    let mut samples = vec![0.0; windows];
    for batch in &epoch.batches {
        spread(&mut samples, width, batch.consume, batch.step_end, per_batch);
    }
    let middles = (0..windows).map(|window| (window as f64 + 0.5) * width);
    middles.zip(samples).map(|(time, count)| (time, count / width)).collect()
}

/// Shares a batch among the windows that its step covers, so that windows narrower than a step do
/// not make the line jump between nothing and twice the rate.
fn spread(samples: &mut [f64], width: f64, start: f64, end: f64, count: f64) {
    let last = samples.len() - 1;
    let window_of = |time: f64| ((time / width).max(0.0) as usize).min(last);
    let (first, final_window) = (window_of(start), window_of(end));
    if end - start <= 0.0 || first == final_window {
        samples[final_window] += count;
        return;
    }
    for (window, sum) in samples.iter_mut().enumerate().take(final_window + 1).skip(first) {
        let from = start.max(window as f64 * width);
        let to = if window == final_window { end } else { (window + 1) as f64 * width };
        *sum += count * (to - from) / (end - start);
    }
}

#[cfg(test)]
mod tests {
    use super::{rates, spread};
    use crate::made_up;

    #[test]
    fn every_sample_is_in_one_window() {
        let report = made_up::report(333);
        for run in &report.runs {
            let epoch = &run.epochs[0];
            let points = rates(epoch);
            let width = epoch.seconds / points.len() as f64;
            let sum: f64 = points.iter().map(|point| point.1 * width).sum();
            assert!((sum / epoch.samples as f64 - 1.0).abs() < 1e-9, "{sum}");
        }
    }

    #[test]
    fn a_step_over_three_windows_is_shared_by_time() {
        let mut samples = vec![0.0; 4];
        spread(&mut samples, 1.0, 0.5, 2.5, 8.0);
        assert_eq!(samples, [2.0, 4.0, 2.0, 0.0]);
    }
}
