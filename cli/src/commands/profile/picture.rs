//! The picture of a profile: throughput against storage, the best strategy marked.

use super::{Document, words};
use meetpoint_planner::decide::extra_storage;
use meetpoint_report::charts::{Axis, Chart, Line, Mark, lines};
use meetpoint_report::svg::Picture;

/// Bytes of the unit of the axis.
const MIB: f64 = (1u64 << 20) as f64;
/// Strategies with a name beside them; more would cover each other.
const NAMED_MAX: usize = 6;
/// Place of the colours of the best and of the others in the palette.
const BEST: usize = 1;
const OTHERS: usize = 0;

/// Draws the picture.
pub(super) fn of(document: &Document) -> Picture {
    let at = |index: usize| {
        let measured = &document.results[index];
        (extra_storage(measured) / MIB, measured.per_second)
    };
    let best = document.decision.best().index;
    let fastest = fastest_at_each_storage(document, &at);
    let mut marks: Vec<Mark> = Vec::new();
    for &index in &fastest {
        if index != best && marks.len() < NAMED_MAX {
            let name = words::name(&document.results[index]);
            marks.push(Mark { name, at: at(index), colour: OTHERS });
        }
    }
    let unnamed = (0..document.results.len()).filter(|index| *index != best);
    let unnamed = unnamed.filter(|index| !fastest.contains(index));
    marks.extend(unnamed.map(|index| Mark { name: String::new(), at: at(index), colour: OTHERS }));
    let name = format!("best: {}", words::name(&document.results[best]));
    marks.push(Mark { name, at: at(best), colour: BEST });
    let every = || (0..document.results.len()).map(at);
    let frontier = Line {
        name: "the fastest for its storage".to_owned(),
        points: fastest.iter().map(|&index| at(index)).collect(),
        colour: OTHERS,
        dashed: true,
    };
    let chart = Chart {
        title: "Throughput against storage".to_owned(),
        across: Axis::around("stored besides the dataset, MiB", every().map(|point| point.0)),
        up: Axis::around("samples per second after the first epoch", every().map(|it| it.1)),
        lines: vec![frontier],
        marks,
    };
    lines(&chart)
}

/// The strategies that none with as little storage surpasses, by increasing storage.
fn fastest_at_each_storage(document: &Document, at: &dyn Fn(usize) -> (f64, f64)) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..document.results.len()).collect();
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
