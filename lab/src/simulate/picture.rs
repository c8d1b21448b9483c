//! The chart of a simulation: an epoch over time, lines over one swept parameter, or a map over
//! two.

use super::load::Loaded;
use super::sweep::Simulated;
use crate::{Error, NotDrawn};
use meetpoint_report::charts::{Axis, Chart, Line, Map, lines, map};
use meetpoint_report::svg::Picture;
use meetpoint_scheduler::Source;
use meetpoint_sim::scenario::{Bandwidth, Bytes, Span};
use meetpoint_sim::{Recording, WorkKind};

/// Maximum number of batches of a chart over time, for which every step is recorded.
const DRAWN_BATCHES_MAX: u32 = 200_000;
/// Maximum number of points of a line.
const POINTS_MAX: usize = 400;

/// The chart for these results.
pub fn of(loaded: &Loaded, results: &[Simulated], seed: u64) -> Result<Picture, Error> {
    let swept = results.first().map_or(0, |result| result.settings.len());
    let numbers: Vec<Option<Vec<f64>>> = (0..swept).map(|place| numbers(results, place)).collect();
    match &numbers[..] {
        [] => over_time(loaded, seed),
        [Some(across)] => Ok(over_one(results, across, None)),
        [Some(across), Some(up)] => Ok(over_two(results, across, up)),
        [Some(across), None] => Ok(over_one(results, across, Some(1))),
        [None, Some(across)] => Ok(over_one(results, across, Some(0))),
        [None] | [None, None] => Err(NotDrawn::NoNumbers.into()),
        _ => Err(NotDrawn::TooManyParameters { parameters: swept }.into()),
    }
}

/// The values of a swept parameter as numbers: times in seconds, sizes in bytes, rates in bytes per
/// second.
fn numbers(results: &[Simulated], place: usize) -> Option<Vec<f64>> {
    results.iter().map(|result| number(&result.settings[place].1)).collect()
}

fn number(text: &str) -> Option<f64> {
    let plain = text.parse::<f64>().ok();
    let span = || text.parse::<Span>().ok().map(|span| span.0 as f64 / 1e9);
    let bytes = || text.parse::<Bytes>().ok().map(|bytes| bytes.0 as f64);
    let rate = || text.parse::<Bandwidth>().ok().map(|rate| rate.0 as f64);
    plain.or_else(span).or_else(bytes).or_else(rate)
}

fn title_of(results: &[Simulated], place: usize) -> String {
    let (name, value) = &results[0].settings[place];
    let unit = match value {
        _ if value.parse::<f64>().is_ok() => "",
        _ if value.parse::<Span>().is_ok() => " (seconds)",
        _ if value.ends_with("/s") => " (bytes a second)",
        _ => " (bytes)",
    };
    format!("{name}{unit}")
}

fn time(result: &Simulated) -> f64 {
    result.outcome.total_ns as f64 / 1e9
}

/// Time over one parameter; a line for each value of the parameter at `by`.
fn over_one(results: &[Simulated], across: &[f64], by: Option<usize>) -> Picture {
    let name_of = |result: &Simulated| match by {
        None => "simulated time".to_owned(),
        Some(place) => result.settings[place].1.clone(),
    };
    let mut drawn: Vec<Line> = Vec::new();
    for (result, x) in results.iter().zip(across) {
        let name = name_of(result);
        let place = drawn.iter().position(|line| line.name == name).unwrap_or(drawn.len());
        if place == drawn.len() {
            drawn.push(Line { name, points: Vec::new(), colour: place, dashed: false });
        }
        drawn[place].points.push((*x, time(result)));
    }
    for line in &mut drawn {
        line.points.sort_by(|left, right| left.0.total_cmp(&right.0));
    }
    let place = by.map_or(0, |by| 1 - by);
    let chart = Chart {
        title: "Simulated time of all epochs".to_owned(),
        across: Axis::around(&title_of(results, place), across.iter().copied()),
        up: Axis::around("seconds", results.iter().map(time).chain([0.0])),
        lines: drawn,
        marks: Vec::new(),
    };
    lines(&chart)
}

/// Time as colour over two parameters.
fn over_two(results: &[Simulated], across: &[f64], up: &[f64]) -> Picture {
    let distinct = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.dedup();
        sorted
    };
    let (columns, rows) = (distinct(across), distinct(up));
    let mut cells = vec![vec![f64::NAN; columns.len()]; rows.len()];
    for ((result, x), y) in results.iter().zip(across).zip(up) {
        let column = columns.iter().position(|value| value == x);
        let row = rows.iter().position(|value| value == y);
        if let (Some(column), Some(row)) = (column, row) {
            cells[row][column] = time(result);
        }
    }
    let times = results.iter().map(time);
    let (low, high) = times.fold((f64::MAX, 0.0_f64), |(l, h), t| (l.min(t), h.max(t)));
    let drawn = Map {
        title: "Simulated time of all epochs".to_owned(),
        across: cell_axis(&title_of(results, 0), &columns),
        up: cell_axis(&title_of(results, 1), &rows),
        cells,
        heat: Axis::new("seconds", low, high),
        lines: Vec::new(),
        marks: Vec::new(),
    };
    map(&drawn)
}

/// An axis on which each value is the middle of a cell, for values that are evenly spaced; cells
/// have the same width, so other values are shown in the title.
fn cell_axis(title: &str, values: &[f64]) -> Axis {
    let (first, last) = (values[0], values[values.len() - 1]);
    let step = (last - first) / (values.len().max(2) - 1) as f64;
    let even =
        values.windows(2).all(|pair| ((pair[1] - pair[0]) - step).abs() <= step.abs() * 1e-6);
    if even {
        return Axis::new(title, first - step / 2.0, last + step / 2.0);
    }
    let listed: Vec<String> = values.iter().map(|value| format!("{value}")).collect();
    Axis::new(&format!("{title}: {}", listed.join(", ")), 0.5, values.len() as f64 + 0.5)
}

/// Batches consumed so far, by source, over the time of the first epoch and rank.
fn over_time(loaded: &Loaded, seed: u64) -> Result<Picture, Error> {
    let scenario = &loaded.scenario;
    let (batches, batches_max) = (scenario.batches, DRAWN_BATCHES_MAX);
    if batches > batches_max {
        return Err(NotDrawn::TooLong { batches, batches_max }.into());
    }
    let keep = Recording { timeline: true, ..Recording::default() };
    let outcome = meetpoint_sim::run_keeping(scenario, seed, keep)?;
    let rank = outcome.epochs.first().and_then(|epoch| epoch.ranks.first());
    let timeline = rank.and_then(|rank| rank.timeline.as_deref()).unwrap_or_default();
    let (mut host, mut device) = (vec![(0.0, 0.0)], vec![(0.0, 0.0)]);
    for interval in timeline {
        let WorkKind::Step(source) = interval.what else { continue };
        let line = if source == Source::Host { &mut host } else { &mut device };
        let so_far = line.len() as f64;
        line.push((interval.end_ns as f64 / 1e9, so_far));
    }
    let end = timeline.iter().map(|it| it.end_ns).max().unwrap_or(0) as f64 / 1e9;
    let most = host.len().max(device.len()) as f64;
    let line = |name: &str, points: Vec<(f64, f64)>, colour| Line {
        name: name.to_owned(),
        points: thin(points, end),
        colour,
        dashed: false,
    };
    let chart = Chart {
        title: format!("Batches consumed, {} (first epoch, rank 0)", scenario.strategy),
        across: Axis::new("seconds of virtual time", 0.0, end),
        up: Axis::new("batches", 0.0, most * 1.05),
        lines: vec![line("prepared by the host", host, 0), line("prepared by a device", device, 1)],
        marks: Vec::new(),
    };
    Ok(lines(&chart))
}

/// At most [`POINTS_MAX`] points, with the last one extended to the end.
fn thin(points: Vec<(f64, f64)>, end: f64) -> Vec<(f64, f64)> {
    let last = points.last().map(|point| (end, point.1));
    let step = points.len().div_ceil(POINTS_MAX).max(1);
    points.into_iter().step_by(step).chain(last).collect()
}

#[cfg(test)]
mod tests {
    use super::{cell_axis, number, thin};

    #[test]
    fn quantities_are_numbers_on_an_axis() {
        let read = |text| number(text).unwrap();
        assert_eq!([read("4"), read("20ms"), read("500MB/s"), read("1kB")], [4.0, 0.02, 5e8, 1e3]);
        assert_eq!(number("wrr"), None);
    }

    #[test]
    fn cells_surround_their_values() {
        let even = cell_axis("x", &[1.0, 2.0, 3.0]);
        assert_eq!((even.from, even.to), (0.5, 3.5));
        let uneven = cell_axis("x", &[1.0, 2.0, 8.0]);
        assert!(uneven.title.contains("1, 2, 8"));
    }

    #[test]
    fn a_long_line_is_thinned_and_reaches_the_end() {
        let points = thin((0..10_000).map(|it| (f64::from(it), f64::from(it))).collect(), 12_000.0);
        assert!(points.len() < 420);
        assert_eq!(points.last(), Some(&(12_000.0, 9_999.0)));
    }
}
