//! The picture of a profile: throughput against storage, the best strategy marked.

use super::{Document, words};
use meetpoint_planner::decide::extra_storage;
use meetpoint_report::charts::{Axis, Chart, Line, Mark, lines};
use meetpoint_report::svg::Picture;

/// Bytes of the unit of the axis.
const MIB: f64 = (1u64 << 20) as f64;
/// Stored forms with a name beside them; more names would overlap.
const NAMED_MAX: usize = 5;
/// A form is named if it is faster than the previously named form by this factor.
const NAMED_GAIN: f64 = 1.1;
/// Indices of the colours of the best and of the others in the palette.
const BEST: usize = 1;
const OTHERS: usize = 0;

/// Draws the picture. Each stored form is one point, with the best threads and cache for it: its
/// other strategies differ only in height, and their points would overlap.
pub(super) fn of(document: &Document) -> Picture {
    let at = |index: usize| {
        let measured = &document.results[index];
        (extra_storage(measured) / MIB, measured.per_second)
    };
    let best = document.decision.best().index;
    let shown = fastest_of_each_form(document, best);
    let fastest = fastest_at_each_storage(&shown, &at);
    let mut named_rate = 0.0;
    let mut named = 0;
    let mut marks: Vec<Mark> = Vec::new();
    for &index in shown.iter().filter(|index| **index != best) {
        let rate = at(index).1;
        let is_named =
            fastest.contains(&index) && rate > named_rate * NAMED_GAIN && named < NAMED_MAX;
        let name = match is_named {
            true => words::form(&document.results[index]),
            false => String::new(),
        };
        if is_named {
            (named_rate, named) = (rate, named + 1);
        }
        marks.push(Mark { name, at: at(index), colour: OTHERS });
    }
    let name = format!("best: {}", words::name(&document.results[best]));
    marks.push(Mark { name, at: at(best), colour: BEST });
    let every = || shown.iter().map(|&index| at(index));
    let frontier = Line {
        name: "the fastest for its storage".to_owned(),
        points: fastest.iter().map(|&index| at(index)).collect(),
        colour: OTHERS,
        dashed: true,
    };
    let rates = "samples per second after the first epoch, with the best threads and cache";
    let chart = Chart {
        title: "Throughput against storage".to_owned(),
        across: Axis::around("stored besides the dataset, MiB", every().map(|point| point.0)),
        up: Axis::around(rates, every().map(|it| it.1)),
        lines: vec![frontier],
        marks,
    };
    lines(&chart)
}

/// The fastest strategy of each stored form, by increasing storage; for the form of `best`, `best`
/// itself, which may not be the fastest because of memory limits.
fn fastest_of_each_form(document: &Document, best: usize) -> Vec<usize> {
    let results = &document.results;
    let form = |index: usize| (results[index].point(), results[index].codec);
    let mut shown: Vec<usize> = vec![best];
    for index in 0..results.len() {
        match shown.iter_mut().find(|other| form(**other) == form(index)) {
            Some(other) if *other == best => {}
            Some(other) if results[*other].per_second < results[index].per_second => {
                *other = index;
            }
            Some(_) => {}
            None => shown.push(index),
        }
    }
    let storage = |index: &usize| extra_storage(&results[*index]);
    shown.sort_by(|a, b| storage(a).total_cmp(&storage(b)));
    shown
}

/// The strategies that are faster than every other with at most as much storage, by increasing
/// storage.
fn fastest_at_each_storage(shown: &[usize], at: &dyn Fn(usize) -> (f64, f64)) -> Vec<usize> {
    let mut indices = shown.to_vec();
    indices.sort_by(|&a, &b| {
        let ((storage_a, rate_a), (storage_b, rate_b)) = (at(a), at(b));
        storage_a.total_cmp(&storage_b).then(rate_b.total_cmp(&rate_a))
    });
    let mut highest = 0.0;
    indices.retain(|&index| {
        let is_higher = at(index).1 > highest;
        highest = at(index).1.max(highest);
        is_higher
    });
    indices
}
