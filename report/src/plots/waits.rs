//! How long the consumer waited for a batch: quantiles per strategy on a logarithmic axis.

use super::{Anchor, Picture, Run, Svg, WIDTH, class_of_run, shown};
use crate::units;

const LEFT: f64 = 110.0;
const RIGHT: f64 = WIDTH - 330.0;
const TOP: f64 = 34.0;
const ROW: f64 = 34.0;
/// Waits below this lie on the left edge: that fast is "did not wait".
const LEAST_SECONDS: f64 = 1e-6;

/// Draws p50, p90, p99 and the longest wait of the shown epoch of every run.
pub fn waits(runs: &[Run]) -> Picture {
    let bottom = TOP + ROW * runs.len() as f64;
    let mut svg = Svg::new(WIDTH, bottom + 44.0);
    let longest = runs
        .iter()
        .filter_map(shown)
        .map(|epoch| epoch.wait.max_seconds)
        .fold(LEAST_SECONDS * 10.0, f64::max);
    let decades = (longest / LEAST_SECONDS).log10().ceil();
    let at = |seconds: f64| {
        let share = (seconds.max(LEAST_SECONDS) / LEAST_SECONDS).log10() / decades;
        LEFT + (RIGHT - LEFT) * share.clamp(0.0, 1.0)
    };
    for decade in 0..=decades as i32 {
        let seconds = LEAST_SECONDS * 10_f64.powi(decade);
        svg.line("grid", (at(seconds), TOP), (at(seconds), bottom));
        let label = ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s", "100 s"]
            .get(decade as usize)
            .copied()
            .unwrap_or("longer");
        svg.text("tick", Anchor::Middle, at(seconds), bottom + 16.0, label);
    }
    svg.text("axis", Anchor::Start, LEFT, 14.0, "wait for a batch, logarithmic");
    svg.text("axis", Anchor::Start, RIGHT + 24.0, 14.0, "p50 · p90 · p99 · longest");
    for (place, run) in runs.iter().enumerate() {
        let Some(epoch) = shown(run) else { continue };
        let y = TOP + ROW * (place as f64 + 0.5);
        let class = class_of_run(place);
        let wait = epoch.wait;
        let points = [wait.p50_seconds, wait.p90_seconds, wait.p99_seconds, wait.max_seconds];
        svg.text("label", Anchor::End, LEFT - 10.0, y + 4.0, &run.strategy);
        svg.line("whisker", (at(points[0]), y), (at(points[3]), y));
        // Drawn from the rarest to the median, which must stay on top.
        for (point, radius) in points.iter().zip([6.0, 4.5, 3.5, 2.5]).rev() {
            svg.dot(&class, (at(*point), y), radius);
        }
        let values = points.map(units::seconds).join(" · ");
        svg.text("value", Anchor::Start, RIGHT + 24.0, y + 4.0, &values);
    }
    svg.finish("Wait time of the consumer, per strategy")
}
