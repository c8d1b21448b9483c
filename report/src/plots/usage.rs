//! Usage of each strategy: time, CPU, memory and bytes, one small panel each.

use super::{Anchor, Picture, Run, Scale, Svg, WIDTH, class_of_run};
use crate::Totals;
use crate::units;

const COLUMNS: usize = 3;
const BAR: f64 = 18.0;
const GAP: f64 = 6.0;
const TITLE: f64 = 22.0;
const NAME: f64 = 92.0;
const VALUE: f64 = 74.0;

type Measure = (&'static str, fn(&Totals) -> f64, fn(f64) -> String);

fn as_bytes(value: f64) -> String {
    units::bytes(value as u64)
}

const MEASURES: [Measure; 6] = [
    ("time", |totals| totals.seconds, units::seconds),
    ("host core-seconds", |totals| totals.host_core_seconds, units::seconds),
    ("host peak memory", |totals| totals.host_peak_memory_bytes as f64, as_bytes),
    ("read by the host", |totals| totals.host_bytes_read as f64, as_bytes),
    ("read by the device", |totals| totals.device_bytes_read as f64, as_bytes),
    ("written by the device", |totals| totals.device_bytes_written as f64, as_bytes),
];

/// Draws the totals of every run.
pub fn usage(runs: &[Run]) -> Picture {
    let panel_height = TITLE + runs.len() as f64 * (BAR + GAP) + 18.0;
    let rows = MEASURES.len().div_ceil(COLUMNS) as f64;
    let mut svg = Svg::new(WIDTH, rows * panel_height);
    let panel = WIDTH / COLUMNS as f64;
    for (place, (title, value_of, text_of)) in MEASURES.into_iter().enumerate() {
        let x = (place % COLUMNS) as f64 * panel;
        let y = (place / COLUMNS) as f64 * panel_height;
        let largest = runs.iter().map(|run| value_of(&run.totals)).fold(0.0, f64::max);
        let across = Scale::new(largest, 0.0, panel - NAME - VALUE - 12.0);
        svg.text("title", Anchor::Start, x + 4.0, y + 14.0, title);
        for (row, run) in runs.iter().enumerate() {
            let value = value_of(&run.totals);
            let top = y + TITLE + row as f64 * (BAR + GAP);
            let end = x + NAME + across.at(value);
            svg.text("label", Anchor::End, x + NAME - 8.0, top + 13.0, &run.strategy);
            svg.rect(&class_of_run(row), x + NAME, top, across.at(value), BAR);
            svg.text("value", Anchor::Start, end + 6.0, top + 13.0, &text_of(value));
        }
    }
    svg.finish("Usage: time, CPU, memory and bytes, per strategy")
}
