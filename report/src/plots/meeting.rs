//! Shows where both ends met: each batch at its index and the time at which it was consumed.

use super::{Anchor, Batch, Picture, Run, Scale, Svg, WIDTH, class_of, longest, plain, shown};

const PANEL_HEIGHT: f64 = 240.0;
const LEFT: f64 = 44.0;
const TOP: f64 = 44.0;
const COLUMNS: usize = 3;
/// More batches than this are thinned out evenly.
const DOTS_MAX: usize = 1200;
/// More stems than this would merge into a solid area.
const STEMS_MAX: usize = 80;

/// One panel per strategy, all on one time scale.
pub fn meeting(runs: &[Run]) -> Picture {
    let columns = runs.len().clamp(1, COLUMNS);
    let rows = runs.len().div_ceil(columns);
    let panel = WIDTH / columns as f64;
    let mut svg = Svg::new(WIDTH, TOP + rows as f64 * (PANEL_HEIGHT + 30.0));
    let entries = [
        ("host", "consumed, prepared by the host"),
        ("device", "consumed, prepared by the device"),
        ("stem", "ready and waiting"),
    ];
    let entries = entries.map(|(class, name)| (class.to_owned(), name.to_owned()));
    super::legend(&mut svg, &entries, LEFT, 14.0);
    for (place, run) in runs.iter().enumerate() {
        let x = (place % columns) as f64 * panel;
        let y = TOP + (place / columns) as f64 * (PANEL_HEIGHT + 30.0);
        draw(&mut svg, run, longest(runs), (x, y), panel);
    }
    svg.finish("Where both ends met: time of consumption by batch index, per strategy")
}

fn draw(svg: &mut Svg, run: &Run, seconds: f64, corner: (f64, f64), panel: f64) {
    let Some(epoch) = shown(run) else { return };
    let (left, right) = (corner.0 + LEFT, corner.0 + panel - 14.0);
    let (top, bottom) = (corner.1 + 14.0, corner.1 + PANEL_HEIGHT - 34.0);
    let across = Scale::new((epoch.batches.len().max(2) - 1) as f64, left, right);
    let up = Scale::new(seconds, bottom, top);
    svg.text("title", Anchor::Start, left, corner.1, &run.strategy);
    for tick in up.ticks(4) {
        svg.line("grid", (left, up.at(tick)), (right, up.at(tick)));
        svg.text("tick", Anchor::End, left - 6.0, up.at(tick) + 4.0, &plain(tick));
    }
    let whole = across.ticks(5).into_iter().filter(|tick| tick.fract() == 0.0);
    for tick in whole {
        svg.text("tick", Anchor::Middle, across.at(tick), bottom + 20.0, &plain(tick));
    }
    svg.text("axis", Anchor::End, right, bottom + 36.0, "batch index; up: seconds");
    let stride = epoch.batches.len().div_ceil(DOTS_MAX).max(1);
    let drawn: Vec<&Batch> = epoch.batches.iter().step_by(stride).collect();
    let radius = if drawn.len() > 200 { 1.4 } else { 2.4 };
    for batch in drawn.iter().step_by(drawn.len().div_ceil(STEMS_MAX).max(1)) {
        let x = across.at(f64::from(batch.batch));
        svg.line("stem", (x, up.at(batch.ready)), (x, up.at(batch.consume)));
    }
    for batch in drawn {
        let centre = (across.at(f64::from(batch.batch)), up.at(batch.consume));
        svg.dot(class_of(batch.source), centre, radius);
    }
}
