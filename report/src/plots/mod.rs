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

use super::legend::{Legend, Sample};
use super::svg::{Anchor, Picture, Scale, Svg, plain};
use super::{Batch, Epoch, Run, Source};

/// Width of every picture in pixels of its own coordinates.
const WIDTH: f64 = 960.0;

/// The epoch that stands for a run: the last, when caches and profiles are settled.
fn shown(run: &Run) -> Option<&Epoch> {
    run.epochs.last()
}

/// Longest shown epoch of all runs, so that all charts have the same time scale.
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

/// Names of colours in a row above a picture.
fn legend(svg: &mut Svg, entries: &[(String, String)], x: f64, y: f64) {
    let entries = entries.iter().map(|(class, name)| (Sample::Square, class.clone(), name.clone()));
    Legend::new(entries.collect(), WIDTH - x).draw(svg, x, y);
}
