//! The pictures of a report, each a self-contained SVG whose colours come from the page's style.

mod meeting;
mod throughput;
mod timeline;
mod usage;
mod waits;

pub use meeting::meeting;
pub use throughput::throughput;
pub use timeline::timeline;
pub use usage::usage;
pub use waits::waits;

use super::svg::{Anchor, Scale, Svg, plain};
use super::{Batch, Epoch, Run, Source};

/// Width of every picture in pixels of its own coordinates.
const WIDTH: f64 = 960.0;

/// The epoch that stands for a run: the last, when caches and profiles are settled.
fn shown(run: &Run) -> Option<&Epoch> {
    run.epochs.last()
}

/// Longest shown epoch of all runs, so that times compare by eye.
fn longest(runs: &[Run]) -> f64 {
    runs.iter().filter_map(shown).map(|epoch| epoch.seconds).fold(0.0, f64::max)
}

/// Style class of a source.
fn class_of(source: Source) -> &'static str {
    match source {
        Source::Host => "host",
        Source::Device => "device",
    }
}

/// Style class of the run at a place in the report; the page has colours for eight.
fn class_of_run(place: usize) -> String {
    format!("run{}", place % 8)
}

/// Vertical grid lines with their values and a title below.
fn time_axis(svg: &mut Svg, scale: &Scale, top: f64, bottom: f64, title: &str) {
    for tick in scale.ticks(8) {
        let x = scale.at(tick);
        svg.line("grid", (x, top), (x, bottom));
        svg.text("tick", Anchor::Middle, x, bottom + 16.0, &plain(tick));
    }
    svg.text("axis", Anchor::End, scale.at(f64::MAX), bottom + 34.0, title);
}

/// Small squares with names, in one row.
fn legend(svg: &mut Svg, entries: &[(String, String)], mut x: f64, y: f64) {
    for (class, name) in entries {
        svg.rect(class, x, y - 9.0, 10.0, 10.0);
        svg.text("label", Anchor::Start, x + 15.0, y, name);
        // Proportional letters: seven pixels each is ample at this size.
        x += 15.0 + 7.0 * name.chars().count() as f64 + 18.0;
    }
}
